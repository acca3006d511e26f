//! Reading and writing TensorFlow's artifacts: graphs, SavedModels, checkpoints.
//!
//! Knows the formats and how TensorFlow judges them; what a verdict means for a person or a command it must never know.

pub mod checkpoint_v1;
pub mod checksum;
pub mod data_type;
mod fields;
pub mod graph;
pub mod ops;
mod schema;
pub mod slice;
pub mod status;
pub mod table;
pub mod tensor_bundle;
mod text;
mod window;
mod wire;

pub use crate::read_at::ReadAt;
pub use fields::Malformed;
pub use text::{TextError, TextFault};
#[cfg(feature = "device")]
pub(crate) use wire::varint;
pub use wire::{WireError, WireFault};
