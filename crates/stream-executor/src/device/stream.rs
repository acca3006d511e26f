//! Streams: work that a device does in order, while the host continues.
//!
//! A stream keeps all objects that its work uses (device memory, host memory, events, timers) alive
//! until the work is known to be done: when an event after it is complete, when the stream was
//! waited for, or when it is dropped. A stream whose end cannot be determined keeps them forever:
//! memory is leaked rather than freed while a device may be writing to it.

use std::{ptr, sync::Arc};

use serdes_abi::{SP_DeviceMemoryBase, SP_Stream};

use super::{
    event::{Event, EventInner},
    handle::Device,
    host_callback::HostCallback,
    host_memory::HostMemory,
    memory::DeviceMemory,
    pending_callback,
    stream_work::{Kept, StreamInner},
    timer::{Timer, TimerInner},
    transfer::Transfer,
};
use crate::{border::Calls, error::Error};

/// A stream of a device. Its calls can be made from several threads; they take effect in the order
/// in which they return.
#[derive(Debug)]
pub struct Stream {
    pub(crate) inner: Arc<StreamInner>,
}

impl Device {
    /// Makes a stream.
    ///
    /// # Errors
    /// The error that the plug-in reports.
    pub fn create_stream(&self) -> Result<Stream, Error> {
        Stream::create(self)
    }
}

impl Stream {
    fn create(device: &Device) -> Result<Self, Error> {
        let mut handle = ptr::null_mut();
        // SAFETY: the device is alive, and the handle lives through the call.
        unsafe { device.calls().create_stream(&raw mut handle) }?;
        let inner = StreamInner::new(device.clone(), handle);
        Ok(Self { inner: Arc::new(inner) })
    }

