//! The memory of one device: its allocations, its limit, and statistics.

use std::{
    collections::HashMap,
    ffi::c_void,
    ptr::NonNull,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use serdes_plugin::{AllocatorStats, MemoryUsage};

use crate::{
    blocks::{Block, Blocks},
    machine::available_memory,
};

/// The maximum number of bytes of freed device memory that are kept for reuse.
const MOST_FREE_DEVICE_BYTES: usize = 256 << 20;
/// The maximum number of bytes of freed host memory that are kept for reuse.
const MOST_FREE_HOST_BYTES: usize = 64 << 20;
/// A number of bytes that several arenas share.
#[derive(Debug)]
pub(crate) struct Ledger {
    total: u64,
    used: AtomicU64,
}

impl Ledger {
    pub(crate) fn new(total: u64) -> Self {
        Self { total, used: AtomicU64::new(0) }
    }

    /// Creates a ledger of the machine's free memory, without an eighth that the program itself may
    /// need.
    pub(crate) fn of_machine() -> Self {
        let available = available_memory();
        Self::new(available - available / 8)
    }

    /// Takes `bytes` bytes if they are left; returns false if they are not.
    fn take(&self, bytes: u64) -> bool {
        let taken = self.used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
            used.checked_add(bytes).filter(|used| *used <= self.total)
        });
        taken.is_ok()
    }

    fn give_back(&self, bytes: u64) {
        self.used.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn free(&self) -> u64 {
        self.total.saturating_sub(self.used.load(Ordering::Relaxed))
    }
}

/// The memory of one device.
#[derive(Debug)]
pub(crate) struct Pool {
    device: Mutex<Arena>,
    host: Mutex<Arena>,
    limit: Option<u64>,
}

/// Memory of one kind.
#[derive(Debug)]
struct Arena {
    blocks: Blocks,
    /// Blocks in use by address, with the requested size in bytes.
    live: HashMap<usize, (Block, u64)>,
    stats: AllocatorStats,
    ledger: Arc<Ledger>,
}

impl Arena {
    fn new(most_free_bytes: usize, ledger: Arc<Ledger>) -> Self {
        Self {
            blocks: Blocks::new(most_free_bytes),
            live: HashMap::new(),
            stats: AllocatorStats::default(),
            ledger,
        }
    }

    /// Allocates `size` bytes, unless that exceeds the rest of the limit.
    fn allocate(&mut self, size: u64, alignment: u64) -> Option<NonNull<c_void>> {
        let in_use = self.stats.bytes_in_use.checked_add(size)?;
        let (bytes, alignment) = (usize::try_from(size).ok()?, usize::try_from(alignment).ok()?);
        if !self.ledger.take(size) {
            return None;
        }
        let Some(block) = self.blocks.take(bytes, alignment) else {
            self.ledger.give_back(size);
            return None;
        };
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

    /// Frees memory in use; an address at which no block begins is ignored.
    ///
    /// # Safety
    /// The memory is no longer used.
    unsafe fn deallocate(&mut self, address: usize) {
        if let Some((block, size)) = self.live.remove(&address) {
            self.stats.bytes_in_use -= size;
            self.ledger.give_back(size);
            // SAFETY: the block was in `live`, so it is from `blocks` and not put back; the rest is
            // the caller's promise.
            unsafe { self.blocks.put(block) };
        }
    }
}

impl Drop for Arena {
    fn drop(&mut self) {
        for (_, (block, size)) in self.live.drain() {
            self.ledger.give_back(size);
            // SAFETY: the block was in `live`, so it is from `blocks` and not returned. The pool is
            // dropped with the last handle of its device and platform, after which a host uses none
            // of its memory.
            unsafe { self.blocks.put(block) };
        }
    }
}

fn lock(arena: &Mutex<Arena>) -> MutexGuard<'_, Arena> {
    arena.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    /// Creates a device with `limit` bytes of memory, or as much as the machine has left. Its host
    /// memory is always limited by the machine.
    pub(crate) fn new(limit: Option<u64>, machine: Arc<Ledger>) -> Self {
        let own = limit.map_or_else(|| Arc::clone(&machine), |limit| Arc::new(Ledger::new(limit)));
        Self {
            device: Mutex::new(Arena::new(MOST_FREE_DEVICE_BYTES, own)),
            host: Mutex::new(Arena::new(MOST_FREE_HOST_BYTES, machine)),
            limit,
        }
    }

