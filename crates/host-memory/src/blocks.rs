//! Blocks of memory from the system, kept for reuse.
//!
//! The first access to a fresh page costs far more than the copy into it: the system has to find
//! and clear the page. So large blocks request huge pages, and a freed large block is kept for the
//! next request of its size class. Kept blocks never make the process hold more memory than its
//! earlier peak, and never exceed a limit.

use std::{
    alloc::{Layout, alloc, dealloc},
    collections::BTreeMap,
    ptr::NonNull,
};

/// The alignment of every block, in bytes: enough for the widest vector types, and for the
/// assumptions of TensorFlow's kernels.
const ALIGNMENT: usize = 256;
/// Blocks of at least this size are whole pages and are kept for reuse; for smaller ones, the
/// system's allocator reuses memory well.
const LARGE: usize = 128 << 10;
/// The size of a page.
const PAGE: usize = 4 << 10;
/// The size of a huge page.
const HUGE_PAGE: usize = 2 << 20;

/// A block: its address and its layout.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Block {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: a block is an address and two numbers; its owner decides who may access the memory.
unsafe impl Send for Block {}

impl Block {
    /// Returns the address of the first byte.
    pub(crate) fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Returns the size in bytes, at least the requested one.
    pub(crate) fn size(&self) -> usize {
        self.layout.size()
    }
}

/// A store of free blocks; blocks in use are only counted.
#[derive(Debug)]
pub(crate) struct Blocks {
    /// Free blocks by size.
    free: BTreeMap<usize, Vec<Block>>,
    free_bytes: usize,
    used_bytes: usize,
    peak_bytes: usize,
    most_free_bytes: usize,
}

impl Blocks {
    /// Creates an empty store that keeps at most `most_free_bytes` bytes of free blocks.
    pub(crate) fn new(most_free_bytes: usize) -> Self {
        Self { free: BTreeMap::new(), free_bytes: 0, used_bytes: 0, peak_bytes: 0, most_free_bytes }
    }

    /// Returns the number of bytes held from the system, in use or free.
    pub(crate) fn held_bytes(&self) -> usize {
        self.used_bytes + self.free_bytes
    }

    /// Returns the size of the largest free block, in bytes.
    pub(crate) fn largest_free(&self) -> usize {
        self.free.last_key_value().map_or(0, |(size, _)| *size)
    }

    /// Returns a block of at least `size` bytes, aligned to `alignment` (a power of two). `None` if
    /// the system has none. Its content is unspecified.
    pub(crate) fn take(&mut self, size: usize, alignment: usize) -> Option<Block> {
        let layout = class(size, alignment)?;
        let waiting = self.free.get_mut(&layout.size()).and_then(|blocks| {
            let index = blocks.iter().rposition(|block| block.layout.align() >= layout.align())?;
            Some((blocks.swap_remove(index), blocks.is_empty()))
        });
        let block = if let Some((block, was_last)) = waiting {
            if was_last {
                self.free.remove(&layout.size());
            }
            self.free_bytes -= layout.size();
            block
        } else {
            // Fresh memory must not be added to free blocks if both together exceed the earlier
            // peak.
            while self.free_bytes > 0 && self.held_bytes() + layout.size() > self.peak_bytes {
                self.release_one();
            }
            fresh(layout)?
        };
        self.used_bytes += layout.size();
        self.peak_bytes = self.peak_bytes.max(self.used_bytes);
        Some(block)
    }

    /// Returns a block to the store.
    ///
    /// # Safety
    /// It comes from [`Blocks::take`] of this store, was not returned before, and its memory is no
    /// longer used.
    pub(crate) unsafe fn put(&mut self, block: Block) {
        self.used_bytes -= block.size();
        if block.size() < LARGE || block.size() > self.most_free_bytes {
            // SAFETY: the caller's promise.
            unsafe { release(block) };
            return;
        }
        while self.free_bytes + block.size() > self.most_free_bytes {
            self.release_one();
        }
        self.free_bytes += block.size();
        self.free.entry(block.size()).or_default().push(block);
    }

    /// Returns the largest free block to the system.
    fn release_one(&mut self) {
        let Some(mut entry) = self.free.last_entry() else { return };
        if let Some(block) = entry.get_mut().pop() {
            self.free_bytes -= block.size();
            // SAFETY: free blocks are not in use, and this one is removed from the list.
            unsafe { release(block) };
        }
        if entry.get().is_empty() {
            entry.remove();
        }
    }
}

impl Drop for Blocks {
    fn drop(&mut self) {
        while self.free_bytes > 0 {
            self.release_one();
        }
    }
}

