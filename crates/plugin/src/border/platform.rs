//! The functions of SP_PlatformFns, SP_DeviceFns and SP_TimerFns.

use std::{
    ffi::{CString, c_char, c_int},
    mem, ptr,
    sync::Arc,
};

use serdes_abi::{
    SE_CreateDeviceFnsParams, SE_CreateDeviceParams, SE_CreateStreamExecutorParams, SP_Device,
    SP_DeviceFns, SP_Platform, SP_PlatformFns, SP_StreamExecutor, SP_Timer, SP_TimerFns, TF_Status,
};

use super::{
    execution,
    host_struct::{HostStruct, executor_layout, fill_table, struct_layout, write_out},
    memory,
    state::{OpenDevice, RegisteredPlatform, platform_state, try_device, with_platform},
};
use crate::{
    Result, Status,
    device::{Description, Device, Platform},
    panic::{contain, contain_drop},
};

pub(super) unsafe extern "C" fn destroy_platform<P: Platform>(platform: *mut SP_Platform) {
    // SAFETY: the host passes the platform that was registered, and no longer uses it.
    unsafe { release::<P>(platform) };
}

/// Reclaims the state that `register` stored in the platform.
///
/// # Safety
/// `platform` is NULL or the host's struct that `register::<P>` filled; no device of the platform
/// is created afterwards.
unsafe fn release<P: Platform>(platform: *mut SP_Platform) {
    if platform.is_null() {
        return;
    }
    // SAFETY: this is a platform of the host, and every layout has `ext` at this offset.
    let state = unsafe { mem::replace(&mut (*platform).ext, ptr::null_mut()) }.cast_const();
    if state.is_null() {
        return;
    }
    // SAFETY: `register::<P>` stored it with `Arc::into_raw`. It was not NULL, so it has not been
    // reclaimed before.
    let state = unsafe { Arc::from_raw(state.cast::<RegisteredPlatform<P>>()) };
    state.settings.counters.platforms.destroyed_one();
    contain_drop(state);
}

/// Does nothing: the table contains only addresses of our functions.
pub(super) unsafe extern "C" fn destroy_platform_fns(_functions: *mut SP_PlatformFns) {}

pub(super) unsafe extern "C" fn get_device_count<P: Platform>(
    platform: *const SP_Platform,
    count: *mut c_int,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes its platform and a status, as the C API says.
    unsafe {
        with_platform::<P>(platform, status, |state| {
            let devices = c_int::try_from(state.platform.device_count()?).map_err(|_| {
                Status::internal("the plug-in counts more devices than a C int holds")
            })?;
            write_out(count, devices, "device_count")
        });
    }
}

pub(super) unsafe extern "C" fn create_device<P: Platform>(
    platform: *const SP_Platform,
    params: *mut SE_CreateDeviceParams,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes its platform and a status, as the C API says.
    unsafe { with_platform::<P>(platform, status, |state| fill_device(platform, state, params)) };
}

/// # Safety
/// `platform` is the registered platform with this `state`, and is not destroyed; `params` is NULL
/// or the host's.
unsafe fn fill_device<P: Platform>(
    platform: *const SP_Platform,
    state: &RegisteredPlatform<P>,
    params: *mut SE_CreateDeviceParams,
) -> Result<()> {
    if params.is_null() {
        return Err(Status::invalid_argument("the SE_CreateDeviceParams is NULL"));
    }
    // SAFETY: not NULL, so the host's parameters, which have these fields in every layout.
    let (ordinal, target) = unsafe { ((*params).ordinal, (*params).device) };
    if target.is_null() {
        return Err(Status::invalid_argument("SE_CreateDeviceParams.device is NULL"));
    }
    let devices = state.platform.device_count()?;
    let number =
        u32::try_from(ordinal).ok().filter(|number| *number < devices).ok_or_else(|| {
            Status::invalid_argument(format!(
                "SE_CreateDeviceParams.ordinal is {ordinal}; this platform has {devices} devices"
            ))
        })?;
    // SAFETY: `ext` holds one count of this `Arc` until the platform is destroyed, which is not
    // during this call.
    let shared = unsafe {
        let shared = (*platform).ext.cast_const().cast::<RegisteredPlatform<P>>();
        Arc::increment_strong_count(shared);
        Arc::from_raw(shared)
    };
    let device_state = Box::new(open_device(state.platform.create_device(number)?, shared));
    let pointer = |index: usize| -> *const c_char {
        device_state
            .texts
            .get(index)
            .and_then(Option::as_ref)
            .map_or(ptr::null(), |text| text.as_ptr())
    };
    let filled = SP_Device {
        struct_size: 0,
        // The host may keep a value of its own in this field.
        // SAFETY: not NULL, and every layout has `ext` there.
        ext: unsafe { (*target).ext },
        ordinal,
        hardware_name: pointer(0),
        device_vendor: pointer(1),
        pci_bus_id: pointer(2),
        device_handle: Box::into_raw(device_state).cast(),
    };
    state.settings.counters.devices.created_one();
    let layout = struct_layout(state.layout, "SP_Device", &SP_Device::LAYOUT);
    // SAFETY: the struct is the host's and declares its size; its layout describes `filled`.
    unsafe {
        HostStruct::new(target.cast(), layout, state.is_layout_forced())
            .fill((&raw const filled).cast(), &SP_Device::LAYOUT)
    };
    Ok(())
}

