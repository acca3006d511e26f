//! Moves machine-learning state between builds that were not made on the same day.

pub mod artifact;
pub mod check;
pub mod codec;
pub mod device_state;
pub mod ifrt;
pub mod proto;
pub mod stream_executor;
pub mod tensor_io;
pub mod version;
