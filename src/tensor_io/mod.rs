//! Files of tensors as streams: safetensors, alone or as shards with an index, npy and npz,
//! TensorFlow V2 checkpoints, device states; and to read, TensorFlow V1 checkpoints and files of
//! PyTorch's `torch.save`.
//!
//! A [`Source`] lists its tensors and gives the bytes of one at a time; a [`Target`] is told of all
//! and becomes the [`TensorSink`] that takes them the same way. Neither ever holds a whole tensor.
//! The bytes between the two are always those of a device state: dense, row-major, little endian,
//! elements narrower than a byte in a byte each.
//!
//! This room must never know a device or judge an artifact.

pub(crate) mod aliases;
#[cfg(any(feature = "npz", feature = "torch"))]
mod archive;
mod brought;
#[cfg(feature = "artifact")]
mod bundle;
#[cfg(feature = "artifact")]
mod checkpoint_state;
#[cfg(feature = "artifact")]
mod checkpoint_v1;
mod create;
mod diff;
mod elements;
mod error;
mod folder;
mod form;
mod info;
mod json;
mod npy;
#[cfg(feature = "npz")]
mod npz;
mod number;
mod open;
mod output;
mod refused;
mod safetensors;
mod section;
mod sharded;
mod source;
mod stand_in;
mod state;
mod target;
mod tensorflow;
#[cfg(feature = "torch")]
mod torch;

pub use create::{create, create_in, create_sharded, create_sharded_in, create_stream};
pub use diff::{Comparison, Difference, diff};
pub use error::Error;
#[cfg(feature = "artifact")]
pub(crate) use folder::{is_distributed, open_folder};
pub use form::Form;
pub use info::{Metadata, TensorInfo, element_bytes};
pub use number::Tolerance;
pub use open::{open, open_at, open_in, open_stream};
use output::Output;
pub use refused::Refused;
#[cfg(feature = "artifact")]
pub(crate) use safetensors::LONGEST_HEADER as LONGEST_SAFETENSORS_HEADER;
#[cfg(feature = "artifact")]
pub(crate) use sharded::{
    ShardFile, ShardSet, begins_like_index, count as count_of_tensors, files_of_index, is_index,
    listed as listed_names,
};
pub use source::{Listing, Source};
use target::{Announced, pass_on};
pub use target::{Target, TensorSink};