/// Returns the size and alignment of the block for a request. Sizes of large blocks have four bits
/// of precision, so that blocks of similar size are interchangeable; the excess is never accessed,
/// so it costs only addresses.
fn class(size: usize, alignment: usize) -> Option<Layout> {
    let size = size.max(1);
    if size < LARGE {
        return Layout::from_size_align(
            size.checked_next_multiple_of(ALIGNMENT)?,
            alignment.max(ALIGNMENT),
        )
        .ok();
    }
    let step = (1_usize << size.ilog2() >> 3).max(PAGE);
    let size = size.checked_next_multiple_of(step)?;
    let natural = if size >= 2 * HUGE_PAGE { HUGE_PAGE } else { PAGE };
    Layout::from_size_align(size, alignment.max(natural)).ok()
}

fn fresh(layout: Layout) -> Option<Block> {
    // SAFETY: no class has size 0.
    let start = NonNull::new(unsafe { alloc(layout) })?;
    advise_huge_pages(start, layout.size());
    Some(Block { start, layout })
}

/// # Safety
/// The block comes from [`fresh`], was not released before, and its memory is no longer used.
unsafe fn release(block: Block) {
    // SAFETY: the block was allocated with this layout, by the caller's promise.
    unsafe { dealloc(block.start.as_ptr(), block.layout) };
}

/// Requests huge pages for the part of the block that fits whole ones.
#[cfg(all(target_os = "linux", not(miri)))]
fn advise_huge_pages(start: NonNull<u8>, size: usize) {
    let whole = size / HUGE_PAGE * HUGE_PAGE;
    if whole > 0 && start.addr().get().is_multiple_of(HUGE_PAGE) {
        // SAFETY: the range lies in a block that was just allocated, begins at a page, and the
        // advice does not change its contents. If the system does not take the advice, pages are
        // small: nothing to report.
        unsafe { libc::madvise(start.as_ptr().cast(), whole, libc::MADV_HUGEPAGE) };
    }
}

#[cfg(not(all(target_os = "linux", not(miri))))]
fn advise_huge_pages(_start: NonNull<u8>, _size: usize) {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_aligned_as_asked_and_as_is_good_for_copies() {
        let mut blocks = Blocks::new(0);
        for size in [0, 1, 255, 4096, LARGE - 1, LARGE, 3 * HUGE_PAGE + 1] {
            for alignment in [1, 64, 8192] {
                let block = blocks.take(size, alignment).unwrap();
                assert!(block.size() >= size);
                assert_eq!(block.start().addr().get() % alignment.max(ALIGNMENT), 0);
                // SAFETY: just taken, and not used.
                unsafe { blocks.put(block) };
            }
        }
        assert_eq!(blocks.held_bytes(), 0);
    }

    #[test]
    fn a_large_block_that_was_freed_is_used_again() {
        let mut blocks = Blocks::new(1 << 20);
        let first = blocks.take(300_000, 1).unwrap();
        // SAFETY: just taken, and not used.
        unsafe { blocks.put(first) };
        assert_eq!(blocks.largest_free(), first.size());
        let second = blocks.take(299_000, 1).unwrap();
        assert_eq!(second.start(), first.start());
        assert_eq!(blocks.largest_free(), 0);
        // SAFETY: just taken, and not used.
        unsafe { blocks.put(second) };
    }

    #[test]
    fn cached_blocks_stay_within_the_limit_and_peak_use() {
        let mut blocks = Blocks::new(1 << 20);
        let held: Vec<Block> = (0..8).map(|_| blocks.take(256 << 10, 1).unwrap()).collect();
        for block in held {
            // SAFETY: taken above, and not used.
            unsafe { blocks.put(block) };
        }
        assert_eq!(blocks.free_bytes, 1 << 20);
        let other = blocks.take(2 << 20, 1).unwrap();
        assert!(blocks.held_bytes() <= 2 << 20, "the waiting blocks made room");
        // SAFETY: just taken, and not used.
        unsafe { blocks.put(other) };
        assert_eq!(blocks.held_bytes(), 0, "a block above the limit does not wait");
    }

    #[test]
    #[cfg_attr(miri, ignore = "Miri ends when memory does")]
    fn impossible_sizes_are_refused() {
        let mut blocks = Blocks::new(0);
        assert!(blocks.take(usize::MAX, 1).is_none());
        assert!(blocks.take(isize::MAX as usize, 1).is_none());
        assert!(blocks.take(1, 1 << 63).is_none());
        assert_eq!(blocks.held_bytes(), 0);
    }
}
