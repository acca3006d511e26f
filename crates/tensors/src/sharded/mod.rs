//! Tensors in several files, and the index that says in which: as Hugging Face's libraries write
//! them (`model.safetensors.index.json`).
//!
//! The index is JSON: under `weight_map` the name of each tensor with that of its file, which lies
//! beside the index; under `metadata` the size of all tensors. This module must never look for a
//! file anywhere else.
//!
//! A set takes the place of another one by the rename of its index alone: its files have names that
//! no other file has, and those of the old one go afterwards.

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
