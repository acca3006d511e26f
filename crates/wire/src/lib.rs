//! Protobuf encoding without generated messages, for data for which those are too slow, lose
//! information, or need too much memory.
//!
//! - [`WireReader`] is a cursor over the fields of a message in memory; [`Dialect`] decides what
//!   each parser accepts.
//! - [`BackwardWriter`] is the writer.
//! - [`packed`] has lists of numbers, many at a time; [`varint`] one number.
//!
//! The crate knows numbers, fields and bytes. It does not depend on messages, versions or devices.

#![cfg_attr(docsrs, feature(doc_cfg))]
// Input bytes must not make the crate panic; each exception states its reason.
#![cfg_attr(
    not(test),
    deny(
        clippy::expect_used,
        clippy::get_unwrap,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::string_slice,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

mod backward;
mod dialect;
mod fields;
pub mod packed;
pub mod varint;

pub use backward::BackwardWriter;
pub use dialect::{Dialect, MAXIMUM_DEPTH};
pub use fields::{Field, FieldValue, Malformed, WireReader, check_fields};
