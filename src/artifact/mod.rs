//! Reading and writing TensorFlow's artifacts: graphs, SavedModels, checkpoints.
//!
//! Knows the formats and how TensorFlow judges them; what a verdict means for a person or a command
//! it must never know.

pub mod checkpoint_state;
pub mod checkpoint_v1;
mod checksum;
pub mod data_type;
pub mod graph;
pub mod ops;
#[cfg(feature = "device")]
pub(crate) mod patterns;
#[cfg(feature = "device")]
pub(crate) mod restore;
mod schema;
pub mod slice;
pub mod table;
pub mod tensor_bundle;
mod text;

pub use crate::wire::{
    Malformed,
    scan::{WireError, WireFault},
};
#[cfg(feature = "device")]
pub(crate) use schema::ReleaseDialect;
pub use serdes_abi::StatusCode;
pub use text::{TextError, TextFault};