/// Opens a device and converts its description into the form of the C API: NULL or -1 for unknown
/// values.
fn open_device<P: Platform>(
    device: P::Device,
    platform: Arc<RegisteredPlatform<P>>,
) -> OpenDevice<P> {
    let Description { hardware_name, vendor, pci_bus_id, numa_node, memory_bandwidth, gflops } =
        device.description();
    let text = |text: Option<String>| {
        text.map(|text| {
            let text = text.split('\0').next().unwrap_or_default();
            CString::new(text).unwrap_or_default()
        })
    };
    OpenDevice {
        device,
        platform,
        texts: [text(hardware_name), text(vendor), text(pci_bus_id)],
        numa_node: numa_node.and_then(|node| i32::try_from(node).ok()).unwrap_or(-1),
        memory_bandwidth: memory_bandwidth
            .and_then(|bandwidth| i64::try_from(bandwidth).ok())
            .unwrap_or(-1),
        gflops: gflops.unwrap_or(-1.0),
    }
}

pub(super) unsafe extern "C" fn destroy_device<P: Platform>(
    _platform: *const SP_Platform,
    device: *mut SP_Device,
) {
    if device.is_null() {
        return;
    }
    // SAFETY: this is a device of the host, and every layout has `device_handle` at this offset.
    let state = unsafe { std::mem::replace(&mut (*device).device_handle, ptr::null_mut()) };
    if state.is_null() {
        return;
    }
    // SAFETY: `create_device::<P>` stored it with `Box::into_raw`. It was not NULL, so it has not
    // been reclaimed before. The host does not use the device any more.
    let state = unsafe { Box::from_raw(state.cast::<OpenDevice<P>>()) };
    state.platform.settings.counters.devices.destroyed_one();
    contain_drop(state);
}

pub(super) unsafe extern "C" fn create_device_fns<P: Platform>(
    platform: *const SP_Platform,
    params: *mut SE_CreateDeviceFnsParams,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes its platform, its parameters and a status, as the C API says.
    unsafe {
        with_platform::<P>(platform, status, |state| {
            let target = if params.is_null() { ptr::null_mut() } else { (*params).device_fns };
            let filled = SP_DeviceFns {
                struct_size: 0,
                ext: ptr::null_mut(),
                get_numa_node: Some(get_numa_node::<P>),
                get_memory_bandwidth: Some(get_memory_bandwidth::<P>),
                get_gflops: Some(get_gflops::<P>),
            };
            fill_table(
                state.is_layout_forced(),
                target.cast(),
                "SP_DeviceFns",
                (&raw const filled).cast(),
                &SP_DeviceFns::LAYOUT,
            )?;
            state.settings.counters.device_functions.created_one();
            Ok(())
        });
    }
}

pub(super) unsafe extern "C" fn destroy_device_fns<P: Platform>(
    platform: *const SP_Platform,
    _functions: *mut SP_DeviceFns,
) {
    // SAFETY: the host passes its platform.
    if let Ok(state) = unsafe { platform_state::<P>(platform) } {
        state.settings.counters.device_functions.destroyed_one();
    }
}

pub(super) unsafe extern "C" fn create_stream_executor<P: Platform>(
    platform: *const SP_Platform,
    params: *mut SE_CreateStreamExecutorParams,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes its platform, its parameters and a status, as the C API says.
    unsafe {
        with_platform::<P>(platform, status, |state| {
            let target = if params.is_null() { ptr::null_mut() } else { (*params).stream_executor };
            if target.is_null() {
                return Err(Status::invalid_argument(
                    "SE_CreateStreamExecutorParams.stream_executor is NULL",
                ));
            }
            let forced = state.is_layout_forced();
            let layout = executor_layout(state.layout, (*target).struct_size, forced);
            let filled = stream_executor::<P>(state.settings.unified_memory);
            HostStruct::new(target.cast(), layout, forced)
                .fill((&raw const filled).cast(), &SP_StreamExecutor::LAYOUT);
            state.settings.counters.stream_executors.created_one();
            Ok(())
        });
    }
}

pub(super) unsafe extern "C" fn destroy_stream_executor<P: Platform>(
    platform: *const SP_Platform,
    _executor: *mut SP_StreamExecutor,
) {
    // SAFETY: the host passes its platform.
    if let Ok(state) = unsafe { platform_state::<P>(platform) } {
        state.settings.counters.stream_executors.destroyed_one();
    }
}

