//! The calls of SP_StreamExecutor on one device, one function a callback.
//!
//! Each looks whether the plug-in has the callback, says that the call is in progress, hands a status in, and turns it into a result.

use std::ffi::c_void;

use serdes_abi::{
    SE_EventStatus, SE_StatusCallbackFn, SP_Device, SP_DeviceMemoryBase, SP_Event, SP_Stream,
    SP_Timer,
};

use super::call::enter;
use super::error::Error;
use super::registration::Registration;
use super::status::Status;

/// A device and the functions that act on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calls<'a> {
    pub(crate) registration: &'a Registration,
    pub(crate) device: *mut SP_Device,
}

/// Apart, because an error that is made in advance is also dropped by every call that goes well.
#[cold]
fn unsupported<T>(function: &'static str) -> Result<T, Error> {
    Err(Error::Unsupported { function })
}

/// Defines calls that report a status.
macro_rules! status_calls {
    ($( $(#[$attribute:meta])* $name:ident($($argument:ident: $type:ty),*); )*) => {
        $(
            $(#[$attribute])*
            ///
            /// # Safety
            /// The device is alive; handles are living ones of this device; pointers to device memory describe memory of it that is
            /// long enough; host pointers are valid for the size until the plug-in is done with them.
            #[inline]
            pub(crate) unsafe fn $name(&self, $($argument: $type),*) -> Result<(), Error> {
                let Some(function) = self.registration.executor.$name else {
                    return unsupported(stringify!($name));
                };
                let mut status = Status::new();
                {
                    let _call = enter(&stringify!($name));
                    // SAFETY: the caller's; the status lives through the call.
                    unsafe { function(self.device, $($argument,)* status.as_mut_ptr()) };
                }
                status.into_result(stringify!($name))
            }
        )*
    };
}

/// Defines calls that destroy a handle.
macro_rules! destroy_calls {
    ($( $(#[$attribute:meta])* $name:ident($type:ty); )*) => {
        $(
            $(#[$attribute])*
            ///
            /// # Safety
            /// The device is alive; the handle is a living one of this device, in use by nobody, and not used afterwards.
            pub(crate) unsafe fn $name(&self, handle: $type) {
                // NULL is a handle that plug-ins may give, and for which there is nothing to destroy (004:779).
                if let Some(function) = self.registration.executor.$name
                    && !handle.is_null()
                {
                    let _call = enter(&stringify!($name));
                    // SAFETY: the caller's.
                    unsafe { function(self.device, handle) };
                }
            }
        )*
    };
}

impl Calls<'_> {
    status_calls! {
        /// Makes a stream.
        create_stream(stream: *mut SP_Stream);
        /// Makes one stream wait for another's work so far.
        create_stream_dependency(dependent: SP_Stream, other: SP_Stream);
        /// Reports a stream's error.
        get_stream_status(stream: SP_Stream);
        /// Makes an event.
        create_event(event: *mut SP_Event);
        /// Puts an event behind a stream's work so far.
        record_event(stream: SP_Stream, event: SP_Event);
        /// Makes a stream wait for an event.
        wait_for_event(stream: SP_Stream, event: SP_Event);
        /// Makes a timer.
        create_timer(timer: *mut SP_Timer);
        /// Puts a timer's start into a stream.
        start_timer(stream: SP_Stream, timer: SP_Timer);
        /// Puts a timer's stop into a stream.
        stop_timer(stream: SP_Stream, timer: SP_Timer);
        /// Enqueues a copy from device to host.
        memcpy_dtoh(stream: SP_Stream, host: *mut c_void, source: *const SP_DeviceMemoryBase, bytes: u64);
        /// Enqueues a copy from host to device.
        memcpy_htod(stream: SP_Stream, target: *mut SP_DeviceMemoryBase, host: *const c_void, bytes: u64);
        /// Enqueues a copy on the device.
        memcpy_dtod(stream: SP_Stream, target: *mut SP_DeviceMemoryBase, source: *const SP_DeviceMemoryBase, bytes: u64);
        /// Copies from device to host.
        sync_memcpy_dtoh(host: *mut c_void, source: *const SP_DeviceMemoryBase, bytes: u64);
        /// Copies from host to device.
        sync_memcpy_htod(target: *mut SP_DeviceMemoryBase, host: *const c_void, bytes: u64);
        /// Copies on the device.
        sync_memcpy_dtod(target: *mut SP_DeviceMemoryBase, source: *const SP_DeviceMemoryBase, bytes: u64);
        /// Waits for an event.
        block_host_for_event(event: SP_Event);
        /// Waits for a stream.
        block_host_until_done(stream: SP_Stream);
        /// Waits for the device.
        synchronize_all_activity();
        /// Enqueues filling with zeros.
        mem_zero(stream: SP_Stream, target: *mut SP_DeviceMemoryBase, bytes: u64);
        /// Enqueues filling with a byte.
        memset(stream: SP_Stream, target: *mut SP_DeviceMemoryBase, pattern: u8, bytes: u64);
        /// Enqueues filling with a 32-bit pattern.
        memset32(stream: SP_Stream, target: *mut SP_DeviceMemoryBase, pattern: u32, bytes: u64);
    }

    destroy_calls! {
        /// Destroys a stream.
        destroy_stream(SP_Stream);
        /// Destroys an event.
        destroy_event(SP_Event);
        /// Destroys a timer.
        destroy_timer(SP_Timer);
    }

    /// Polls an event.
    ///
    /// # Safety
    /// The device is alive and the event a living one of it.
    #[inline]
    pub(crate) unsafe fn get_event_status(&self, event: SP_Event) -> Result<SE_EventStatus, Error> {
        let Some(function) = self.registration.executor.get_event_status else {
            return unsupported("get_event_status");
        };
        let _call = enter(&"get_event_status");
        // SAFETY: the caller's.
        Ok(unsafe { function(self.device, event) })
    }

    /// Enqueues a host function; true: accepted.
    ///
    /// # Safety
    /// The device is alive, the stream a living one of it, and `callback` can be called with `argument` from any thread at any time.
    pub(crate) unsafe fn host_callback(
        &self,
        stream: SP_Stream,
        callback: SE_StatusCallbackFn,
        argument: *mut c_void,
    ) -> Result<bool, Error> {
        let Some(function) = self.registration.executor.host_callback else {
            return unsupported("host_callback");
        };
        let _call = enter(&"host_callback");
        // SAFETY: the caller's.
        Ok(unsafe { function(self.device, stream, Some(callback), argument) } != 0)
    }

    /// The time between a timer's start and stop, in nanoseconds.
    ///
    /// # Safety
    /// The device is alive and the timer a living one of it.
    pub(crate) unsafe fn nanoseconds(&self, timer: SP_Timer) -> Result<u64, Error> {
        if let Some(error) = &self.registration.timers_error {
            return Err(Error::Status(error.clone()));
        }
        let Some(function) = self.registration.timers.nanoseconds else {
            return unsupported("nanoseconds");
        };
        let _call = enter(&"nanoseconds");
        // SAFETY: the caller's.
        Ok(unsafe { function(timer) })
    }
}
