//! Arrays that lie on several devices: which device holds which part, how parts are put together
//! again, and how they are cut another way.
//!
//! Everything rests on one walk: [`Sweep`] goes through an array in row-major order once and says
//! of each stretch in which stored piece and in which wanted shards it lies. Since pieces and
//! shards are row-major, too, each is passed front to back. This part must never know how a
//! sharding comes to its index domains, nor where the bytes of a piece lie.

mod assemble;
mod block;
mod parallel;
mod restore;
mod sweep;
mod tiling;
mod write;

#[cfg(test)]
mod tests;

pub(super) use assemble::{Assembler, Router};
pub(super) use block::Block;
pub use restore::{RestoredShards, ShardTarget};
pub(super) use sweep::Sweep;
pub(super) use tiling::check_tiling;
pub use write::Shard;
