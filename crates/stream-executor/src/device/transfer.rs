//! A copy in progress between host and device.

use std::sync::Arc;

use super::{event::EventInner, host_memory::HostMemory, stream_work::StreamInner};
use crate::error::Error;

/// A copy that was enqueued. It holds the host memory that the copy uses, and returns it when the
/// copy is done.
///
/// Dropping it does not stop the copy: the stream keeps the memory until the copy is done.
#[derive(Debug)]
#[must_use = "the host memory comes back from `wait`"]
pub struct Transfer {
    stream: Arc<StreamInner>,
    event: Arc<EventInner>,
    number: u64,
    host: HostMemory,
}

impl Transfer {
    pub(crate) fn new(
        stream: Arc<StreamInner>,
        event: Arc<EventInner>,
        number: u64,
        host: HostMemory,
    ) -> Self {
        Self { stream, event, number, host }
    }

    /// Returns true if the copy is done.
    ///
    /// # Errors
    /// [`Error::EventFailed`] if it failed.
    pub fn is_done(&self) -> Result<bool, Error> {
        self.event.is_done()
    }

    /// Waits until the copy is done, and returns the host memory.
    ///
    /// # Errors
    /// The error that the plug-in reports of the event or the stream; [`Error::EventFailed`]. The
    /// host memory stays with the stream in that case, because the copy may not be over.
    pub fn wait(self) -> Result<HostMemory, Error> {
        let Self { stream, event, number, host } = self;
        event.wait()?;
        stream.passed(number);
        stream.reuse(event);
        // Some failures show only in the stream, afterwards.
        stream.status()?;
        Ok(host)
    }
}
