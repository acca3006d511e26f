//! The calls of a plug-in on one device, one function per callback.
//!
//! Each function checks that the plug-in has the callback, records the call in progress, passes a
//! status, and converts it into a result.

use std::ffi::c_void;

use serdes_abi::{
    SE_EventStatus, SE_StatusCallbackFn, SP_AllocatorStats, SP_Device, SP_DeviceMemoryBase,
    SP_Event, SP_Stream, SP_Timer,
};

use super::{function_table::FunctionTable, status::Status, time_limit::enter};
use crate::error::Error;

/// A device and the functions that act on it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Calls<'a> {
    pub(crate) functions: &'a FunctionTable,
    pub(crate) device: *mut SP_Device,
}

/// A separate function, because an error that is created in advance is also dropped by every
/// successful call.
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
            /// The device is alive; handles are living ones of this device; pointers to device
            /// memory describe memory of it that is long enough; host pointers are valid for the
            /// size until the plug-in is done with them.
            #[inline]
            pub(crate) unsafe fn $name(&self, $($argument: $type),*) -> Result<(), Error> {
                let Some(function) = self.functions.executor.$name else {
                    return unsupported(stringify!($name));
                };
                let mut status = Status::new();
                {
                    let _call = enter(&stringify!($name));
                    // SAFETY: the function has this signature by its field's type; device, handles
                    // and pointers are what it asks for by the conditions above; the status lives
                    // through the call.
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
            /// The device is alive; the handle is a living one of this device, not in use, and not
            /// used afterwards.
            pub(crate) unsafe fn $name(&self, handle: $type) {
                // NULL is a handle that plug-ins may return, and for which there is nothing to
                // destroy (004:779).
                if let Some(function) = self.functions.executor.$name
                    && !handle.is_null()
                {
                    let _call = enter(&stringify!($name));
                    // SAFETY: device and handle are alive, and the handle is not used after this,
                    // by the conditions above.
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
        /// Records an event after a stream's work so far.
        record_event(stream: SP_Stream, event: SP_Event);
        /// Makes a stream wait for an event.
        wait_for_event(stream: SP_Stream, event: SP_Event);
        /// Makes a timer.
        create_timer(timer: *mut SP_Timer);
        /// Enqueues a timer's start in a stream.
        start_timer(stream: SP_Stream, timer: SP_Timer);
        /// Enqueues a timer's stop in a stream.
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
        let Some(function) = self.functions.executor.get_event_status else {
            return unsupported("get_event_status");
        };
        let _call = enter(&"get_event_status");
        // SAFETY: device and event are alive, by the conditions above.
        Ok(unsafe { function(self.device, event) })
    }

    /// Enqueues a host function; returns true if it is accepted.
    ///
    /// # Safety
    /// The device is alive, the stream a living one of it, and `callback` can be called with
    /// `argument` from any thread at any time.
    pub(crate) unsafe fn host_callback(
        &self,
        stream: SP_Stream,
        callback: SE_StatusCallbackFn,
        argument: *mut c_void,
    ) -> Result<bool, Error> {
        let Some(function) = self.functions.executor.host_callback else {
            return unsupported("host_callback");
        };
        let _call = enter(&"host_callback");
        // SAFETY: device and stream are alive, and the callback takes the argument at any time, by
        // the conditions above.
        Ok(unsafe { function(self.device, stream, Some(callback), argument) } != 0)
    }

    /// Returns the time between a timer's start and stop, in nanoseconds.
    ///
    /// # Safety
    /// The device is alive and the timer a living one of it.
    pub(crate) unsafe fn nanoseconds(&self, timer: SP_Timer) -> Result<u64, Error> {
        if let Some(error) = &self.functions.timers_error {
            return Err(Error::Status(error.clone()));
        }
        let Some(function) = self.functions.timers.nanoseconds else {
            return unsupported("nanoseconds");
        };
        let _call = enter(&"nanoseconds");
        // SAFETY: the timer is alive, by the conditions above.
        Ok(unsafe { function(timer) })
    }

    /// Allocates `bytes` bytes of device memory into `memory`; a NULL `opaque` there is failure.
    ///
    /// # Safety
    /// The device is alive; `memory` is a whole struct, zeroed, its size preset, that is borrowed
    /// exclusively.
    pub(crate) unsafe fn allocate(
        &self,
        bytes: u64,
        memory: *mut SP_DeviceMemoryBase,
    ) -> Result<(), Error> {
        let Some(pair) = &self.functions.memory.device else { return unsupported("allocate") };
        // SAFETY: device and struct are what the function asks for, by the conditions above.
        unsafe { pair.allocate.get()(self.device, bytes, memory) };
        Ok(())
    }

    /// Frees device memory.
    ///
    /// # Safety
    /// The device is alive; `memory` describes memory of [`Self::allocate`] of this device that is
    /// no longer used, or no memory (NULL).
    pub(crate) unsafe fn deallocate(&self, memory: *mut SP_DeviceMemoryBase) {
        if let Some(pair) = &self.functions.memory.device {
            // SAFETY: the memory came from this function's counterpart and is no longer used, by
            // the conditions above.
            unsafe { pair.free.get()(self.device, memory) };
        }
    }

    /// Allocates host memory that asynchronous copies can use; NULL is failure.
    ///
    /// # Safety
    /// The device is alive.
    pub(crate) unsafe fn allocate_host(&self, bytes: u64) -> Result<*mut c_void, Error> {
        let Some(pair) = &self.functions.memory.host else {
            return unsupported("host_memory_allocate");
        };
        // SAFETY: the device is alive, by the condition above.
        Ok(unsafe { pair.allocate.get()(self.device, bytes) })
    }

    /// Frees host memory.
    ///
    /// # Safety
    /// The device is alive; `memory` came from [`Self::allocate_host`] of it, and is no longer
    /// used.
    pub(crate) unsafe fn deallocate_host(&self, memory: *mut c_void) {
        if let Some(pair) = &self.functions.memory.host {
            // SAFETY: the memory came from this function's counterpart and is no longer used, by
            // the conditions above.
            unsafe { pair.free.get()(self.device, memory) };
        }
    }

    /// Allocates memory that host and device address alike; NULL is failure.
    ///
    /// # Safety
    /// The device is alive.
    pub(crate) unsafe fn allocate_unified(&self, bytes: u64) -> Result<*mut c_void, Error> {
        let Some(pair) = &self.functions.memory.unified else {
            return unsupported("unified_memory_allocate");
        };
        // SAFETY: the device is alive, by the condition above.
        Ok(unsafe { pair.allocate.get()(self.device, bytes) })
    }

    /// Frees unified memory.
    ///
    /// # Safety
    /// The device is alive; `memory` came from [`Self::allocate_unified`] of it, and is no longer
    /// used.
    pub(crate) unsafe fn deallocate_unified(&self, memory: *mut c_void) {
        if let Some(pair) = &self.functions.memory.unified {
            // SAFETY: the memory came from this function's counterpart and is no longer used, by
            // the conditions above.
            unsafe { pair.free.get()(self.device, memory) };
        }
    }

    /// Fills in statistics of the device's allocator; false: not available.
    ///
    /// # Safety
    /// The device is alive; `stats` is a whole struct, zeroed, its size preset, that is borrowed
    /// exclusively.
    pub(crate) unsafe fn statistics(&self, stats: *mut SP_AllocatorStats) -> Result<bool, Error> {
        let Some(function) = &self.functions.memory.statistics else {
            return unsupported("get_allocator_stats");
        };
        // SAFETY: device and struct are what the function asks for, by the conditions above.
        Ok(unsafe { function.get()(self.device, stats) } != 0)
    }

    /// Returns the free and the total bytes of the device; `None`: not available.
    ///
    /// # Safety
    /// The device is alive.
    pub(crate) unsafe fn memory_usage(&self) -> Result<Option<(i64, i64)>, Error> {
        let Some(function) = &self.functions.memory.usage else {
            return unsupported("device_memory_usage");
        };
        let (mut free, mut total) = (0, 0);
        // SAFETY: the device is alive, by the condition above; both numbers live through the call.
        let available = unsafe { function.get()(self.device, &raw mut free, &raw mut total) };
        Ok((available != 0).then_some((free, total)))
    }
}
