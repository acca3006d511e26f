//! Tensors in several files with an index (`model.safetensors.index.json`), as Hugging Face's
//! libraries write them.
//!
//! The index is JSON: `weight_map` maps the name of each tensor to that of its file, which lies
//! beside the index; `metadata` has the size of all tensors. This module opens no files elsewhere.
//!
//! A set replaces another one by the rename of its index: its files have unique names, and those of
//! the old one are removed afterwards.

mod index;
mod names;
mod read;
mod remote;
mod set;
mod switch;
#[cfg(test)]
mod tests;
mod write;

pub use index::{begins_like_index, files_of_index, is_index};
pub(super) use read::ShardedSource;
pub(super) use remote::RemoteSet;
pub use set::{ShardFile, ShardSet, count, listed};
pub(super) use write::ShardedTarget;

const KIND: &str = "shard_index";
