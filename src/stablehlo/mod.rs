//! Programs in StableHLO: the versions that read one, and conversion for an older reader.
//!
//! A program travels as a portable artifact: MLIR bytecode in the dialect VHLO, whose producer
//! names a version. The number alone decides nothing: a reader accepts a program newer than itself
//! as long as it knows every operation, type and attribute in it. [`Program`] reads which of these
//! a program has, says from which version on they are known, and writes the program for an older
//! reader where the older version can express the same. A [`ProgramBridge`] may convert the others.
//!
//! Rules: StableHLO's log of versions and its conversions between them (`VhloDialect.td`,
//! `VhloToVersion.cpp`, the expansion of mesh axes), MLIR's description of its bytecode; held
//! against the real serializers of jaxlib.
//!
//! The module must never know who sends programs or who compiles them. It reads untrusted bytes:
//! time and memory are linear in their number, and nothing recurses.

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
mod version;
mod version_text;

pub use bridge::ProgramBridge;
pub(crate) use bytecode::first_number;
pub use clients::{Passage, ProxyClient};
pub use error::StableHloError;
pub use needs::Need;
pub use program::Program;
pub use version::StableHloVersion;

#[cfg(test)]
mod tests;
