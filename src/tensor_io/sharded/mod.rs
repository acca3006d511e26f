//! Tensors in several files, and the index that says in which: as Hugging Face's libraries write
//! them (`model.safetensors.index.json`).
//!
//! The index is JSON: under `weight_map` the name of each tensor with that of its file, which lies
//! beside the index; under `metadata` the size of all tensors. This room must never look for a file
//! anywhere else.

mod index;
mod read;
mod set;
#[cfg(test)]
mod tests;
mod write;

#[cfg(feature = "artifact")]
pub(crate) use index::files_of_index;
pub(crate) use index::{begins_like_index, is_index};
pub(super) use read::ShardedSource;
#[cfg(feature = "artifact")]
pub(crate) use set::{ShardFile, ShardSet, count, listed};
pub(super) use write::ShardedTarget;

const KIND: &str = "shard_index";
