//! A copy that is on its way, and the memory of the host that takes part in it.

use std::{mem::ManuallyDrop, sync::Arc};

use super::{
    buffer::BufferHandle, drop_thread::DropOnHostThread, event::Event, host_memory::HostMemory,
    manager::ManagerHandle,
};
use crate::PjrtError;

/// The other end of a copy; held, so that it is not destroyed before the copy is done.
#[derive(Debug)]
pub(super) enum Endpoint {
    /// An array that is read.
    Buffer {
        /// It.
        _handle: Arc<BufferHandle>,
    },
    /// An array that comes in pieces.
    Manager {
        /// The transfer manager that receives the pieces.
        _handle: Arc<ManagerHandle>,
    },
}

/// A copy between memory of the host and a device, which is on its way.
///
/// It has the memory until it is done. One that is dropped before keeps it for as long as the
/// plug-in may use it.
#[derive(Debug)]
#[must_use = "the memory comes back from `wait`"]
pub struct Transfer {
    event: Option<Event>,
    /// Taken once: by `wait`, or when it is dropped.
    held: ManuallyDrop<(HostMemory, Endpoint)>,
}

impl Transfer {
    pub(super) fn new(event: Option<Event>, memory: HostMemory, endpoint: Endpoint) -> Self {
        Self { event, held: ManuallyDrop::new((memory, endpoint)) }
    }

    /// Returns true if the transfer is done, or has failed.
    ///
    /// # Errors
    /// As the plug-in's.
    pub fn is_done(&self) -> Result<bool, PjrtError> {
        self.event.as_ref().map_or(Ok(true), Event::is_ready)
    }

    /// Waits until it is done, and gives the memory back.
    ///
    /// # Errors
    /// [`PjrtError::Status`] if it failed.
    pub fn wait(self) -> Result<HostMemory, PjrtError> {
        if let Some(event) = &self.event {
            // Where this fails the transfer is dropped as one that may still be going on.
            event.wait()?;
        }
        let mut done = ManuallyDrop::new(self);
        drop(done.event.take());
        // SAFETY: `done` is never dropped, so that this takes it the only time.
        let (memory, _) = unsafe { ManuallyDrop::take(&mut done.held) };
        Ok(memory)
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        // SAFETY: `wait` takes it only of transfers that are not dropped, and this runs once.
        let held = unsafe { ManuallyDrop::take(&mut self.held) };
        let Some(event) = self.event.take() else { return };
        if matches!(event.is_ready(), Ok(true)) {
            return;
        }
        match DropOnHostThread::new(held) {
            Ok(held) => event.keep(held),
            // Without a thread to drop it on it is kept for good.
            Err(held) => std::mem::forget(held),
        }
    }
}
