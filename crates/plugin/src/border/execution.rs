//! The functions of SP_StreamExecutor on streams, events and timers.
//!
//! A handle is the address of the author's value, which has a box of its own.

use std::ffi::c_void;

use serdes_abi::{
    SE_EventStatus, SE_StatusCallbackFn, SP_Device, SP_Event, SP_Stream, SP_Timer, TF_Bool,
    TF_Status,
};

use super::{
    host_struct::write_out,
    state::{OpenDevice, device_state, try_device, with_device},
};
use crate::{
    Result, Status,
    callback::HostCallback,
    counters::{Counter, Counters},
    device::{Device, Platform},
    panic::contain_drop,
};

type StreamOf<P> = <<P as Platform>::Device as Device>::Stream;
type EventOf<P> = <<P as Platform>::Device as Device>::Event;
type TimerOf<P> = <<P as Platform>::Device as Device>::Timer;

/// Returns the stream behind a handle.
///
/// # Safety
/// The handle is NULL, or `create_stream::<P>` made it and it is not destroyed while the reference
/// is used.
pub(super) unsafe fn stream<'a, P: Platform>(handle: SP_Stream) -> Result<&'a StreamOf<P>> {
    // SAFETY: the caller's promise.
    unsafe { handle.cast::<StreamOf<P>>().as_ref() }.ok_or_else(|| {
        Status::invalid_argument("the SP_Stream is NULL; this plug-in's streams never are")
    })
}

/// Returns the event behind a handle.
///
/// # Safety
/// The handle is NULL, or `create_event::<P>` made it and it is not destroyed while the reference
/// is used.
unsafe fn event<'a, P: Platform>(handle: SP_Event) -> Result<&'a EventOf<P>> {
    // SAFETY: the caller's promise.
    unsafe { handle.cast::<EventOf<P>>().as_ref() }.ok_or_else(|| {
        Status::invalid_argument("the SP_Event is NULL; this plug-in's events never are")
    })
}

/// Returns the timer behind a handle.
///
/// # Safety
/// The handle is NULL, or `create_timer::<P>` made it and it is not destroyed while the reference
/// is used.
unsafe fn timer<'a, P: Platform>(handle: SP_Timer) -> Result<&'a TimerOf<P>> {
    // SAFETY: the caller's promise.
    unsafe { handle.cast::<TimerOf<P>>().as_ref() }.ok_or_else(|| {
        Status::invalid_argument("the SP_Timer is NULL; this plug-in's timers never are")
    })
}

/// Moves a value into a box and writes the box's address to `target`.
///
/// # Safety
/// `target` is NULL or writable.
unsafe fn give<T, H>(target: *mut *mut H, value: T, name: &str, counter: &Counter) -> Result<()> {
    let handle = Box::into_raw(Box::new(value));
    // SAFETY: the caller's promise.
    let written = unsafe { write_out(target, handle.cast::<H>(), name) };
    match written {
        Ok(()) => counter.created_one(),
        // SAFETY: created above and not handed out.
        Err(_) => contain_drop(unsafe { Box::from_raw(handle) }),
    }
    written
}

/// Destroys a value that [`give`] handed out.
///
/// # Safety
/// `device` is NULL or a live device of this platform. The handle is NULL, or `give` made it from a
/// `T`, it was not taken before, and is no longer used.
unsafe fn take<P: Platform, T>(
    device: *const SP_Device,
    handle: *mut T,
    counter: fn(&Counters) -> &Counter,
) {
    if handle.is_null() {
        return;
    }
    // SAFETY: the caller's promise.
    let value = unsafe { Box::from_raw(handle) };
    contain_drop(value);
    // SAFETY: the caller's promise.
    if let Ok(state) = unsafe { device_state::<P>(device) } {
        counter(&state.platform.settings.counters).destroyed_one();
    }
}

pub(super) unsafe extern "C" fn create_stream<P: Platform>(
    device: *const SP_Device,
    target: *mut SP_Stream,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes a device of this platform, a place for the handle, and a status.
    unsafe {
        with_device::<P>(device, status, |state| {
            give(
                target,
                state.device.create_stream()?,
                "stream",
                &state.platform.settings.counters.streams,
            )
        });
    }
}

pub(super) unsafe extern "C" fn destroy_stream<P: Platform>(
    device: *const SP_Device,
    handle: SP_Stream,
) {
    // SAFETY: the host passes a device and a stream of this platform, which it no longer uses.
    unsafe { take::<P, StreamOf<P>>(device, handle.cast(), |counters| &counters.streams) };
}

pub(super) unsafe extern "C" fn create_stream_dependency<P: Platform>(
    device: *const SP_Device,
    dependent: SP_Stream,
    other: SP_Stream,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes a device and live streams of this platform, and a status.
    unsafe {
        with_device::<P>(device, status, |state| {
            state.device.create_stream_dependency(stream::<P>(dependent)?, stream::<P>(other)?)
        });
    }
}

pub(super) unsafe extern "C" fn get_stream_status<P: Platform>(
    device: *const SP_Device,
    handle: SP_Stream,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes a device and a live stream of this platform, and a status.
    unsafe {
        with_device::<P>(device, status, |state| state.device.stream_status(stream::<P>(handle)?))
    };
}

pub(super) unsafe extern "C" fn create_event<P: Platform>(
    device: *const SP_Device,
    target: *mut SP_Event,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes a device of this platform, a place for the handle, and a status.
    unsafe {
        with_device::<P>(device, status, |state| {
            give(
                target,
                state.device.create_event()?,
                "event",
                &state.platform.settings.counters.events,
            )
        });
    }
}

