//! The bodies of the fuzz targets. They panic only on a finding.
//!
//! `crates/check/tests/it/corpus_replay.rs` includes this file and runs each body over its corpus.
//! The targets of the proxy and `crates/proxy/tests/corpus_replay.rs` include the proxy's bodies.

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
