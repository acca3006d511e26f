//! The functions of SP_StreamExecutor that allocate, copy and fill.

use std::{
    ffi::c_void,
    ptr::{self, NonNull},
};

use serdes_abi::{
    SP_AllocatorStats, SP_Device, SP_DeviceMemoryBase, SP_Stream, TF_Bool, TF_Status,
};

use super::{
    execution,
    host_struct::{HostStruct, write_out},
    state::{OpenDevice, try_device, with_device},
};
use crate::{
    Result, Status,
    device::{Device, Platform},
    memory::{AllocationRequest, AllocatorStats, DeviceMemory, HostSource, HostTarget},
};

pub(super) unsafe extern "C" fn allocate<P: Platform>(
    device: *const SP_Device,
    size: u64,
    memory_space: i64,
    target: *mut SP_DeviceMemoryBase,
) {
    if target.is_null() {
        return;
    }
    let request = AllocationRequest { size, alignment: 1, memory_space };
    // SAFETY: the host passes a device of this platform.
    let allocation = unsafe { try_device::<P, _>(device, |state| allocate_device(state, request)) };
    let (opaque, size, payload) = allocation
        .map_or((ptr::null_mut(), 0, 0), |found| (found.opaque, found.size, found.payload));
    let filled = SP_DeviceMemoryBase {
        struct_size: 0,
        // SAFETY: the pointer is not NULL, and the struct has one form in all layouts; the field
        // may hold a value of the host.
        ext: unsafe { (*target).ext },
        opaque,
        size,
        payload,
    };
    // SAFETY: not NULL, so it is the host's struct, which declares its size; its layout describes
    // `filled`.
    unsafe {
        HostStruct::new(target.cast(), &SP_DeviceMemoryBase::LAYOUT, false)
            .fill((&raw const filled).cast(), &SP_DeviceMemoryBase::LAYOUT);
    }
}

pub(super) fn allocate_device<P: Platform>(
    state: &OpenDevice<P>,
    request: AllocationRequest,
) -> Option<crate::Allocation> {
    let allocation = state.device.allocate(request).filter(|found| !found.opaque.is_null())?;
    state.platform.settings.counters.device_memory.created_one();
    Some(allocation)
}

pub(super) unsafe extern "C" fn deallocate<P: Platform>(
    device: *const SP_Device,
    memory: *mut SP_DeviceMemoryBase,
) {
    if memory.is_null() {
        return;
    }
    // SAFETY: not NULL, and the struct has one form in all layouts.
    let (opaque, size, payload) = unsafe { ((*memory).opaque, (*memory).size, (*memory).payload) };
    // SAFETY: the host passes a device of this platform, and memory of that device which it no
    // longer uses.
    unsafe { deallocate_device::<P>(device, opaque, size, payload) };
}

/// # Safety
/// `device` is NULL or a live device of this platform; `opaque` is NULL or what it allocated, not
/// freed before, and not used any more.
pub(super) unsafe fn deallocate_device<P: Platform>(
    device: *const SP_Device,
    opaque: *mut c_void,
    size: u64,
    payload: u64,
) {
    if opaque.is_null() {
        return;
    }
    // SAFETY: the caller's promise.
    unsafe {
        try_device::<P, _>(device, |state| {
            state.platform.settings.counters.device_memory.destroyed_one();
            state.device.deallocate(DeviceMemory::from_raw(opaque, size, payload));
            Some(())
        });
    }
}

pub(super) unsafe extern "C" fn host_memory_allocate<P: Platform>(
    device: *const SP_Device,
    size: u64,
) -> *mut c_void {
    // SAFETY: the host passes a device of this platform.
    let start = unsafe {
        try_device::<P, _>(device, |state| {
            let start = state.device.allocate_host(size)?;
            state.platform.settings.counters.host_memory.created_one();
            Some(start)
        })
    };
    start.map_or(ptr::null_mut(), NonNull::as_ptr)
}

pub(super) unsafe extern "C" fn host_memory_deallocate<P: Platform>(
    device: *const SP_Device,
    start: *mut c_void,
) {
    let Some(start) = NonNull::new(start) else { return };
    // SAFETY: the host passes a device of this platform, and host memory of that device which it no
    // longer uses.
    unsafe {
        try_device::<P, _>(device, |state| {
            state.platform.settings.counters.host_memory.destroyed_one();
            state.device.deallocate_host(start);
            Some(())
        });
    }
}

