//! The ranges of host memory that plug-ins have allocated and that are not freed yet.
//!
//! A slice of it relies only on the plug-in's result, and two slices of the same memory must never
//! exist at once. So each range is recorded here while it is in use, and any overlapping range is
//! refused.

use std::{
    collections::BTreeMap,
    ptr::NonNull,
    sync::{Mutex, PoisonError},
};

use crate::error::Error;

/// The first address and the end of each range, for all plug-ins of the process, which share its
/// addresses. No two overlap.
static LIVE: Mutex<BTreeMap<usize, usize>> = Mutex::new(BTreeMap::new());

/// A range of addresses that has no other owner. It must be dropped before the memory is returned
/// to the plug-in, which may reuse the addresses immediately.
#[derive(Debug)]
pub(super) struct LiveRange {
    start: usize,
}

impl LiveRange {
    /// Records `bytes` bytes from `start`, which `call` of a plug-in returned.
    pub(super) fn claim(
        call: &'static str,
        start: NonNull<u8>,
        bytes: usize,
    ) -> Result<Self, Error> {
        let start = start.addr().get();
        let shared = || Error::MemoryInUse { call, bytes: bytes as u64 };
        let end = start.checked_add(bytes).ok_or_else(shared)?;
        let mut live = LIVE.lock().unwrap_or_else(PoisonError::into_inner);
        // The ranges do not overlap, so the last one that begins before the end is the one that
        // ends last.
        let last = live.range(..end).next_back();
        if last.is_some_and(|(_, &others_end)| others_end > start) {
            return Err(shared());
        }
        live.insert(start, end);
        Ok(Self { start })
    }
}

impl Drop for LiveRange {
    fn drop(&mut self) {
        LIVE.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Uses addresses of an existing page, so that no other allocation has them.
    #[test]
    fn ranges_that_share_a_byte_are_refused_and_neighbours_are_not() {
        let mut page = vec![0u8; 4096];
        let start = page.as_mut_ptr();
        let claim = |from: usize, bytes: usize| {
            let at = NonNull::new(start.wrapping_add(from)).unwrap();
            LiveRange::claim("host_memory_allocate", at, bytes)
        };
        let middle = claim(1000, 1000).unwrap();
        for (from, bytes) in [(1000, 1000), (0, 1001), (1999, 1), (1500, 10), (0, 4096)] {
            let error = claim(from, bytes).unwrap_err();
            assert!(matches!(error, Error::MemoryInUse { .. }), "{from} {bytes}: {error}");
        }
        let around = (claim(0, 1000).unwrap(), claim(2000, 2096).unwrap());
        drop(middle);
        let middle = claim(1500, 500).unwrap();
        drop((around, middle));
        assert!(claim(0, usize::MAX).is_err());
    }
}
