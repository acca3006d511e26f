//! Calls that only this suite makes: they bypass the checks of the safe types, or have arguments
//! that the safe types never pass.

use std::ffi::c_void;

use crate::{
    device::{Device, DeviceMemory, Event, Kept, Strategy, Stream, host_size},
    error::Error,
};

impl Device {
    /// Returns a handle of the device whose allocations call the plug-in directly, even if the
    /// platform asks for the host's allocator.
    pub(super) fn directly(&self) -> Self {
        Self { strategy: Strategy::Plugin, ..self.clone() }
    }

    /// Returns the index that the plug-in wrote into the device.
    pub(super) fn written_ordinal(&self) -> i32 {
        let layout = self.plugin.registration.layout.field("SP_Device", "ordinal");
        layout.map_or(self.inner.ordinal, |field| self.inner.filled.read(field.offset))
    }
}

impl Event {
    /// Waits with the plug-in's function only.
    pub(super) fn block(&self) -> Result<(), Error> {
        let event = &self.inner;
        // SAFETY: the device and the event are alive.
        unsafe { event.device().calls().block_host_for_event(event.handle()) }
    }
}

impl Stream {
    /// Waits with the plug-in's own function only.
    pub(super) fn block_by_function(&self) -> Result<(), Error> {
        self.inner.noted(self.inner.block_by_function())
    }

    /// Waits with an event only.
    pub(super) fn block_by_event(&self) -> Result<(), Error> {
        self.inner.noted(self.inner.block_by_event())
    }

    /// Enqueues some work on `memory`: a copy to the host.
    pub(super) fn read_once(&self, memory: &DeviceMemory) -> Result<(), Error> {
        let bytes = host_size(memory.size())?;
        let host = self.inner.device.allocate_host(bytes)?;
        self.copy_to_host(memory, 0, bytes, host).map(drop)
    }

    /// Passes copies of no bytes to the plug-in, which the other functions never do.
    pub(super) fn copy_nothing(&self, memory: &DeviceMemory) -> Result<(), Error> {
        let mut part = memory.part(&self.inner.device, 0, 0)?;
        let mut host = self.inner.device.allocate_host(1)?;
        let start: *mut c_void = host.as_mut_ptr().cast();
        let kept = [Kept::Device(memory.keep()), Kept::Host(host.keep())];
        self.inner
            .enqueue(kept, || {
                let (calls, handle) = (self.inner.device.calls(), self.inner.handle);
                // SAFETY: device and stream are alive; memory and host are kept; no byte is copied.
                unsafe {
                    calls.memcpy_htod(handle, part.as_mut_ptr(), start.cast_const(), 0)?;
                    calls.memcpy_dtoh(handle, start, part.as_ptr(), 0)?;
                    calls.sync_memcpy_htod(part.as_mut_ptr(), start.cast_const(), 0)?;
                    calls.sync_memcpy_dtoh(start, part.as_ptr(), 0)
                }
            })
            .map(drop)
    }

    /// Passes fills of no bytes to the plug-in.
    pub(super) fn fill_nothing(&self, memory: &DeviceMemory) -> Result<(), Error> {
        let mut part = memory.part(&self.inner.device, 0, 0)?;
        self.inner
            .enqueue([Kept::Device(memory.keep())], || {
                let (calls, handle) = (self.inner.device.calls(), self.inner.handle);
                // SAFETY: device and stream are alive; the memory is kept; no byte is written.
                unsafe {
                    calls.mem_zero(handle, part.as_mut_ptr(), 0)?;
                    calls.memset(handle, part.as_mut_ptr(), 1, 0)?;
                    calls.memset32(handle, part.as_mut_ptr(), 1, 0)
                }
            })
            .map(drop)
    }
}
