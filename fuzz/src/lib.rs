//! The bodies of the fuzz targets. They panic on a finding, and on nothing else.
//!
//! `crates/check/tests/it/corpus_replay.rs` includes this file and runs each over its corpus. Those of
//! the proxy are included by their targets, and by `crates/proxy/tests/corpus_replay.rs`.

mod addresses;
mod checkpoints;
mod device_state;
mod graphs;
mod ifrt;
mod operations;
mod protobuf;
mod stablehlo;
mod torch;

pub use addresses::addresses;
pub use checkpoints::{checkpoint_v1, table, tensor_bundle};
pub use device_state::{device_state, merged_state};
pub use graphs::{artifacts, graphs};
pub use ifrt::{ifrt_programs, ifrt_remap_plan, ifrt_serialized, ifrt_text, ifrt_values};
pub use operations::{changed_operations, operations};
pub use stablehlo::stablehlo_programs;
pub use torch::torch;