pub(super) unsafe extern "C" fn unified_memory_allocate<P: Platform>(
    device: *const SP_Device,
    size: u64,
) -> *mut c_void {
    // SAFETY: the host passes a device of this platform.
    let start = unsafe {
        try_device::<P, _>(device, |state| {
            let start = state.device.allocate_unified(size)?;
            state.platform.settings.counters.unified_memory.created_one();
            Some(start)
        })
    };
    start.map_or(ptr::null_mut(), NonNull::as_ptr)
}

pub(super) unsafe extern "C" fn unified_memory_deallocate<P: Platform>(
    device: *const SP_Device,
    start: *mut c_void,
) {
    let Some(start) = NonNull::new(start) else { return };
    // SAFETY: the host passes a device of this platform, and unified memory of that device which it
    // no longer uses.
    unsafe {
        try_device::<P, _>(device, |state| {
            state.platform.settings.counters.unified_memory.destroyed_one();
            state.device.deallocate_unified(start);
            Some(())
        });
    }
}

pub(super) unsafe extern "C" fn get_allocator_stats<P: Platform>(
    device: *const SP_Device,
    target: *mut SP_AllocatorStats,
) -> TF_Bool {
    if target.is_null() {
        return 0;
    }
    // SAFETY: the host passes a device of this platform.
    let Some(stats) =
        (unsafe { try_device::<P, _>(device, |state| state.device.allocator_stats()) })
    else {
        return 0;
    };
    let filled = c_stats(&stats);
    // SAFETY: not NULL, so it is the host's struct, which declares its size; its layout describes
    // `filled`.
    unsafe {
        HostStruct::new(target.cast(), &SP_AllocatorStats::LAYOUT, false)
            .fill((&raw const filled).cast(), &SP_AllocatorStats::LAYOUT);
    }
    1
}

fn c_stats(stats: &AllocatorStats) -> SP_AllocatorStats {
    SP_AllocatorStats {
        struct_size: 0,
        num_allocs: signed(stats.allocations),
        bytes_in_use: signed(stats.bytes_in_use),
        peak_bytes_in_use: signed(stats.peak_bytes_in_use),
        largest_alloc_size: signed(stats.largest_allocation),
        has_bytes_limit: i8::from(stats.limit.is_some()),
        bytes_limit: signed(stats.limit.unwrap_or(0)),
        bytes_reserved: signed(stats.bytes_reserved),
        peak_bytes_reserved: signed(stats.peak_bytes_reserved),
        has_bytes_reservable_limit: i8::from(stats.reservable_limit.is_some()),
        bytes_reservable_limit: signed(stats.reservable_limit.unwrap_or(0)),
        largest_free_block_bytes: signed(stats.largest_free_block),
    }
}

fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) unsafe extern "C" fn device_memory_usage<P: Platform>(
    device: *const SP_Device,
    free: *mut i64,
    total: *mut i64,
) -> TF_Bool {
    // SAFETY: the host passes a device of this platform.
    let Some(usage) = (unsafe { try_device::<P, _>(device, |state| state.device.memory_usage()) })
    else {
        return 0;
    };
    // SAFETY: the host passes NULL or a place for the numbers.
    let written = unsafe {
        write_out(free, signed(usage.free), "free")
            .and_then(|()| write_out(total, signed(usage.total), "total"))
    };
    TF_Bool::from(written.is_ok())
}

pub(super) unsafe extern "C" fn memcpy_dtoh<P: Platform>(
    device: *const SP_Device,
    stream: SP_Stream,
    target: *mut c_void,
    source: *const SP_DeviceMemoryBase,
    size: u64,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes a device, a stream and memory of this platform, host memory of that
    // size, all live until the copy is done, and a status.
    unsafe {
        with_device::<P>(device, status, |state| {
            let stream = execution::stream::<P>(stream)?;
            let source = DeviceMemory::from_c(source, size, "source")?;
            state.device.memcpy_dtoh(stream, HostTarget::from_c(target, size)?, source)
        });
    }
}

pub(super) unsafe extern "C" fn memcpy_htod<P: Platform>(
    device: *const SP_Device,
    stream: SP_Stream,
    target: *mut SP_DeviceMemoryBase,
    source: *const c_void,
    size: u64,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes a device, a stream and memory of this platform, host memory of that
    // size, all live until the copy is done, and a status.
    unsafe {
        with_device::<P>(device, status, |state| {
            let stream = execution::stream::<P>(stream)?;
            let target = DeviceMemory::from_c(target, size, "target")?;
            state.device.memcpy_htod(stream, target, HostSource::from_c(source, size)?)
        });
    }
}

