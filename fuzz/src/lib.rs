//! The bodies of the fuzz targets. They panic on a finding, and on nothing else.
//!
//! `crates/check/tests/it/corpus_replay.rs` includes this file and runs each over its corpus.

mod addresses;
mod calls;
mod checkpoints;
mod device_state;
mod graphs;
mod ifrt;
mod operations;
mod protobuf;
mod proxy;
mod stablehlo;
mod torch;

pub use addresses::addresses;
pub use calls::proxy_calls;
pub use checkpoints::{checkpoint_v1, table, tensor_bundle};
pub use device_state::{device_state, merged_state};
pub use graphs::{artifacts, graphs};
pub use ifrt::{ifrt_programs, ifrt_remap_plan, ifrt_serialized, ifrt_text, ifrt_values};
pub use operations::{changed_operations, operations};
pub use proxy::proxy_requests;
pub use stablehlo::stablehlo_programs;
pub use torch::torch;
