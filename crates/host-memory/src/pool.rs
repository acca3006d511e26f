//! The memory of one device: what is allocated, how much may be, and statistics.

use std::collections::HashMap;
use std::ffi::c_void;
use std::ptr::NonNull;
use std::sync::{Mutex, MutexGuard, PoisonError};

use serdes_plugin::{AllocatorStats, MemoryUsage};

use crate::blocks::{Block, Blocks};

/// Most bytes of freed device memory that wait for reuse.
const MOST_FREE_DEVICE_BYTES: usize = 256 << 20;
/// Most bytes of freed host memory that wait for reuse.
const MOST_FREE_HOST_BYTES: usize = 64 << 20;
/// The memory of a device on a machine that does not say how much it has: far more than any has.
const UNKNOWN_MEMORY: u64 = 1 << 46;

/// The memory of one device.
#[derive(Debug)]
pub(crate) struct Pool {
    device: Mutex<Arena>,
    host: Mutex<Arena>,
    total: u64,
    limit: Option<u64>,
}

/// Memory of one kind.
#[derive(Debug)]
struct Arena {
    blocks: Blocks,
    /// What is in use, by address, with the size that was asked for.
    live: HashMap<usize, (Block, u64)>,
    stats: AllocatorStats,
}

impl Arena {
    fn new(most_free_bytes: usize) -> Self {
        Self {
            blocks: Blocks::new(most_free_bytes),
            live: HashMap::new(),
            stats: AllocatorStats::default(),
        }
    }

    /// Memory of `size` bytes, unless more than `most` would be in use then.
    fn allocate(&mut self, size: u64, alignment: u64, most: u64) -> Option<NonNull<c_void>> {
        let in_use = self.stats.bytes_in_use.checked_add(size).filter(|in_use| *in_use <= most)?;
        let block =
            self.blocks.take(usize::try_from(size).ok()?, usize::try_from(alignment).ok()?)?;
        let start = block.start();
        self.live.insert(start.addr().get(), (block, size));
        let held = self.blocks.held_bytes() as u64;
        let stats = &mut self.stats;
        stats.allocations += 1;
        stats.bytes_in_use = in_use;
        stats.peak_bytes_in_use = stats.peak_bytes_in_use.max(in_use);
        stats.largest_allocation = stats.largest_allocation.max(size);
        stats.peak_bytes_reserved = stats.peak_bytes_reserved.max(held);
        Some(start.cast())
    }

    /// Frees memory that is in use; an address at which none begins is left alone.
    ///
    /// # Safety
    /// Nobody uses the memory any more.
    unsafe fn deallocate(&mut self, address: usize) {
        if let Some((block, size)) = self.live.remove(&address) {
            self.stats.bytes_in_use -= size;
            // SAFETY: the block was in `live`, so it is from `blocks` and not put back; the rest is the caller's promise.
            unsafe { self.blocks.put(block) };
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        for (_, (block, _)) in self.live.drain() {
            // SAFETY: the block was in `live`, so it is from `blocks` and not put back. The pool goes with the last handle of its device and
            // platform, after which a host uses none of its memory.
            unsafe { self.blocks.put(block) };
        }
    }
}

fn lock(arena: &Mutex<Arena>) -> MutexGuard<'_, Arena> {
    arena.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    /// A device with that much memory, in bytes, or as much as the machine has.
    pub(crate) fn new(limit: Option<u64>) -> Self {
        Self {
            device: Mutex::new(Arena::new(MOST_FREE_DEVICE_BYTES)),
            host: Mutex::new(Arena::new(MOST_FREE_HOST_BYTES)),
            total: limit.or_else(memory_of_machine).unwrap_or(UNKNOWN_MEMORY),
            limit,
        }
    }

    /// Device memory (unified memory is the same). `None` if there is not that much left.
    pub(crate) fn allocate(&self, size: u64, alignment: u64) -> Option<NonNull<c_void>> {
        lock(&self.device).allocate(size, alignment, self.total)
    }

    /// Frees device memory.
    ///
    /// # Safety
    /// Nobody uses the memory at that address any more.
    pub(crate) unsafe fn deallocate(&self, address: usize) {
        // SAFETY: the caller's promise.
        unsafe { lock(&self.device).deallocate(address) };
    }

    /// Host memory. It is not the device's, so the device's limit does not count.
    pub(crate) fn allocate_host(&self, size: u64) -> Option<NonNull<c_void>> {
        lock(&self.host).allocate(size, 1, u64::MAX)
    }

    /// Frees host memory.
    ///
    /// # Safety
    /// Nobody uses the memory at that address any more.
    pub(crate) unsafe fn deallocate_host(&self, address: usize) {
        // SAFETY: the caller's promise.
        unsafe { lock(&self.host).deallocate(address) };
    }

    pub(crate) fn usage(&self) -> MemoryUsage {
        let in_use = lock(&self.device).stats.bytes_in_use;
        MemoryUsage { free: self.total.saturating_sub(in_use), total: self.total }
    }

    pub(crate) fn stats(&self) -> AllocatorStats {
        let arena = lock(&self.device);
        AllocatorStats {
            limit: self.limit,
            bytes_reserved: arena.blocks.held_bytes() as u64,
            largest_free_block: arena.blocks.largest_free() as u64,
            ..arena.stats
        }
    }
}

/// The machine's memory in bytes, if it says.
fn memory_of_machine() -> Option<u64> {
    if cfg!(miri) {
        // Miri keeps tests from the machine.
        return None;
    }
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    let kibibytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_kept_to_the_byte() {
        let pool = Pool::new(Some(1000));
        let first = pool.allocate(600, 1).unwrap();
        assert!(pool.allocate(401, 1).is_none());
        let second = pool.allocate(400, 1).unwrap();
        assert_eq!(pool.usage(), MemoryUsage { free: 0, total: 1000 });
        for start in [first, second] {
            // SAFETY: nothing uses the memory.
            unsafe { pool.deallocate(start.addr().get()) };
        }
        assert_eq!(pool.usage().free, 1000);
        let stats = pool.stats();
        assert_eq!((stats.allocations, stats.bytes_in_use, stats.peak_bytes_in_use), (2, 0, 1000));
        assert_eq!((stats.largest_allocation, stats.limit), (600, Some(1000)));
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri ends when memory does")]
    fn sizes_that_overflow_are_refused() {
        let pool = Pool::new(None);
        let _held = pool.allocate(1, 1).unwrap();
        assert!(pool.allocate(u64::MAX, 1).is_none());
        assert!(pool.allocate(1 << 60, 1).is_none());
        assert!(pool.allocate_host(1 << 62).is_none());
    }

    #[test]
    fn an_address_that_is_not_allocated_is_left_alone() {
        let pool = Pool::new(None);
        // SAFETY: nothing uses memory at these addresses.
        unsafe {
            pool.deallocate(4096);
            pool.deallocate_host(0);
        }
        assert_eq!(pool.stats().bytes_in_use, 0);
    }

    #[test]
    fn nothing_is_unaligned_and_empty_memory_has_an_address() {
        let pool = Pool::new(None);
        for (size, alignment) in [(0, 1), (3, 64), (5, 4096), (1 << 20, 1 << 21)] {
            let start = pool.allocate(size, alignment).unwrap();
            assert_eq!(start.addr().get() as u64 % alignment.max(256), 0);
            // SAFETY: nothing uses the memory.
            unsafe { pool.deallocate(start.addr().get()) };
        }
    }
}
