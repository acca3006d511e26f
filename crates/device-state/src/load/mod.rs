//! Reads states: their descriptions, and their bytes into devices or readers, verified by
//! checksums.
//!
//! [`Reader`] and [`Tensor`] represent a state; a `Plan` defines what is read in which order and
//! into which memory, for whole arrays and for shards, and a `Load` executes it. Does not depend on
//! the kind of store that has the bytes.

mod assemble;
mod execute;
mod feed;
mod header;
mod host;
#[cfg(feature = "mmap")]
pub(super) mod mapped;
mod open_state;
mod piece_reader;
mod piece_sums;
mod plan;
mod read;
mod reader;
mod restore;
mod salvage;
mod select;
mod shards;
mod spec;
mod tensor;
#[cfg(test)]
mod tests;
mod verify;

pub(super) use header::read_header;
pub use host::{HostTarget, Verification};
pub use piece_sums::PieceSums;
pub use reader::Reader;
pub use restore::Restored;
pub use salvage::Salvaged;
pub use select::matches_any;
pub use shards::{RestoredShards, ShardTarget};
pub use tensor::Tensor;
pub use verify::Damage;
