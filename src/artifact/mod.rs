//! Reading and writing TensorFlow's artifacts: graphs, SavedModels, checkpoints.
//!
//! Knows the formats and how TensorFlow judges them; what a verdict means for a person or a command
//! it must never know.

mod bans;
pub mod checkpoint_state;
pub mod checkpoint_v1;
mod checksum;
#[cfg(feature = "device")]
pub(crate) mod ifrt_types;
#[cfg(feature = "device")]
pub(crate) mod patterns;
#[cfg(feature = "device")]
pub(crate) mod restore;
pub mod slice;
pub mod table;
pub mod tensor_bundle;

pub use serdes_abi::StatusCode;
#[cfg(feature = "device")]
pub(crate) use serdes_graphs::schema::ReleaseDialect;
pub use serdes_graphs::{
    Malformed, TextError, TextFault, WireError, WireFault, data_type, graph, ops,
};
pub(crate) use serdes_graphs::{schema, text};