pub(super) unsafe extern "C" fn create_timer_fns<P: Platform>(
    platform: *const SP_Platform,
    target: *mut SP_TimerFns,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes its platform, its struct and a status, as the C API says.
    unsafe {
        with_platform::<P>(platform, status, |state| {
            let filled = SP_TimerFns {
                struct_size: 0,
                ext: ptr::null_mut(),
                nanoseconds: Some(nanoseconds::<P>),
            };
            fill_table(
                state.is_layout_forced(),
                target.cast(),
                "SP_TimerFns",
                (&raw const filled).cast(),
                &SP_TimerFns::LAYOUT,
            )?;
            state.settings.counters.timer_functions.created_one();
            Ok(())
        });
    }
}

pub(super) unsafe extern "C" fn destroy_timer_fns<P: Platform>(
    platform: *const SP_Platform,
    _functions: *mut SP_TimerFns,
) {
    // SAFETY: the host passes its platform.
    if let Ok(state) = unsafe { platform_state::<P>(platform) } {
        state.settings.counters.timer_functions.destroyed_one();
    }
}

unsafe extern "C" fn get_numa_node<P: Platform>(device: *const SP_Device) -> i32 {
    // SAFETY: the host passes a device of this platform.
    unsafe { try_device::<P, _>(device, |state| Some(state.numa_node)) }.unwrap_or(-1)
}

unsafe extern "C" fn get_memory_bandwidth<P: Platform>(device: *const SP_Device) -> i64 {
    // SAFETY: the host passes a device of this platform.
    unsafe { try_device::<P, _>(device, |state| Some(state.memory_bandwidth)) }.unwrap_or(-1)
}

unsafe extern "C" fn get_gflops<P: Platform>(device: *const SP_Device) -> f64 {
    // SAFETY: the host passes a device of this platform.
    unsafe { try_device::<P, _>(device, |state| Some(state.gflops)) }.unwrap_or(-1.0)
}

unsafe extern "C" fn nanoseconds<P: Platform>(timer: SP_Timer) -> u64 {
    // SAFETY: the host passes NULL or a timer of this platform, which `create_timer::<P>` made.
    match unsafe { timer.cast::<<P::Device as Device>::Timer>().as_ref() } {
        Some(timer) => contain(|| Ok(P::Device::nanoseconds(timer))).unwrap_or(0),
        None => 0,
    }
}

/// Returns the whole executor, in the newest layout.
fn stream_executor<P: Platform>(unified_memory: bool) -> SP_StreamExecutor {
    SP_StreamExecutor {
        struct_size: 0,
        ext: ptr::null_mut(),
        allocate: Some(memory::allocate::<P>),
        deallocate: Some(memory::deallocate::<P>),
        host_memory_allocate: Some(memory::host_memory_allocate::<P>),
        host_memory_deallocate: Some(memory::host_memory_deallocate::<P>),
        unified_memory_allocate: if unified_memory {
            Some(memory::unified_memory_allocate::<P>)
        } else {
            None
        },
        unified_memory_deallocate: if unified_memory {
            Some(memory::unified_memory_deallocate::<P>)
        } else {
            None
        },
        get_allocator_stats: Some(memory::get_allocator_stats::<P>),
        device_memory_usage: Some(memory::device_memory_usage::<P>),
        create_stream: Some(execution::create_stream::<P>),
        destroy_stream: Some(execution::destroy_stream::<P>),
        create_stream_dependency: Some(execution::create_stream_dependency::<P>),
        get_stream_status: Some(execution::get_stream_status::<P>),
        create_event: Some(execution::create_event::<P>),
        destroy_event: Some(execution::destroy_event::<P>),
        get_event_status: Some(execution::get_event_status::<P>),
        record_event: Some(execution::record_event::<P>),
        wait_for_event: Some(execution::wait_for_event::<P>),
        create_timer: Some(execution::create_timer::<P>),
        destroy_timer: Some(execution::destroy_timer::<P>),
        start_timer: Some(execution::start_timer::<P>),
        stop_timer: Some(execution::stop_timer::<P>),
        memcpy_dtoh: Some(memory::memcpy_dtoh::<P>),
        memcpy_htod: Some(memory::memcpy_htod::<P>),
        memcpy_dtod: Some(memory::memcpy_dtod::<P>),
        sync_memcpy_dtoh: Some(memory::sync_memcpy_dtoh::<P>),
        sync_memcpy_htod: Some(memory::sync_memcpy_htod::<P>),
        sync_memcpy_dtod: Some(memory::sync_memcpy_dtod::<P>),
        block_host_for_event: Some(execution::block_host_for_event::<P>),
        block_host_until_done: Some(execution::block_host_until_done::<P>),
        synchronize_all_activity: Some(execution::synchronize_all_activity::<P>),
        mem_zero: Some(memory::mem_zero::<P>),
        memset: Some(memory::memset::<P>),
        memset32: Some(memory::memset32::<P>),
        host_callback: Some(execution::host_callback::<P>),
    }
}
