//! Out of a state: what it says of itself, and its bytes, onto devices or into readers, compared
//! with their checksums.
//!
//! [`Reader`] and [`Tensor`] are what a state is; a `Plan` says what is read in which order and
//! which memory gets it, for whole arrays as for shards, and a `Load` carries it out. This part
//! must never know in what kind of store the bytes lie.

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
