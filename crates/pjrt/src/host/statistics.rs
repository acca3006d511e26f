//! A plug-in's statistics of a device's memory.

use serdes_abi::pjrt::{Minor, args::*};

/// Statistics of a device's memory, in bytes unless stated otherwise. Counts that a plug-in lacks
/// are `None`.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryStatistics {
    /// Bytes in use now.
    pub bytes_in_use: i64,
    /// The peak of the bytes in use.
    pub peak_bytes_in_use: Option<i64>,
    /// The number of allocations.
    pub allocations: Option<i64>,
    /// The largest allocation.
    pub largest_allocation: Option<i64>,
    /// The limit on the bytes in use.
    pub bytes_limit: Option<i64>,
    /// Reserved bytes, which are not available.
    pub bytes_reserved: Option<i64>,
    /// The peak of the reserved bytes.
    pub peak_bytes_reserved: Option<i64>,
    /// The limit on the reserved bytes.
    pub bytes_reservable_limit: Option<i64>,
    /// The largest free block.
    pub largest_free_block: Option<i64>,
    /// The size of the pool from which allocations are made.
    pub pool_bytes: Option<i64>,
    /// The peak size of the pool.
    pub peak_pool_bytes: Option<i64>,
    /// The peak of the allocated bytes.
    pub peak_allocated_bytes: Option<i64>,
}

impl MemoryStatistics {
    /// Reads the fields that a plug-in of `minor` has written.
    pub(super) fn of(found: &PJRT_Device_MemoryStats_Args, minor: Minor) -> Self {
        let given = |value, is_set: u8| (is_set != 0).then_some(value);
        // In minors without this field, the memory after the struct is the host's, and zero.
        let peak = given(found.peak_allocated_bytes, found.peak_allocated_bytes_is_set)
            .filter(|_| has::<PJRT_Device_MemoryStats_Args>("peak_allocated_bytes", minor));
        Self {
            bytes_in_use: found.bytes_in_use,
            peak_bytes_in_use: given(found.peak_bytes_in_use, found.peak_bytes_in_use_is_set),
            allocations: given(found.num_allocs, found.num_allocs_is_set),
            largest_allocation: given(found.largest_alloc_size, found.largest_alloc_size_is_set),
            bytes_limit: given(found.bytes_limit, found.bytes_limit_is_set),
            bytes_reserved: given(found.bytes_reserved, found.bytes_reserved_is_set),
            peak_bytes_reserved: given(found.peak_bytes_reserved, found.peak_bytes_reserved_is_set),
            bytes_reservable_limit: given(
                found.bytes_reservable_limit,
                found.bytes_reservable_limit_is_set,
            ),
            largest_free_block: given(
                found.largest_free_block_bytes,
                found.largest_free_block_bytes_is_set,
            ),
            pool_bytes: given(found.pool_bytes, found.pool_bytes_is_set),
            peak_pool_bytes: given(found.peak_pool_bytes, found.peak_pool_bytes_is_set),
            peak_allocated_bytes: peak,
        }
    }
}

/// Returns true if structs of `minor` have the field.
fn has<A: Arguments>(field: &str, minor: Minor) -> bool {
    A::STRUCT.field(field, minor).is_some()
}
