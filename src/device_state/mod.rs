//! Device state: the container that carries a device's buffers from one build to another.
//!
//! A state is one file, or one index over the parts that several processes saved. Its header says which builds read it, each buffer lies in it with the
//! [`ArraySpec`](crate::ifrt::ArraySpec) that describes it, every chunk of every buffer has a
//! checksum, and an index at the end lets a reader open it without reading the data. The bytes are
//! specified in `docs/format.md`.
//!
//! This room must never know what kinds of files tensors come from, nor judge an artifact; it
//! moves bytes between devices and containers.

mod ahead;
mod buffer;
mod chunks;
mod data;
mod direct;
mod error;
mod format;
mod lane;
#[cfg(feature = "mmap")]
mod mapped;
mod new_file;
#[cfg(feature = "object_store")]
mod object;
mod options;
mod output;
mod parts;
mod progress;
mod reader;
mod restore;
mod salvage;
mod select;
mod shards;
mod sink;
mod staging;
mod tensor;
mod verify;
mod versions;
mod writer;

#[cfg(test)]
mod tests;

pub(crate) use crate::files::Replacement;
pub use crate::files::Sync;
pub(crate) use data::PieceSums;
pub use error::Error;
#[cfg(feature = "artifact")]
pub(crate) use format::END_MAGIC;
pub(crate) use format::MAGIC;
pub(crate) use lane::{Download, Upload};
#[cfg(feature = "mmap")]
pub use mapped::MappedState;
#[cfg(feature = "object_store")]
pub use object::ObjectParts;
pub use options::WriteOptions;
pub use parts::{
    Commit, LocalParts, Merged, Part, PartStore, PendingPart, SaveId, merge, merge_in,
};
pub use progress::{Phase, Progress, Watch};
pub use reader::Reader;
pub use restore::Restored;
pub use salvage::Salvaged;
pub use select::matches_any;
pub use shards::{RestoredShards, Shard, ShardTarget};
pub use tensor::Tensor;
pub use verify::Damage;
pub use versions::Versions;
pub use writer::{Writer, Written};
