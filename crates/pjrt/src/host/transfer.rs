//! A copy in progress, and the host memory that takes part in it.

use std::{mem::ManuallyDrop, sync::Arc};

use super::{
    buffer::BufferHandle, drop_thread::DropOnHostThread, event::Event, host_memory::HostMemory,
    manager::ManagerHandle,
};
use crate::PjrtError;

/// The other end of a copy; held, so that it is not destroyed before the copy is done.
#[derive(Debug)]
pub(super) enum Endpoint {
    /// An array that is being read.
    Buffer {
        /// The handle of the array.
        _handle: Arc<BufferHandle>,
    },
    /// An array that is sent in pieces.
    Manager {
        /// The transfer manager that receives the pieces.
        _handle: Arc<ManagerHandle>,
    },
}

/// A copy in progress between host memory and a device.
///
/// It owns the memory until the copy is done. If it is dropped before, the memory is kept as long
/// as the plug-in may use it.
#[derive(Debug)]
#[must_use = "the memory comes back from `wait`"]
pub struct Transfer {
    event: Option<Event>,
    /// Taken once: by `wait`, or on drop.
    held: ManuallyDrop<(HostMemory, Endpoint)>,
}

impl Transfer {
    pub(super) fn new(event: Option<Event>, memory: HostMemory, endpoint: Endpoint) -> Self {
        Self { event, held: ManuallyDrop::new((memory, endpoint)) }
    }

    /// Returns true if the transfer is done, or has failed.
    ///
    /// # Errors
    /// The plug-in's errors.
    pub fn is_done(&self) -> Result<bool, PjrtError> {
        self.event.as_ref().map_or(Ok(true), Event::is_ready)
    }

    /// Waits until the copy is done, and returns the memory.
    ///
    /// # Errors
    /// [`PjrtError::Status`] if it failed.
    pub fn wait(self) -> Result<HostMemory, PjrtError> {
        if let Some(event) = &self.event {
            // If this fails, the transfer is dropped like one that may still be in progress.
            event.wait()?;
        }
        let mut done = ManuallyDrop::new(self);
        drop(done.event.take());
        // SAFETY: `done` is never dropped, so this is the only time that the value is taken.
        let (memory, _) = unsafe { ManuallyDrop::take(&mut done.held) };
        Ok(memory)
    }
}

impl Drop for Transfer {
    fn drop(&mut self) {
        // SAFETY: `wait` takes the value only from transfers that are not dropped, and this runs
        // once.
        let held = unsafe { ManuallyDrop::take(&mut self.held) };
        let Some(event) = self.event.take() else { return };
        if matches!(event.is_ready(), Ok(true)) {
            return;
        }
        match DropOnHostThread::new(held) {
            Ok(held) => event.keep(held),
            // If there is no thread to drop it on, it is leaked.
            Err(held) => std::mem::forget(held),
        }
    }
}
