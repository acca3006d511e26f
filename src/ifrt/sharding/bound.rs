//! Memory limits for results with one entry per device. A sharding of a few bytes can describe a
//! mesh of any size, so the size of a result is checked before it is computed.

use super::SingleDeviceSharding;
use crate::ifrt::{IfrtError, IndexDomain, Shape};

/// Default limit on the memory of a result with one entry per device, in bytes: enough for 600,000
/// devices.
pub const DEFAULT_ANSWER_BYTES: u64 = 64 << 20;

/// Bytes of a list of one device, with its reference count.
const DEVICE_LIST_BYTES: u64 = 96;

/// Largest number of dimensions that shapes and indexes store without an allocation.
const INLINE_DIMENSIONS: usize = 4;

/// Bytes on the heap of one shape or index of `rank` dimensions.
fn heap_bytes(rank: usize) -> u64 {
    if rank > INLINE_DIMENSIONS { 8 * rank as u64 } else { 0 }
}

/// Fails if `count` entries of `each` bytes take more than `limit`. `what` names the size in the
/// error.
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
