//! Limit on the memory of an answer about every device. A few bytes can announce a mesh of any
//! size, and a list of devices multiplies the answer about each of them.

use super::SingleDeviceSharding;
use crate::ifrt::{IfrtError, IndexDomain, Shape};

/// The most bytes that an answer about every device takes unless the caller allows another number:
/// enough for 600,000 devices.
pub const DEFAULT_ANSWER_BYTES: u64 = 64 << 20;

/// The list of one device, and what its reference count takes.
const DEVICE_LIST_BYTES: u64 = 96;

/// Shapes and positions of more dimensions than this lie on the heap.
const INLINE_DIMENSIONS: usize = 4;

fn heap_bytes(rank: usize) -> u64 {
    if rank > INLINE_DIMENSIONS { 8 * rank as u64 } else { 0 }
}

fn require(what: &'static str, count: u64, each: u64, limit: u64) -> Result<(), IfrtError> {
    let found = count.saturating_mul(each);
    if found > limit {
        return Err(IfrtError::LimitExceeded { what, found, limit });
    }
    Ok(())
}

/// Fails unless index domains of `rank` dimensions for `count` devices take at most `limit` bytes.
pub(in crate::ifrt) fn require_domains(
    count: u64,
    rank: usize,
    limit: u64,
) -> Result<(), IfrtError> {
    let each = size_of::<IndexDomain>() as u64 + 2 * heap_bytes(rank);
    require("the size in bytes of all index domains", count, each, limit)
}

/// Fails unless the parts of an array of `rank` dimensions on `count` devices take at most `limit`
/// bytes.
pub(super) fn require_parts(count: u64, rank: usize, limit: u64) -> Result<(), IfrtError> {
    let each = size_of::<(Shape, SingleDeviceSharding)>() as u64
        + size_of::<IndexDomain>() as u64
        + DEVICE_LIST_BYTES
        + 3 * heap_bytes(rank);
    require("the size in bytes of all parts", count, each, limit)
}
