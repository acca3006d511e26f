//! Timers, which measure the duration of a part of a stream's work on the device.

use std::{ptr, sync::Arc};

use serdes_abi::SP_Timer;

use super::handle::Device;
use crate::error::Error;

/// A timer of a device. [`Stream::start_timer`](super::Stream::start_timer) and
/// [`Stream::stop_timer`](super::Stream::stop_timer) enqueue it in a stream.
#[derive(Debug)]
pub struct Timer {
    inner: Arc<TimerInner>,
}

/// Shared ownership of a timer: by its handle, and by the streams with work that uses it.
#[derive(Debug)]
pub(crate) struct TimerInner {
    device: Device,
    handle: SP_Timer,
}

// SAFETY: the handle means something to the plug-in alone, whose timer functions the C API lets any
// thread call.
unsafe impl Send for TimerInner {}
// SAFETY: see above.
unsafe impl Sync for TimerInner {}

impl TimerInner {
    pub(crate) fn handle(&self) -> SP_Timer {
        self.handle
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }
}

impl Drop for TimerInner {
    fn drop(&mut self) {
        // SAFETY: the device is alive; no stream has the timer in its work any more, as streams
        // keep timers.
        unsafe { self.device.calls().destroy_timer(self.handle) };
    }
}

impl Device {
    /// Makes a timer.
    ///
    /// # Errors
    /// [`Error::Unsupported`]; what the plug-in reports.
    pub fn create_timer(&self) -> Result<Timer, Error> {
        Timer::create(self)
    }
}

impl Timer {
    fn create(device: &Device) -> Result<Self, Error> {
        // A timer that could never be destroyed is not created.
        if device.registration().functions.executor.destroy_timer.is_none() {
            return Err(Error::Unsupported { function: "destroy_timer" });
        }
        let mut handle = ptr::null_mut();
        // SAFETY: the device is alive, and the handle lives through the call.
        unsafe { device.calls().create_timer(&raw mut handle) }?;
        Ok(Self { inner: Arc::new(TimerInner { device: device.clone(), handle }) })
    }

    pub(crate) fn keep(&self) -> Arc<TimerInner> {
        Arc::clone(&self.inner)
    }

    /// Returns the time between start and stop, in nanoseconds; meaningful once the stream has
    /// passed both.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    pub fn nanoseconds(&self) -> Result<u64, Error> {
        // SAFETY: the device and the timer are alive.
        unsafe { self.inner.device.calls().nanoseconds(self.inner.handle) }
    }

    /// Returns the time between start and stop, in whole microseconds.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    pub fn microseconds(&self) -> Result<u64, Error> {
        Ok(self.nanoseconds()? / 1000)
    }
}
