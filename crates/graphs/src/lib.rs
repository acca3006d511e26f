//! TensorFlow's graphs and SavedModels: read, and judged as the importer of each release judges
//! them.
//!
//! [`graph`] reads graphs in their binary and text forms, and finds the diagnostics of an importer.
//! The operations of each release are in `serdes-operations`, the element types in
//! `serdes-graph-format`.
//!
//! This crate does not depend on checkpoints, devices, or the callers' policies.

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

pub mod graph;

pub use serdes_abi::StatusCode;
pub use serdes_graph_format::{TextError, TextErrorKind, WireError, WireErrorKind};
pub use serdes_wire::Malformed;

use serdes_files as files;
use serdes_graph_format::{data_type, scan, schema};
use serdes_operations as ops;
