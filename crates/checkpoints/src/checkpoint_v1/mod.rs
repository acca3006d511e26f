//! TensorFlow's V1 checkpoint format: tables whose values are whole messages, tensors in typed
//! repeated fields.
//!
//! ```no_run
//! use serdes_checkpoints::checkpoint_v1::CheckpointV1;
//!
//! let checkpoint = CheckpointV1::open("old/model.ckpt-?????-of-00002")?;
//! for tensor in checkpoint.tensors() {
//!     println!("{} {:?} {:?}", tensor.name(), tensor.data_type(), tensor.shape());
//! }
//! let bytes = checkpoint.read(checkpoint.tensor("dense/kernel")?)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! Each file has a header under the empty key (names, shapes, types, slices, versions), and the
//! values of each slice under the key of that slice. Only the blocks of the tables have checksums.
//! A value is at most 2 GiB, and is held in memory while it is decoded.
//!
//! Reads the format as TensorFlow 2.21 does. There is no writer: TensorFlow has not written the
//! format by default for ten years.

mod error;
mod messages;
mod reader;
mod values;

#[cfg(test)]
mod tests;

pub use error::CheckpointV1Error;
pub use reader::{CheckpointV1, TensorV1};

use serdes_version_registry::Consumer;

/// Returns the newest TensorFlow release that this build knows as a reader of V1 checkpoints.
#[must_use]
pub fn default_consumer() -> Consumer {
    Consumer::new("checkpoint", "checkpoint", 1, 0).of_release(crate::NEWEST_RELEASE)
}
