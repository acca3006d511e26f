//! Arrays on several devices: the parts of devices, and the mapping between the parts of two
//! shardings.
//!
//! All functions use one iterator: [`CellIterator`] visits an array in row-major order once and
//! returns for each run its stored piece and the shards that need it. Since pieces and shards are
//! row-major, too, each is visited sequentially. Does not depend on how a sharding computes its
//! index domains, nor on where the bytes of a piece are.

mod block;
mod cells;
#[cfg(test)]
mod tests;
mod tiling;

pub(super) use block::{Block, blocks_of, element_bytes};
pub(super) use cells::CellIterator;
pub(super) use tiling::check_tiling;