    /// Returns the device that the stream is on.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.inner.device
    }

    /// Enqueues a transfer of host memory with an event after it.
    fn transfer(
        &self,
        device: Kept,
        host: HostMemory,
        call: impl FnOnce() -> Result<(), Error>,
    ) -> Result<Transfer, Error> {
        let inner = &self.inner;
        let event = inner.spare_event()?;
        let kept = [device, Kept::Host(host.keep()), Kept::Event(Arc::clone(&event))];
        let number = self.inner.enqueue(kept, || {
            call()?;
            // SAFETY: device, stream and event are alive; the stream keeps the event.
            unsafe { inner.device.calls().record_event(inner.handle, event.handle()) }
        })?;
        Ok(Transfer::new(Arc::clone(inner), event, number, host))
    }

    /// Enqueues a copy of `bytes` bytes of `source`, beginning at byte `offset`, to the start of
    /// `target`, which [`Transfer::wait`] returns.
    ///
    /// # Errors
    /// [`Error::OutOfRange`]; [`Error::OtherDevice`]; the plug-in's errors. `target` is dropped in
    /// that case.
    pub fn copy_to_host(
        &self,
        source: &DeviceMemory,
        offset: u64,
        bytes: usize,
        target: HostMemory,
    ) -> Result<Transfer, Error> {
        let part = source.part(&self.inner.device, offset, bytes as u64)?;
        check_host(&target, bytes)?;
        let start = target.start();
        self.transfer(Kept::Device(source.keep()), target, || {
            if bytes == 0 {
                return Ok(());
            }
            let calls = self.inner.device.calls();
            // SAFETY: device and stream are alive; the part lies in memory that the stream keeps;
            // the target is long enough, kept by the stream, and inaccessible to others until the
            // transfer is done.
            unsafe { calls.memcpy_dtoh(self.inner.handle, start, part.as_ptr(), bytes as u64) }
        })
    }

    /// Enqueues a copy of the first `bytes` bytes of `source` into `target` at byte `offset`.
    /// [`Transfer::wait`] returns `source`.
    ///
    /// # Errors
    /// [`Error::OutOfRange`]; [`Error::OtherDevice`]; the plug-in's errors. `source` is dropped in
    /// that case.
    pub fn copy_to_device(
        &self,
        source: HostMemory,
        bytes: usize,
        target: &DeviceMemory,
        offset: u64,
    ) -> Result<Transfer, Error> {
        let mut part = target.part(&self.inner.device, offset, bytes as u64)?;
        check_host(&source, bytes)?;
        let start = source.start();
        self.transfer(Kept::Device(target.keep()), source, || {
            if bytes == 0 {
                return Ok(());
            }
            let calls = self.inner.device.calls();
            // SAFETY: as in `copy_to_host`; the source is only read.
            unsafe {
                calls.memcpy_htod(
                    self.inner.handle,
                    part.as_mut_ptr(),
                    start.cast_const(),
                    bytes as u64,
                )
            }
        })
    }

    /// Enqueues a copy of `bytes` bytes of device memory to device memory of this stream's device.
    /// The source may be on another device of the same plug-in.
    ///
    /// # Errors
    /// [`Error::OutOfRange`]; [`Error::OtherDevice`]; [`Error::Unsupported`]; what the plug-in
    /// reports.
    pub fn copy_on_device(
        &self,
        source: &DeviceMemory,
        source_offset: u64,
        target: &DeviceMemory,
        target_offset: u64,
        bytes: u64,
    ) -> Result<(), Error> {
        let from = source.part_beside(&self.inner.device, source_offset, bytes)?;
        let mut to = target.part(&self.inner.device, target_offset, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        let kept = [Kept::Device(source.keep()), Kept::Device(target.keep())];
        self.put(kept, |calls, stream| {
            // SAFETY: device and stream are alive; both parts lie in memory that the stream keeps.
            unsafe { calls.memcpy_dtod(stream, to.as_mut_ptr(), from.as_ptr(), bytes) }
        })
    }

    /// Enqueues a fill of `bytes` bytes of `target` at byte `offset`: `call` gets the stream and
    /// this part.
    fn fill(
        &self,
        target: &DeviceMemory,
        offset: u64,
        bytes: u64,
        call: impl FnOnce(Calls<'_>, SP_Stream, *mut SP_DeviceMemoryBase) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let mut part = target.part(&self.inner.device, offset, bytes)?;
        if bytes == 0 {
            return Ok(());
        }
        self.put([Kept::Device(target.keep())], |calls, stream| {
            call(calls, stream, part.as_mut_ptr())
        })
    }

    /// Enqueues work that no transfer waits for.
    fn put(
        &self,
        kept: impl IntoIterator<Item = Kept>,
        call: impl FnOnce(Calls<'_>, SP_Stream) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let inner = &self.inner;
        inner.enqueue(kept, || call(inner.device.calls(), inner.handle)).map(drop)
    }

    /// Enqueues filling `bytes` bytes of `target`, at byte `offset`, with zeros.
    ///
    /// # Errors
    /// [`Error::OutOfRange`]; [`Error::OtherDevice`]; [`Error::Unsupported`]; what the plug-in
    /// reports.
    pub fn mem_zero(&self, target: &DeviceMemory, offset: u64, bytes: u64) -> Result<(), Error> {
        self.fill(target, offset, bytes, |calls, stream, part| {
            // SAFETY: device and stream are alive; the part lies in memory that the stream keeps.
            unsafe { calls.mem_zero(stream, part, bytes) }
        })
    }

    /// Enqueues filling `bytes` bytes of `target`, at byte `offset`, with a byte.
    ///
    /// # Errors
    /// As [`Self::mem_zero`].
    pub fn memset(
        &self,
        target: &DeviceMemory,
        offset: u64,
        bytes: u64,
        pattern: u8,
    ) -> Result<(), Error> {
        self.fill(target, offset, bytes, |calls, stream, part| {
            // SAFETY: as in `mem_zero`.
            unsafe { calls.memset(stream, part, pattern, bytes) }
        })
    }

    /// Enqueues filling `bytes` bytes of `target`, a multiple of 4, at byte `offset`, with a
    /// pattern of four bytes.
    ///
    /// # Errors
    /// As [`Self::mem_zero`]; [`Error::InvalidArgument`] if `bytes` is not a multiple of 4.
    pub fn memset32(
        &self,
        target: &DeviceMemory,
        offset: u64,
        bytes: u64,
        pattern: u32,
    ) -> Result<(), Error> {
        if !bytes.is_multiple_of(4) {
            return Err(Error::InvalidArgument {
                what: "the size of a 32-bit fill",
                found: format!("{bytes} bytes"),
                expected: "a multiple of 4",
            });
        }
        self.fill(target, offset, bytes, |calls, stream, part| {
            // SAFETY: as in `mem_zero`.
            unsafe { calls.memset32(stream, part, pattern, bytes) }
        })
    }

    /// Records `event` after the stream's work so far.
    ///
    /// # Errors
    /// [`Error::OtherDevice`]; what the plug-in reports.
    pub fn record(&self, event: &Event) -> Result<(), Error> {
        let event = self.own_event(event)?;
        self.put([Kept::Event(Arc::clone(&event))], |calls, stream| {
            // SAFETY: device, stream and event are alive; the stream keeps the event.
            unsafe { calls.record_event(stream, event.handle()) }
        })
    }

    /// Makes the stream's later work wait for `event`.
    ///
    /// # Errors
    /// [`Error::OtherDevice`]; what the plug-in reports.
    pub fn wait_for(&self, event: &Event) -> Result<(), Error> {
        let event = self.own_event(event)?;
        self.put([Kept::Event(Arc::clone(&event))], |calls, stream| {
            // SAFETY: device, stream and event are alive; the stream keeps the event.
            unsafe { calls.wait_for_event(stream, event.handle()) }
        })
    }

    fn own_event(&self, event: &Event) -> Result<Arc<EventInner>, Error> {
        let event = event.keep();
        if event.device().is(&self.inner.device) {
            Ok(event)
        } else {
            Err(Error::OtherDevice { what: "event" })
        }
    }

    /// Makes the stream's later work wait for the present work of `other`.
    ///
    /// # Errors
    /// [`Error::OtherDevice`]; what the plug-in reports.
    pub fn wait_for_stream(&self, other: &Self) -> Result<(), Error> {
        if !other.inner.device.is(&self.inner.device) {
            return Err(Error::OtherDevice { what: "stream" });
        }
        self.put([], |calls, stream| {
            // SAFETY: device and both streams are alive; a stream that is dropped is waited for
            // first, so that nothing of it is left.
            unsafe { calls.create_stream_dependency(stream, other.inner.handle) }
        })
    }

    /// Enqueues the start of `timer` in the stream.
    ///
    /// # Errors
    /// [`Error::OtherDevice`]; [`Error::Unsupported`]; what the plug-in reports.
    pub fn start_timer(&self, timer: &Timer) -> Result<(), Error> {
        let timer = self.own_timer(timer)?;
        self.put([Kept::Timer(Arc::clone(&timer))], |calls, stream| {
            // SAFETY: device, stream and timer are alive; the stream keeps the timer.
            unsafe { calls.start_timer(stream, timer.handle()) }
        })
    }

    /// Enqueues the stop of `timer` in the stream.
    ///
    /// # Errors
    /// As [`Self::start_timer`].
    pub fn stop_timer(&self, timer: &Timer) -> Result<(), Error> {
        let timer = self.own_timer(timer)?;
        self.put([Kept::Timer(Arc::clone(&timer))], |calls, stream| {
            // SAFETY: device, stream and timer are alive; the stream keeps the timer.
            unsafe { calls.stop_timer(stream, timer.handle()) }
        })
    }

    fn own_timer(&self, timer: &Timer) -> Result<Arc<TimerInner>, Error> {
        let timer = timer.keep();
        if timer.device().is(&self.inner.device) {
            Ok(timer)
        } else {
            Err(Error::OtherDevice { what: "timer" })
        }
    }

    /// Enqueues a function that runs on the host, on a thread of the plug-in, after the stream's
    /// work so far.
    ///
    /// The function is run at most once. Its error (or panic) is reported to the plug-in and by
    /// [`HostCallback::outcome`].
    ///
    /// # Errors
    /// [`Error::CallbackRefused`]; [`Error::Unsupported`].
    pub fn host_callback(
        &self,
        function: impl FnOnce() -> Result<(), String> + Send + 'static,
    ) -> Result<HostCallback, Error> {
        let (callback, pending) = HostCallback::new(Box::new(function), Arc::clone(&self.inner));
        let argument = callback.argument();
        let number = self.inner.enqueue([Kept::Callback(pending)], || {
            let calls = self.inner.device.calls();
            // SAFETY: device and stream are alive; the callback takes any argument at any time, as
            // it looks the argument up.
            let accepted =
                unsafe { calls.host_callback(self.inner.handle, pending_callback::run, argument) }?;
            if accepted { Ok(()) } else { Err(Error::CallbackRefused) }
        });
        match number {
            Ok(_) => Ok(callback),
            Err(error) => {
                callback.refuse();
                Err(error)
            }
        }
    }

    /// Waits until the stream has done its work so far.
    ///
    /// # Errors
    /// The error that the plug-in reports, a failure of the work included.
    pub fn synchronize(&self) -> Result<(), Error> {
        self.inner.synchronize()
    }

    /// Returns the stream's status from the plug-in, without waiting.
    ///
    /// # Errors
    /// The error that the stream is in.
    pub fn status(&self) -> Result<(), Error> {
        self.inner.status()
    }

    /// Returns true if the stream has had no error yet: no call on it failed, no callback was
    /// refused, and the plug-in reports no error.
    #[must_use]
    pub fn is_ok(&self) -> bool {
        self.inner.status().is_ok() && !self.inner.has_failed()
    }
}

fn check_host(memory: &HostMemory, bytes: usize) -> Result<(), Error> {
    if bytes > memory.len() {
        return Err(Error::OutOfRange {
            what: "host memory",
            offset: 0,
            bytes: bytes as u64,
            size: memory.len() as u64,
        });
    }
    Ok(())
}
