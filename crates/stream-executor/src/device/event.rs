//! Events: points in the work of a stream that others can wait for.

use std::{ptr, sync::Arc};

use serdes_abi::{SE_EventStatus, SP_Event};

use super::handle::Device;
use crate::error::Error;

/// An event of a device.
#[derive(Debug)]
pub struct Event {
    pub(crate) inner: Arc<EventInner>,
}

/// Shared ownership of an event: by its handle, and by the streams with work that uses it.
#[derive(Debug)]
pub(crate) struct EventInner {
    device: Device,
    handle: SP_Event,
}

// SAFETY: the handle means something to the plug-in alone, whose event functions the C API lets any
// thread call.
unsafe impl Send for EventInner {}
// SAFETY: see above.
unsafe impl Sync for EventInner {}

/// The state of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EventStatus {
    /// The plug-in does not know the state, which is an error.
    Unknown,
    /// The work before it failed.
    Error,
    /// The work before it is not done.
    Pending,
    /// The work before it is done.
    Complete,
    /// A number that the C API does not define; treat it like [`EventStatus::Unknown`].
    Other(i32),
}

impl From<SE_EventStatus> for EventStatus {
    fn from(status: SE_EventStatus) -> Self {
        match status {
            SE_EventStatus::UNKNOWN => Self::Unknown,
            SE_EventStatus::ERROR => Self::Error,
            SE_EventStatus::PENDING => Self::Pending,
            SE_EventStatus::COMPLETE => Self::Complete,
            SE_EventStatus(other) => Self::Other(other),
        }
    }
}

impl EventInner {
    pub(crate) fn create(device: &Device) -> Result<Self, Error> {
        let mut handle = ptr::null_mut();
        // SAFETY: the device is alive, and the handle lives through the call.
        unsafe { device.calls().create_event(&raw mut handle) }?;
        Ok(Self { device: device.clone(), handle })
    }

    pub(crate) fn handle(&self) -> SP_Event {
        self.handle
    }

    pub(crate) fn device(&self) -> &Device {
        &self.device
    }

    #[inline]
    fn raw_status(&self) -> Result<SE_EventStatus, Error> {
        // SAFETY: the device and the event are alive.
        unsafe { self.device.calls().get_event_status(self.handle) }
    }

    /// Returns true if the work before the event is done.
    pub(crate) fn is_done(&self) -> Result<bool, Error> {
        match self.raw_status()? {
            SE_EventStatus::COMPLETE => Ok(true),
            SE_EventStatus::PENDING => Ok(false),
            SE_EventStatus(state) => Err(Error::EventFailed { state }),
        }
    }

    /// Waits until the work before the event is done.
    pub(crate) fn wait(&self) -> Result<(), Error> {
        // SAFETY: the device and the event are alive.
        unsafe { self.device.calls().block_host_for_event(self.handle) }?;
        // A plug-in may return early. The event's state decides, as in TensorFlow.
        let mut pause = std::time::Duration::from_micros(20);
        while !self.is_done()? {
            std::thread::sleep(pause);
            pause = (pause * 2).min(std::time::Duration::from_millis(2));
        }
        Ok(())
    }
}

impl Drop for EventInner {
    fn drop(&mut self) {
        // SAFETY: the device is alive; no stream has the event in its work any more, as streams
        // keep events.
        unsafe { self.device.calls().destroy_event(self.handle) };
    }
}

impl Device {
    /// Makes an event.
    ///
    /// # Errors
    /// The error that the plug-in reports.
    pub fn create_event(&self) -> Result<Event, Error> {
        Event::create(self)
    }
}

impl Event {
    fn create(device: &Device) -> Result<Self, Error> {
        Ok(Self { inner: Arc::new(EventInner::create(device)?) })
    }

    pub(crate) fn keep(&self) -> Arc<EventInner> {
        Arc::clone(&self.inner)
    }

    /// Returns the current state of the event.
    ///
    /// # Errors
    /// [`Error::Unsupported`].
    pub fn status(&self) -> Result<EventStatus, Error> {
        self.inner.raw_status().map(EventStatus::from)
    }

    /// Waits until the work before it is done.
    ///
    /// # Errors
    /// The error that the plug-in reports; [`Error::EventFailed`] if the work failed.
    pub fn wait(&self) -> Result<(), Error> {
        self.inner.wait()
    }
}
