//! A device over host memory, whose addresses are addresses of the process.

use std::{
    ffi::c_void,
    ptr::{self, NonNull},
    sync::Arc,
};

use serdes_plugin::{
    Allocation, AllocationRequest, AllocatorStats, Description, DeviceMemory, HostSource,
    HostTarget, MemoryDevice, MemoryUsage, Result, Status,
};

use crate::pool::Pool;

/// The kind of the hardware, for the description of the devices.
pub const DEVICE_KIND: &str = "cpu";

/// The number of bytes of a pattern that are written one by one before they are copied.
const PATTERN_BYTES: usize = 1 << 10;

/// A device over host memory.
pub struct HostDevice {
    pool: Arc<Pool>,
}

impl HostDevice {
    pub(crate) fn new(pool: Arc<Pool>) -> Self {
        Self { pool }
    }
}

/// Returns the size of memory in the process, which fits its address space.
fn length(memory: &DeviceMemory) -> Result<usize> {
    usize::try_from(memory.size())
        .map_err(|_| Status::invalid_argument("more bytes than an address space has"))
}

/// Fails unless both sides of an operation have the same size.
fn same(left: usize, right: usize) -> Result<usize> {
    if left == right {
        Ok(left)
    } else {
        Err(Status::invalid_argument(format!("a copy of {right} bytes to {left}")))
    }
}

impl MemoryDevice for HostDevice {
    fn description(&self) -> Description {
        Description {
            hardware_name: Some(DEVICE_KIND.to_owned()),
            vendor: Some("serdes".to_owned()),
            ..Description::default()
        }
    }

    fn allocate(&self, request: AllocationRequest) -> Option<Allocation> {
        let start = self.pool.allocate(request.size, request.alignment)?;
        Some(Allocation { opaque: start.as_ptr(), size: request.size, payload: 0 })
    }

    fn deallocate(&self, memory: DeviceMemory) {
        // SAFETY: the value's promise: the host frees this memory, so it uses it no more.
        unsafe { self.pool.deallocate(memory.opaque().addr()) };
    }

    #[inline]
    fn read(&self, source: &DeviceMemory, target: &mut HostTarget) -> Result<()> {
        let length = same(target.len(), length(source)?)?;
        // SAFETY: by the promise of `DeviceMemory`, `length` bytes from `opaque` are allocated
        // memory of this platform, which is memory of the process; by that of `HostTarget`, as many
        // can be written at the target. They may overlap: `copy` allows that.
        unsafe { ptr::copy(source.opaque().cast::<u8>(), target.as_mut_ptr(), length) };
        Ok(())
    }

    #[inline]
    fn write(&self, target: &DeviceMemory, source: &HostSource) -> Result<()> {
        let length = same(length(target)?, source.len())?;
        // SAFETY: as in `read`, the other way round.
        unsafe { ptr::copy(source.as_ptr(), target.opaque().cast::<u8>(), length) };
        Ok(())
    }

    fn copy(&self, target: &DeviceMemory, source: &DeviceMemory) -> Result<()> {
        let length = same(length(target)?, length(source)?)?;
        // SAFETY: by the promise of `DeviceMemory`, both are allocated memory of this platform, of
        // whichever device, with at least `length` bytes. They may overlap: `copy` allows that.
        unsafe { ptr::copy(source.opaque().cast::<u8>(), target.opaque().cast::<u8>(), length) };
        Ok(())
    }

    fn fill(&self, target: &DeviceMemory, pattern: [u8; 4]) -> Result<()> {
        let length = length(target)?;
        let start = target.opaque().cast::<u8>();
        if pattern == [pattern[0]; 4] {
            // SAFETY: by the promise of `DeviceMemory`, `length` bytes from there are allocated
            // memory of this platform.
            unsafe { ptr::write_bytes(start, pattern[0], length) };
            return Ok(());
        }
        let mut piece = [0; PATTERN_BYTES];
        for bytes in piece.chunks_exact_mut(4) {
            bytes.copy_from_slice(&pattern);
        }
        let mut offset = 0;
        while offset < length {
            let size = (length - offset).min(PATTERN_BYTES);
            // SAFETY: as above: the range ends within `length`. `piece` is on the stack, so they do
            // not overlap.
            unsafe { ptr::copy_nonoverlapping(piece.as_ptr(), start.add(offset), size) };
            offset += size;
        }
        Ok(())
    }

    fn memory_usage(&self) -> Option<MemoryUsage> {
        Some(self.pool.usage())
    }

    fn allocator_stats(&self) -> Option<AllocatorStats> {
        Some(self.pool.stats())
    }

    fn allocate_host(&self, size: u64) -> Option<NonNull<c_void>> {
        self.pool.allocate_host(size)
    }

    unsafe fn deallocate_host(&self, start: NonNull<c_void>) {
        // SAFETY: the caller's promise.
        unsafe { self.pool.deallocate_host(start.addr().get()) };
    }

    fn allocate_unified(&self, size: u64) -> Option<NonNull<c_void>> {
        self.pool.allocate(size, 1)
    }

    unsafe fn deallocate_unified(&self, start: NonNull<c_void>) {
        // SAFETY: the caller's promise.
        unsafe { self.pool.deallocate(start.addr().get()) };
    }
}
