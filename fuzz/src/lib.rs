//! The bodies of the fuzz targets. They panic on a finding, and on nothing else.
//!
//! `tests/it/corpus_replay.rs` of serdes includes this file and runs each over its corpus.

#[cfg(feature = "addresses")]
mod addresses;
#[cfg(feature = "proxy")]
mod calls;
mod checkpoints;
mod device_state;
mod graphs;
mod ifrt;
mod operations;
mod protobuf;
#[cfg(feature = "proxy")]
mod proxy;
mod stablehlo;
#[cfg(feature = "torch")]
mod torch;

#[cfg(feature = "addresses")]
pub use addresses::addresses;
#[cfg(feature = "proxy")]
pub use calls::proxy_calls;
pub use checkpoints::{checkpoint_v1, table, tensor_bundle};
pub use device_state::{device_state, merged_state};
pub use graphs::{artifacts, graphs};
pub use ifrt::{ifrt_programs, ifrt_remap_plan, ifrt_serialized, ifrt_text, ifrt_values};
pub use operations::{changed_operations, operations};
#[cfg(feature = "proxy")]
pub use proxy::proxy_requests;
pub use stablehlo::stablehlo_programs;
#[cfg(feature = "torch")]
pub use torch::torch;
