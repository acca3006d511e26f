//! The bodies of the fuzz targets. They panic on a finding, and on nothing else.
//!
//! `tests/corpus_replay.rs` of serdes includes this file and runs each over its corpus.

mod graphs;
mod ifrt;

pub use graphs::{artifacts, graphs};
pub use ifrt::{ifrt_serialized, ifrt_text, ifrt_values};
