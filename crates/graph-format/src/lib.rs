//! Encoding of TensorFlow's messages: element types, message schema, and scanners of the binary and
//! the text form for files of any size.
//!
//! - [`data_type`] has TensorFlow's element types.
//! - `schema` has the messages of GraphDefs, SavedModels and checkpoints, and the numbers of their
//!   fields.
//! - `scan` reads a message in its binary form, `text` in its text form, field by field.
//!
//! This crate does not depend on the meaning of graphs or checkpoints.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
// No input makes the crate panic: code that could is an exception with its reason.
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

pub mod data_type;
#[doc(hidden)]
pub mod scan;
#[doc(hidden)]
pub mod schema;
#[doc(hidden)]
pub mod text;

pub use self::{
    scan::{WireError, WireErrorKind},
    text::{TextError, TextErrorKind},
};
