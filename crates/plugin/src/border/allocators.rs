//! The allocators of RFC #257, which have tables of their own, whose functions take the allocator
//! as a second argument.

use std::{ffi::c_void, ptr};

use serdes_abi::{
    SP_AllocatorStats, SP_Device, SP_DeviceMemoryBase, SP_Platform, TF_Bool, TF_Status,
    rfc::{
        SE_CreateAllocatorParams, SE_CreateCustomAllocatorParams, SP_Allocator, SP_AllocatorFns,
        SP_CustomAllocator, SP_CustomAllocatorFns,
    },
};

use super::{
    host_struct::fill_table,
    memory,
    state::{platform_state, try_device, with_platform},
};
use crate::{Status, device::Platform, memory::AllocationRequest};

pub(super) unsafe extern "C" fn create_allocator<P: Platform>(
    platform: *const SP_Platform,
    params: *mut SE_CreateAllocatorParams,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes its platform, its parameters and a status, as the C API says.
    unsafe {
        with_platform::<P>(platform, status, |state| {
            if params.is_null() {
                return Err(Status::invalid_argument("the SE_CreateAllocatorParams is NULL"));
            }
            let unified = state.settings.unified_memory;
            let allocator = SP_Allocator {
                struct_size: 0,
                ext: ptr::null_mut(),
                supports_unified_memory: u8::from(unified),
            };
            let functions = allocator_functions::<P>(unified);
            let (target, functions_target) = ((*params).allocator, (*params).allocator_fns);
            if functions_target.is_null() {
                return Err(Status::invalid_argument(
                    "SE_CreateAllocatorParams.allocator_fns is NULL",
                ));
            }
            fill_table(
                state.is_layout_forced(),
                target.cast(),
                "SP_Allocator",
                (&raw const allocator).cast(),
                &SP_Allocator::LAYOUT,
            )?;
            let filled = (&raw const functions).cast();
            fill_table(
                state.is_layout_forced(),
                functions_target.cast(),
                "SP_AllocatorFns",
                filled,
                &SP_AllocatorFns::LAYOUT,
            )?;
            state.settings.counters.allocators.created_one();
            Ok(())
        });
    }
}

/// Returns the functions of an allocator for the default strategy.
fn allocator_functions<P: Platform>(unified: bool) -> SP_AllocatorFns {
    SP_AllocatorFns {
        struct_size: 0,
        ext: ptr::null_mut(),
        allocate: Some(allocate::<P>),
        deallocate: Some(deallocate::<P>),
        host_memory_allocate: Some(host_memory_allocate::<P>),
        host_memory_deallocate: Some(host_memory_deallocate::<P>),
        unified_memory_allocate: if unified { Some(unified_memory_allocate::<P>) } else { None },
        unified_memory_deallocate: if unified {
            Some(unified_memory_deallocate::<P>)
        } else {
            None
        },
        get_allocator_stats: Some(get_allocator_stats::<P>),
        device_memory_usage: Some(device_memory_usage::<P>),
    }
}

pub(super) unsafe extern "C" fn destroy_allocator<P: Platform>(
    platform: *const SP_Platform,
    _allocator: *mut SP_Allocator,
    _functions: *mut SP_AllocatorFns,
) {
    // SAFETY: the host passes its platform.
    if let Ok(state) = unsafe { platform_state::<P>(platform) } {
        state.settings.counters.allocators.destroyed_one();
    }
}

pub(super) unsafe extern "C" fn create_custom_allocator<P: Platform>(
    platform: *const SP_Platform,
    params: *mut SE_CreateCustomAllocatorParams,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes its platform, its parameters and a status, as the C API says.
    unsafe {
        with_platform::<P>(platform, status, |state| {
            if params.is_null() {
                return Err(Status::invalid_argument("the SE_CreateCustomAllocatorParams is NULL"));
            }
            let allocator = SP_CustomAllocator { struct_size: 0, ext: ptr::null_mut() };
            let functions = SP_CustomAllocatorFns {
                struct_size: 0,
                ext: ptr::null_mut(),
                allocate_raw: Some(allocate_raw::<P>),
                deallocate_raw: Some(deallocate_raw::<P>),
                host_allocate_raw: Some(host_allocate_raw::<P>),
                host_deallocate_raw: Some(host_deallocate_raw::<P>),
                get_allocator_stats: Some(get_custom_allocator_stats::<P>),
                device_memory_usage: Some(custom_device_memory_usage::<P>),
            };
            let (target, functions_target) =
                ((*params).custom_allocator, (*params).custom_allocator_fns);
            if functions_target.is_null() {
                return Err(Status::invalid_argument(
                    "SE_CreateCustomAllocatorParams.custom_allocator_fns is NULL",
                ));
            }
            let filled = (&raw const allocator).cast();
            fill_table(
                state.is_layout_forced(),
                target.cast(),
                "SP_CustomAllocator",
                filled,
                &SP_CustomAllocator::LAYOUT,
            )?;
            let filled = (&raw const functions).cast();
            fill_table(
                state.is_layout_forced(),
                functions_target.cast(),
                "SP_CustomAllocatorFns",
                filled,
                &SP_CustomAllocatorFns::LAYOUT,
            )?;
            state.settings.counters.allocators.created_one();
            Ok(())
        });
    }
}

