//! The safe way to implement a device: its memory, and copies from and to it.

use std::{
    alloc::{Layout, alloc, dealloc},
    ffi::c_void,
    ptr::NonNull,
};

use crate::{
    Result, Status,
    device::Description,
    memory::{
        Allocation, AllocationRequest, AllocatorStats, DeviceMemory, HostSource, HostTarget,
        MemoryUsage,
    },
};

/// The number of bytes that the default methods copy at a time; smaller under Miri, which is slow.
const STAGING_BYTES: usize = if cfg!(miri) { 1 << 9 } else { 64 << 10 };

/// A device that holds memory and has no streams of its own; [`Queued`](crate::Queued) adds
/// streams, events and timers.
///
/// Hosts call all methods from any thread at any time. A panic becomes a status of the call or of
/// the stream.
pub trait MemoryDevice: Send + Sync + 'static {
    /// Returns the description of the device. Called once, when the device is opened.
    fn description(&self) -> Description {
        Description::default()
    }

    /// Allocates device memory. `None` means that there is not enough left.
    fn allocate(&self, request: AllocationRequest) -> Option<Allocation>;

    /// Frees device memory that [`MemoryDevice::allocate`] returned; its size may be unknown (0).
    fn deallocate(&self, memory: DeviceMemory);

    /// Copies device memory to the host. Both sides have the same size, which is not 0.
    ///
    /// # Errors
    /// Any error that prevents it. A stream keeps its first failure.
    fn read(&self, source: &DeviceMemory, target: &mut HostTarget) -> Result<()>;

    /// Copies host memory to the device. Both sides have the same size, which is not 0.
    ///
    /// # Errors
    /// Any error that prevents it.
    fn write(&self, target: &DeviceMemory, source: &HostSource) -> Result<()>;

    /// Copies between device memories of the same size, which is not 0; they may overlap. The
    /// default copies through host memory, piece by piece.
    ///
    /// On a platform with several devices, one side may belong to a device other than this one.
    /// Only its address shows this, so the devices of a platform must not use the same addresses.
    ///
    /// # Errors
    /// Any error that prevents it.
    fn copy(&self, target: &DeviceMemory, source: &DeviceMemory) -> Result<()> {
        let mut staging =
            vec![0; STAGING_BYTES.min(usize::try_from(source.size()).unwrap_or(STAGING_BYTES))];
        // If the target is above the source and they overlap, the last piece is copied first.
        let backwards = target.address() > source.address();
        let pieces = source.size().div_ceil(staging.len().max(1) as u64);
        for step in 0..pieces {
            let piece = if backwards { pieces - 1 - step } else { step };
            let offset = piece * staging.len() as u64;
            let size = (source.size() - offset).min(staging.len() as u64);
            // The `size` bytes fit: they are no more than the vector has.
            let bytes = staging.get_mut(..size as usize);
            let (Some(from), Some(to), Some(bytes)) =
                (source.part(offset, size), target.part(offset, size), bytes)
            else {
                return Err(Status::invalid_argument(
                    "the two sides of a copy have different sizes",
                ));
            };
            // SAFETY: `bytes` outlives the value, which is used before the vector is accessed in
            // any other way.
            self.read(&from, &mut unsafe {
                HostTarget::from_raw(bytes.as_mut_ptr().cast(), bytes.len())
            })?;
            // SAFETY: as above; `bytes` is not written meanwhile.
            self.write(&to, &unsafe { HostSource::from_raw(bytes.as_ptr().cast(), bytes.len()) })?;
        }
        Ok(())
    }

    /// Fills device memory (of a size that is not 0) with the repeated pattern, truncated at the
    /// end. The default copies from host memory.
    ///
    /// # Errors
    /// Any error that prevents it.
    fn fill(&self, target: &DeviceMemory, pattern: [u8; 4]) -> Result<()> {
        let length = STAGING_BYTES.min(usize::try_from(target.size()).unwrap_or(STAGING_BYTES));
        let mut staging = pattern.repeat(length.div_ceil(pattern.len()));
        staging.truncate(length);
        let mut offset = 0;
        while offset < target.size() {
            let size = (target.size() - offset).min(staging.len() as u64);
            // The `size` bytes exist: they are no more than the vector has.
            let bytes = staging.get(..size as usize);
            let (Some(to), Some(bytes)) = (target.part(offset, size), bytes) else { break };
            // SAFETY: `bytes` outlives the value and is not written meanwhile.
            self.write(&to, &unsafe { HostSource::from_raw(bytes.as_ptr().cast(), bytes.len()) })?;
            offset += size;
        }
        Ok(())
    }

    /// Returns the free and the total memory. TensorFlow does not use a device that returns `None`.
    fn memory_usage(&self) -> Option<MemoryUsage>;

    /// Returns the statistics of the allocator, if it has any.
    fn allocator_stats(&self) -> Option<AllocatorStats> {
        None
    }

    /// Allocates host memory from and to which the device copies at full speed. The default is
    /// plain memory. `None` means that there is not enough left.
    fn allocate_host(&self, size: u64) -> Option<NonNull<c_void>> {
        allocate_plain(size)
    }

    /// Frees host memory.
    ///
    /// # Safety
    /// The address comes from [`MemoryDevice::allocate_host`] of this device, and nothing uses the
    /// memory any more.
    unsafe fn deallocate_host(&self, start: NonNull<c_void>) {
        // SAFETY: the caller's promise, for the default `allocate_host`.
        unsafe { deallocate_plain(start) };
    }

    /// Allocates memory that host and device access at the same address. `None` means that it is
    /// not supported, or not enough is left.
    fn allocate_unified(&self, size: u64) -> Option<NonNull<c_void>> {
        let _ = size;
        None
    }

    /// Frees unified memory.
    ///
    /// # Safety
    /// The address comes from [`MemoryDevice::allocate_unified`] of this device, and nothing uses
    /// the memory any more.
    unsafe fn deallocate_unified(&self, start: NonNull<c_void>) {
        let _ = start;
    }
}

