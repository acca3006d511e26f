//! Arrays that lie on several devices: which device holds which part, and how parts of one cut lie
//! in those of another.
//!
//! Everything rests on one walk: [`CellIterator`] goes through an array in row-major order once and says
//! of each run in which stored piece and in which wanted shards it lies. Since pieces and
//! shards are row-major, too, each is passed front to back. This part must never know how a
//! sharding comes to its index domains, nor where the bytes of a piece lie.

mod block;
mod cells;
#[cfg(test)]
mod tests;
mod tiling;

pub(super) use block::{Block, blocks_of, element_bytes};
pub(super) use cells::CellIterator;
pub(super) use tiling::check_tiling;