pub(super) unsafe extern "C" fn destroy_custom_allocator<P: Platform>(
    platform: *const SP_Platform,
    _allocator: *mut SP_CustomAllocator,
    _functions: *mut SP_CustomAllocatorFns,
) {
    // SAFETY: the host passes its platform.
    if let Ok(state) = unsafe { platform_state::<P>(platform) } {
        state.settings.counters.allocators.destroyed_one();
    }
}

unsafe extern "C" fn allocate<P: Platform>(
    device: *const SP_Device,
    _allocator: *const SP_Allocator,
    size: u64,
    memory_space: i64,
    target: *mut SP_DeviceMemoryBase,
) {
    // SAFETY: the host gives this function the same guarantees as the executor's.
    unsafe { memory::allocate::<P>(device, size, memory_space, target) };
}

unsafe extern "C" fn deallocate<P: Platform>(
    device: *const SP_Device,
    _allocator: *const SP_Allocator,
    memory: *mut SP_DeviceMemoryBase,
) {
    // SAFETY: the host gives this function the same guarantees as the executor's.
    unsafe { memory::deallocate::<P>(device, memory) };
}

unsafe extern "C" fn host_memory_allocate<P: Platform>(
    device: *const SP_Device,
    _allocator: *const SP_Allocator,
    size: u64,
) -> *mut c_void {
    // SAFETY: the host gives this function the same guarantees as the executor's.
    unsafe { memory::host_memory_allocate::<P>(device, size) }
}

unsafe extern "C" fn host_memory_deallocate<P: Platform>(
    device: *const SP_Device,
    _allocator: *const SP_Allocator,
    start: *mut c_void,
) {
    // SAFETY: the host gives this function the same guarantees as the executor's.
    unsafe { memory::host_memory_deallocate::<P>(device, start) };
}

unsafe extern "C" fn unified_memory_allocate<P: Platform>(
    device: *const SP_Device,
    _allocator: *const SP_Allocator,
    size: u64,
) -> *mut c_void {
    // SAFETY: the host gives this function the same guarantees as the executor's.
    unsafe { memory::unified_memory_allocate::<P>(device, size) }
}

unsafe extern "C" fn unified_memory_deallocate<P: Platform>(
    device: *const SP_Device,
    _allocator: *const SP_Allocator,
    start: *mut c_void,
) {
    // SAFETY: the host gives this function the same guarantees as the executor's.
    unsafe { memory::unified_memory_deallocate::<P>(device, start) };
}

unsafe extern "C" fn get_allocator_stats<P: Platform>(
    device: *const SP_Device,
    _allocator: *const SP_Allocator,
    stats: *mut SP_AllocatorStats,
) -> TF_Bool {
    // SAFETY: the host gives this function the same guarantees as the executor's.
    unsafe { memory::get_allocator_stats::<P>(device, stats) }
}

unsafe extern "C" fn device_memory_usage<P: Platform>(
    device: *const SP_Device,
    _allocator: *const SP_Allocator,
    free: *mut i64,
    total: *mut i64,
) -> TF_Bool {
    // SAFETY: the host gives this function the same guarantees as the executor's.
    unsafe { memory::device_memory_usage::<P>(device, free, total) }
}

unsafe extern "C" fn allocate_raw<P: Platform>(
    device: *const SP_Device,
    _allocator: *const SP_CustomAllocator,
    size: usize,
    alignment: usize,
) -> *mut c_void {
    let request = AllocationRequest {
        size: size as u64,
        alignment: alignment.max(1) as u64,
        memory_space: 0,
    };
    if !request.alignment.is_power_of_two() {
        return ptr::null_mut();
    }
    // SAFETY: the host passes a device of this platform.
    let allocation =
        unsafe { try_device::<P, _>(device, |state| memory::allocate_device(state, request)) };
    allocation.map_or(ptr::null_mut(), |found| found.opaque)
}

unsafe extern "C" fn deallocate_raw<P: Platform>(
    device: *const SP_Device,
    _allocator: *const SP_CustomAllocator,
    start: *mut c_void,
) {
    // SAFETY: the host passes a device of this platform, and memory of that device which it no
    // longer uses.
    unsafe { memory::deallocate_device::<P>(device, start, 0, 0) };
}

unsafe extern "C" fn host_allocate_raw<P: Platform>(
    device: *const SP_Device,
    _allocator: *const SP_CustomAllocator,
    size: u64,
) -> *mut c_void {
    // SAFETY: the host gives this function the same guarantees as the executor's.
    unsafe { memory::host_memory_allocate::<P>(device, size) }
}

unsafe extern "C" fn host_deallocate_raw<P: Platform>(
    device: *const SP_Device,
    _allocator: *const SP_CustomAllocator,
    start: *mut c_void,
) {
    // SAFETY: the host gives this function the same guarantees as the executor's.
    unsafe { memory::host_memory_deallocate::<P>(device, start) };
}

unsafe extern "C" fn get_custom_allocator_stats<P: Platform>(
    device: *const SP_Device,
    _allocator: *const SP_CustomAllocator,
    stats: *mut SP_AllocatorStats,
) -> TF_Bool {
    // SAFETY: the host gives this function the same guarantees as the executor's.
    unsafe { memory::get_allocator_stats::<P>(device, stats) }
}

unsafe extern "C" fn custom_device_memory_usage<P: Platform>(
    device: *const SP_Device,
    _allocator: *const SP_CustomAllocator,
    free: *mut i64,
    total: *mut i64,
) -> TF_Bool {
    // SAFETY: the host gives this function the same guarantees as the executor's.
    unsafe { memory::device_memory_usage::<P>(device, free, total) }
}
