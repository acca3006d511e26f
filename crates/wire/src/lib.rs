//! Protobuf bytes without generated messages: for what these are too slow for, would lose, or
//! cannot hold in memory.
//!
//! - [`WireReader`] is one cursor over the fields of a message in memory; [`Dialect`] says what each
//!   parser takes.
//! - [`BackwardWriter`] is the writer.
//! - [`packed`] has lists of numbers, many at a time; [`varint`] one number.
//!
//! Knows numbers, fields and bytes. It must never know what a message means, a version or a device.

#![cfg_attr(docsrs, feature(doc_cfg))]
// No bytes make the crate panic: what could is an exception with its reason.
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
