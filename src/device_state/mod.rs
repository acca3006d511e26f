//! Device state: the container that carries a device's buffers from one build to another.
//!
//! A state is one file, or one index over the parts that several processes saved. Its header says
//! which builds read it, each buffer lies in it with the [`ArraySpec`](crate::ifrt::ArraySpec) that
//! describes it, every chunk of every buffer has a checksum, and an index at the end lets a reader
//! open it without reading the data. The bytes are specified in `docs/format.md`.
//!
//! `save` and `load` are the two ways, `pump` moves the bytes of both, `store` is where states lie,
//! `format` is what they look like, `shards` how arrays are cut.
//!
//! This room must never know what kinds of files tensors come from, nor judge an artifact; it
//! moves bytes between devices and containers.

mod error;
mod format;
mod hosted;
mod load;
mod options;
mod pump;
mod save;
mod shards;
mod store;
#[cfg(test)]
mod tests;
mod versions;

pub use crate::files::{Durability, Phase, Progress, Watch};
pub use error::Error;
pub use format::{END_MAGIC, MAGIC};
pub use hosted::{HostedDevice, HostedMemory};
pub use load::PieceSums;
#[cfg(feature = "mmap")]
pub use load::mapped::MappedState;
pub use load::{
    Damage, HostTarget, Reader, Restored, RestoredShards, Salvaged, ShardTarget, Tensor,
    Verification, matches_any,
};
pub use options::WriteOptions;
pub use pump::{Contents, Download, Downloads, Uploads};
pub use save::{DeferredBytes, Shard, Writer, Written};
#[cfg(feature = "object_store")]
pub use store::object::ObjectParts;
pub use store::{
    Commit, LocalParts, Merged, Part, PartStore, PendingPart, SaveId, discard, merge, merge_in,
};
pub use versions::Versions;