pub(super) unsafe extern "C" fn destroy_event<P: Platform>(
    device: *const SP_Device,
    handle: SP_Event,
) {
    // SAFETY: the host passes a device and an event of this platform, which it no longer uses.
    unsafe { take::<P, EventOf<P>>(device, handle.cast(), |counters| &counters.events) };
}

pub(super) unsafe extern "C" fn get_event_status<P: Platform>(
    device: *const SP_Device,
    handle: SP_Event,
) -> SE_EventStatus {
    // SAFETY: the host passes a device and a live event of this platform.
    unsafe {
        try_device::<P, _>(device, |state| {
            Some(state.device.event_state(event::<P>(handle).ok()?).into())
        })
    }
    .unwrap_or(SE_EventStatus::ERROR)
}

pub(super) unsafe extern "C" fn record_event<P: Platform>(
    device: *const SP_Device,
    stream_handle: SP_Stream,
    handle: SP_Event,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes a device, a live stream and a live event of this platform, and a
    // status.
    unsafe {
        with_device::<P>(device, status, |state| {
            state.device.record_event(stream::<P>(stream_handle)?, event::<P>(handle)?)
        });
    }
}

pub(super) unsafe extern "C" fn wait_for_event<P: Platform>(
    device: *const SP_Device,
    stream_handle: SP_Stream,
    handle: SP_Event,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes a device, a live stream and a live event of this platform, and a
    // status.
    unsafe {
        with_device::<P>(device, status, |state| {
            state.device.wait_for_event(stream::<P>(stream_handle)?, event::<P>(handle)?)
        });
    }
}

pub(super) unsafe extern "C" fn block_host_for_event<P: Platform>(
    device: *const SP_Device,
    handle: SP_Event,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes a device and a live event of this platform, and a status.
    unsafe {
        with_device::<P>(device, status, |state| {
            state.device.block_host_for_event(event::<P>(handle)?)
        })
    };
}

pub(super) unsafe extern "C" fn create_timer<P: Platform>(
    device: *const SP_Device,
    target: *mut SP_Timer,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes a device of this platform, a place for the handle, and a status.
    unsafe {
        with_device::<P>(device, status, |state| {
            give(
                target,
                state.device.create_timer()?,
                "timer",
                &state.platform.settings.counters.timers,
            )
        });
    }
}

pub(super) unsafe extern "C" fn destroy_timer<P: Platform>(
    device: *const SP_Device,
    handle: SP_Timer,
) {
    // SAFETY: the host passes a device and a timer of this platform, which it no longer uses.
    unsafe { take::<P, TimerOf<P>>(device, handle.cast(), |counters| &counters.timers) };
}

pub(super) unsafe extern "C" fn start_timer<P: Platform>(
    device: *const SP_Device,
    stream_handle: SP_Stream,
    handle: SP_Timer,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes a device, a live stream and a live timer of this platform, and a
    // status.
    unsafe {
        with_device::<P>(device, status, |state| {
            state.device.start_timer(stream::<P>(stream_handle)?, timer::<P>(handle)?)
        });
    }
}

pub(super) unsafe extern "C" fn stop_timer<P: Platform>(
    device: *const SP_Device,
    stream_handle: SP_Stream,
    handle: SP_Timer,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes a device, a live stream and a live timer of this platform, and a
    // status.
    unsafe {
        with_device::<P>(device, status, |state| {
            state.device.stop_timer(stream::<P>(stream_handle)?, timer::<P>(handle)?)
        });
    }
}

pub(super) unsafe extern "C" fn block_host_until_done<P: Platform>(
    device: *const SP_Device,
    handle: SP_Stream,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes a device and a live stream of this platform, and a status.
    unsafe {
        with_device::<P>(device, status, |state| {
            state.device.block_host_until_done(stream::<P>(handle)?)
        })
    };
}

pub(super) unsafe extern "C" fn synchronize_all_activity<P: Platform>(
    device: *const SP_Device,
    status: *mut TF_Status,
) {
    // SAFETY: the host passes a device of this platform and a status.
    unsafe { with_device::<P>(device, status, |state| state.device.synchronize_all_activity()) };
}

pub(super) unsafe extern "C" fn host_callback<P: Platform>(
    device: *mut SP_Device,
    handle: SP_Stream,
    function: Option<SE_StatusCallbackFn>,
    argument: *mut c_void,
) -> TF_Bool {
    let enqueue = |state: &OpenDevice<P>| {
        let function = function?;
        let counters = &state.platform.settings.counters;
        // SAFETY: the host passes a live stream of this platform, and a function that may be called
        // once with its argument, on any thread.
        let (stream, callback) = unsafe {
            let stream = stream::<P>(handle).ok()?;
            (
                stream,
                HostCallback::new(function, argument, state.platform.functions, counters.clone()),
            )
        };
        // Counted first, because it may run before the call returns.
        counters.host_callbacks.created_one();
        let accepted = state.device.host_callback(stream, callback);
        if accepted.is_err() {
            counters.host_callbacks.destroyed_one();
        }
        accepted.ok()
    };
    // SAFETY: the host passes a device of this platform.
    let accepted = unsafe { try_device::<P, _>(device.cast_const(), enqueue) };
    TF_Bool::from(accepted.is_some())
}
