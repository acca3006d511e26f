//! TensorFlow's V2 checkpoint format (tensor bundle): an index, which is a table, and data files.
//!
//! ```no_run
//! use std::io::Read;
//! use serdes_checkpoints::tensor_bundle::Bundle;
//!
//! let bundle = Bundle::open("training/ckpt-1000")?;
//! for tensor in &bundle.tensors().tensors {
//!     println!("{} {:?} {:?}", tensor.name(), tensor.data_type(), tensor.shape());
//! }
//! let kernel = bundle.tensor("dense/kernel")?;
//! let mut bytes = Vec::new();
//! bundle.reader(&kernel)?.read_to_end(&mut bytes)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Knows the bundle as TensorFlow 2.21 reads and writes it, and the status that TensorFlow gives
//! for each defect. Does not depend on verdicts or devices.
//!
//! Opening checks the table, the header and the versions only. Other defects are found when the
//! index is listed or a tensor is read; [`Bundle::verify`] looks for all of them.

mod data;
mod detect;
mod entry;
mod error;
mod files;
pub(crate) mod messages;
mod pieces;
mod reader;
mod stream;
mod strings;
mod supersede;
mod verify;
mod writer;

#[cfg(test)]
mod tests;

pub use detect::is_index;
pub use entry::TensorEntry;
pub use error::BundleError;
pub use files::{
    FileSystem, Files, MemoryFiles, data_path, index_path, prefix_of_data, prefix_of_index,
};
pub use messages::{Endianness, Header, ShapeError, element_count};
pub use reader::{Bundle, Listing};
pub use stream::TensorReader;
pub use verify::{BundleReport, VerifyOptions};
pub use writer::{BundleOptions, BundleSummary, BundleWriter, TensorWriter, even_extents};

use serdes_version_registry::Consumer;

/// Returns the newest TensorFlow release that this build knows as a reader of bundles.
#[must_use]
pub fn default_consumer() -> Consumer {
    Consumer::new("tensor_bundle", "checkpoint", 1, 0).of_release(crate::NEWEST_RELEASE)
}
