//! Facts about a plug-in from its file, read without loading it.
//!
//! The module never runs code of the file.

mod aarch64;
mod image;
mod inspection;
mod recognised;
mod version;
mod x86_64;

pub(super) use inspection::ENTRY;
pub use inspection::{Inspection, inspect};
pub use recognised::VersionInFile;