pub(super) unsafe extern "C" fn memcpy_dtod<P: Platform>(
    device: *const SP_Device,
    stream: SP_Stream,
    target: *mut SP_DeviceMemoryBase,
    source: *const SP_DeviceMemoryBase,
    size: u64,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes a device, a stream and memories of this platform, all live until the
    // copy is done, and a status.
    unsafe {
        with_device::<P>(device, status, |state| {
            let stream = execution::stream::<P>(stream)?;
            let target = DeviceMemory::from_c(target, size, "target")?;
            state.device.memcpy_dtod(stream, target, DeviceMemory::from_c(source, size, "source")?)
        });
    }
}

pub(super) unsafe extern "C" fn sync_memcpy_dtoh<P: Platform>(
    device: *const SP_Device,
    target: *mut c_void,
    source: *const SP_DeviceMemoryBase,
    size: u64,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes a device and memory of this platform, host memory of that size, and a
    // status.
    unsafe {
        with_device::<P>(device, status, |state| {
            let source = DeviceMemory::from_c(source, size, "source")?;
            state.device.sync_memcpy_dtoh(HostTarget::from_c(target, size)?, source)
        });
    }
}

pub(super) unsafe extern "C" fn sync_memcpy_htod<P: Platform>(
    device: *const SP_Device,
    target: *mut SP_DeviceMemoryBase,
    source: *const c_void,
    size: u64,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes a device and memory of this platform, host memory of that size, and a
    // status.
    unsafe {
        with_device::<P>(device, status, |state| {
            let target = DeviceMemory::from_c(target, size, "target")?;
            state.device.sync_memcpy_htod(target, HostSource::from_c(source, size)?)
        });
    }
}

pub(super) unsafe extern "C" fn sync_memcpy_dtod<P: Platform>(
    device: *const SP_Device,
    target: *mut SP_DeviceMemoryBase,
    source: *const SP_DeviceMemoryBase,
    size: u64,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes a device and memories of this platform, and a status.
    unsafe {
        with_device::<P>(device, status, |state| {
            let target = DeviceMemory::from_c(target, size, "target")?;
            state.device.sync_memcpy_dtod(target, DeviceMemory::from_c(source, size, "source")?)
        });
    }
}

pub(super) unsafe extern "C" fn mem_zero<P: Platform>(
    device: *const SP_Device,
    stream: SP_Stream,
    target: *mut SP_DeviceMemoryBase,
    size: u64,
    status: *mut TF_Status,
) {
    // SAFETY: as for `fill`.
    unsafe { with_device::<P>(device, status, |state| fill(state, stream, target, [0; 4], size)) };
}

pub(super) unsafe extern "C" fn memset<P: Platform>(
    device: *const SP_Device,
    stream: SP_Stream,
    target: *mut SP_DeviceMemoryBase,
    pattern: u8,
    size: u64,
    status: *mut TF_Status,
) {
    // SAFETY: as for `fill`.
    unsafe {
        with_device::<P>(device, status, |state| fill(state, stream, target, [pattern; 4], size))
    };
}

pub(super) unsafe extern "C" fn memset32<P: Platform>(
    device: *const SP_Device,
    stream: SP_Stream,
    target: *mut SP_DeviceMemoryBase,
    pattern: u32,
    size: u64,
    status: *mut TF_Status,
) {
    // SAFETY: as for `fill`.
    unsafe {
        with_device::<P>(device, status, |state| {
            if !size.is_multiple_of(4) {
                return Err(Status::invalid_argument(format!(
                    "memset32 is to fill {size} bytes, which are not whole patterns of 4 bytes"
                )));
            }
            fill(state, stream, target, pattern.to_ne_bytes(), size)
        });
    }
}

/// # Safety
/// `stream` is NULL or a live stream, and `target` is NULL or describes memory, of this platform,
/// until the fill is done.
unsafe fn fill<P: Platform>(
    state: &OpenDevice<P>,
    stream: SP_Stream,
    target: *const SP_DeviceMemoryBase,
    pattern: [u8; 4],
    size: u64,
) -> Result<()> {
    // SAFETY: the caller's promise.
    let (stream, target) =
        unsafe { (execution::stream::<P>(stream)?, DeviceMemory::from_c(target, size, "target")?) };
    state.device.memset32(stream, target, pattern)
}
