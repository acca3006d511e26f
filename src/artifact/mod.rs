//! Reading and writing TensorFlow's artifacts: graphs, SavedModels, checkpoints.
//!
//! Knows the formats and how TensorFlow judges them; what a verdict means for a person or a command it must never know.

pub mod checksum;
pub mod data_type;
mod fields;
pub mod read_at;
pub mod slice;
pub mod status;
pub mod table;
pub mod tensor_bundle;

pub use fields::Malformed;
