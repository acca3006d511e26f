//! Programs in StableHLO: the versions that read one, and conversion for an older reader.
//!
//! A program travels as a portable artifact: MLIR bytecode in the dialect VHLO, whose producer
//! names a version. This version alone decides nothing: a reader accepts a program newer than
//! itself as long as it knows every operation, type and attribute in it. [`Program`] finds those
//! that a program has, with the version that introduced each, and writes the program for an older
//! reader where the older version can express the same. A [`ProgramBridge`] may convert the others.
//!
//! The rules are from StableHLO's version log and its conversions between versions
//! (`VhloDialect.td`, `VhloToVersion.cpp`, the expansion of mesh axes) and from MLIR's description
//! of its bytecode; they are tested against the serializers of jaxlib.
//!
//! The crate does not depend on the senders or compilers of programs. It reads untrusted bytes:
//! time and memory are linear in their number, and nothing recurses.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
// No program makes the crate panic: code that could is an exception with its reason.
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

mod bridge;
mod bytecode;
mod catalogue;
mod change;
mod clients;
mod custom_calls;
mod error;
mod generated;
mod mesh;
mod needs;
mod older;
mod program;
mod properties;
mod regions;
mod rewrite;
mod sorts;
mod tree;
mod version;
mod version_text;

pub use bridge::ProgramBridge;
pub use clients::{Passage, ProxyClient};
pub use error::StableHloError;
pub use needs::Need;
pub use program::Program;
pub use tree::{Attribute, Operation, Region, TensorType, Value};
pub use version::StableHloVersion;

#[cfg(test)]
mod tests;