/// The alignment of plain host memory, and the size of the header before it that stores its size.
const PLAIN_ALIGNMENT: usize = 64;

fn plain_layout(size: usize) -> Option<Layout> {
    Layout::from_size_align(size.checked_add(PLAIN_ALIGNMENT)?, PLAIN_ALIGNMENT).ok()
}

/// Allocates host memory from Rust's allocator, and stores the size before it, because the C API
/// does not return it.
fn allocate_plain(size: u64) -> Option<NonNull<c_void>> {
    let size = usize::try_from(size).ok()?;
    let layout = plain_layout(size)?;
    // SAFETY: the layout has at least `PLAIN_ALIGNMENT` bytes.
    let block = NonNull::new(unsafe { alloc(layout) })?;
    // SAFETY: the block begins with `PLAIN_ALIGNMENT` bytes, aligned for a `usize`, and not shared.
    unsafe { block.cast::<usize>().write(size) };
    // SAFETY: the block has `PLAIN_ALIGNMENT` bytes before the caller's part, which begins inside
    // the block or at its end.
    Some(unsafe { block.byte_add(PLAIN_ALIGNMENT) }.cast())
}

/// # Safety
/// The address comes from [`allocate_plain`], and nothing uses the memory any more.
unsafe fn deallocate_plain(start: NonNull<c_void>) {
    // SAFETY: `allocate_plain` placed the start of the block this far before the address it
    // returned.
    let block = unsafe { start.byte_sub(PLAIN_ALIGNMENT) };
    // SAFETY: `allocate_plain` wrote the size there.
    let size = unsafe { block.cast::<usize>().read() };
    if let Some(layout) = plain_layout(size) {
        // SAFETY: the block was allocated with this layout, which is computed from the same size.
        unsafe { dealloc(block.cast().as_ptr(), layout) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Slab;

    #[test]
    fn plain_host_memory_is_aligned_and_its_own() {
        for size in [0, 1, 63, 64, 4097] {
            let start = allocate_plain(size).unwrap();
            assert_eq!(start.addr().get() % PLAIN_ALIGNMENT, 0);
            // SAFETY: the block has `size` bytes and is ours.
            unsafe { start.as_ptr().cast::<u8>().write_bytes(0xAB, size as usize) };
            // SAFETY: it comes from `allocate_plain` and is not used again.
            unsafe { deallocate_plain(start) };
        }
        assert!(allocate_plain(u64::MAX).is_none());
    }

    #[test]
    fn default_copies_move_overlapping_memory_either_way() {
        let length = STAGING_BYTES * 2 + 100;
        for (from, to) in [(0_usize, 300_usize), (300, 0), (0, STAGING_BYTES), (5, 5)] {
            let slab = Slab::new(1 << 20);
            let whole = slab
                .allocate(AllocationRequest {
                    size: 8 * STAGING_BYTES as u64,
                    alignment: 1,
                    memory_space: 0,
                })
                .unwrap();
            let bytes: Vec<u8> = (0..8 * STAGING_BYTES).map(|index| (index % 251) as u8).collect();
            slab.poke(&whole, &bytes);
            // SAFETY: a slab follows no addresses.
            let whole_memory = unsafe { DeviceMemory::from_raw(whole.opaque, whole.size, 0) };
            let source = whole_memory.part(from as u64, length as u64).unwrap();
            let target = whole_memory.part(to as u64, length as u64).unwrap();
            slab.copy(&target, &source).unwrap();
            let mut expected = bytes.clone();
            expected.copy_within(from..from + length, to);
            assert_eq!(slab.peek(&whole), expected);
        }
    }

    #[test]
    fn default_fills_repeat_the_pattern_and_cut_it_off() {
        let slab = Slab::new(1 << 20);
        let size = STAGING_BYTES + 7;
        let whole = slab
            .allocate(AllocationRequest { size: size as u64, alignment: 1, memory_space: 0 })
            .unwrap();
        // SAFETY: a slab follows no addresses.
        let memory = unsafe { DeviceMemory::from_raw(whole.opaque, whole.size, 0) };
        slab.fill(&memory, [1, 2, 3, 4]).unwrap();
        let expected: Vec<u8> = (0..size).map(|index| (index % 4) as u8 + 1).collect();
        assert_eq!(slab.peek(&whole), expected);
    }
}
