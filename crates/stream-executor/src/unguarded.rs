//! Direct calls of a plug-in's functions, for the benchmark that measures the cost of the safe
//! types.
//!
//! Changes without notice: the feature `unstable-bench` is for the benchmarks of this crate alone.

use std::ptr;

use serdes_abi::{SE_EventStatus, SP_Device, SP_Event, SP_Stream, TF_Status};

use super::{
    border::Status,
    device::{Event, Stream},
};

/// Returns a function that calls `get_event_status` of an event.
pub fn event_status(event: &Event) -> impl Fn() -> i32 + '_ {
    let inner = &event.inner;
    let calls = inner.device().calls();
    let function = calls.functions.executor.get_event_status;
    let (device, handle) = (calls.device.cast_const(), inner.handle());
    let none: unsafe extern "C" fn(*const SP_Device, SP_Event) -> SE_EventStatus = unknown;
    let function = function.unwrap_or(none);
    // SAFETY: the event and its device live as long as the borrow in the closure's type.
    move || unsafe { function(device, handle) }.0
}

unsafe extern "C" fn unknown(_device: *const SP_Device, _event: SP_Event) -> SE_EventStatus {
    SE_EventStatus::UNKNOWN
}

/// Returns a function that calls `get_stream_status` of a stream, with one status for all calls.
pub fn stream_status(stream: &Stream) -> impl FnMut() -> bool + '_ {
    let (calls, handle) = (stream.inner.device.calls(), stream.inner.handle);
    let function = calls.functions.executor.get_stream_status;
    let device = calls.device.cast_const();
    let none: unsafe extern "C" fn(*const SP_Device, SP_Stream, *mut TF_Status) = nothing;
    let function = function.unwrap_or(none);
    let mut status = Status::new();
    move || {
        // SAFETY: the stream and its device live as long as the borrow in the closure's type; the
        // status is the closure's.
        unsafe { function(device, handle, ptr::from_mut(&mut status).cast()) };
        status.is_ok()
    }
}

unsafe extern "C" fn nothing(
    _device: *const SP_Device,
    _stream: SP_Stream,
    _status: *mut TF_Status,
) {
}