    /// Allocates device memory, which also serves as unified memory. `None` if there is not enough
    /// left.
    pub(crate) fn allocate(&self, size: u64, alignment: u64) -> Option<NonNull<c_void>> {
        lock(&self.device).allocate(size, alignment)
    }

    /// Frees device memory.
    ///
    /// # Safety
    /// The memory at that address is no longer used.
    pub(crate) unsafe fn deallocate(&self, address: usize) {
        // SAFETY: the caller's promise.
        unsafe { lock(&self.device).deallocate(address) };
    }

    /// Allocates host memory. It is not the device's, so only the machine's limit applies, not the
    /// device's.
    pub(crate) fn allocate_host(&self, size: u64) -> Option<NonNull<c_void>> {
        lock(&self.host).allocate(size, 1)
    }

    /// Frees host memory.
    ///
    /// # Safety
    /// The memory at that address is no longer used.
    pub(crate) unsafe fn deallocate_host(&self, address: usize) {
        // SAFETY: the caller's promise.
        unsafe { lock(&self.host).deallocate(address) };
    }

    pub(crate) fn usage(&self) -> MemoryUsage {
        let arena = lock(&self.device);
        MemoryUsage { free: arena.ledger.free(), total: arena.ledger.total }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn pool(limit: Option<u64>) -> Pool {
        Pool::new(limit, Arc::new(Ledger::of_machine()))
    }

    #[test]
    fn unlimited_devices_share_the_memory_of_the_machine() {
        let machine = Arc::new(Ledger::new(4096));
        let [first, second] = [(); 2].map(|()| Pool::new(None, Arc::clone(&machine)));
        let told = Pool::new(Some(1024), Arc::clone(&machine));
        let device = first.allocate(1024, 1).unwrap();
        let pinned = second.allocate_host(2048).unwrap();
        assert_eq!(second.usage(), MemoryUsage { free: 1024, total: 4096 });
        assert!(second.allocate(1025, 1).is_none());
        assert!(first.allocate_host(1025).is_none());
        assert!(told.allocate_host(1025).is_none());
        assert!(told.allocate(1024, 1).is_some());
        // SAFETY: nothing uses the memory.
        unsafe {
            first.deallocate(device.addr().get());
            second.deallocate_host(pinned.addr().get());
        }
        assert_eq!(machine.free(), 4096);
    }

    #[test]
    fn a_limit_is_kept_to_the_byte() {
        let pool = pool(Some(1000));
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
        let pool = pool(None);
        let _held = pool.allocate(1, 1).unwrap();
        assert!(pool.allocate(u64::MAX, 1).is_none());
        assert!(pool.allocate(1 << 60, 1).is_none());
        assert!(pool.allocate_host(1 << 62).is_none());
    }

    #[test]
    fn an_address_that_is_not_allocated_is_left_alone() {
        let pool = pool(None);
        // SAFETY: nothing uses memory at these addresses.
        unsafe {
            pool.deallocate(4096);
            pool.deallocate_host(0);
        }
        assert_eq!(pool.stats().bytes_in_use, 0);
    }

    #[test]
    fn nothing_is_unaligned_and_empty_memory_has_an_address() {
        let pool = pool(None);
        for (size, alignment) in [(0, 1), (3, 64), (5, 4096), (1 << 20, 1 << 21)] {
            let start = pool.allocate(size, alignment).unwrap();
            assert_eq!(start.addr().get() as u64 % alignment.max(256), 0);
            // SAFETY: nothing uses the memory.
            unsafe { pool.deallocate(start.addr().get()) };
        }
    }
}
