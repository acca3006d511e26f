//! Progress and cancellation of long work.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Phase of a long piece of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Phase {
    /// Uploads tensors of a source to the device.
    Upload,
    /// Saves buffers of the device to a state.
    Save,
    /// Restores buffers of a state to the device.
    Restore,
    /// Reads buffers of the device into a target.
    ReadBack,
    /// Reads data and compares it with checksums.
    Verify,
    /// Reads and compares the data of two files.
    Compare,
    /// Converts tensors of files to another file.
    Convert,
}

/// Listener for progress; called often and from several threads, so it must be quick.
pub trait Progress: Send + Sync {
    /// Called when a phase that will move `bytes` bytes begins.
    fn begin(&self, phase: Phase, bytes: u64);

    /// Called when another `bytes` bytes are done.
    fn advance(&self, bytes: u64);
}

/// Error of work that was stopped by [`ProgressMonitor::cancel`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cancelled")]
#[non_exhaustive]
pub struct Cancelled;

/// Listener for the progress of a piece of work, and its cancellation. Clones share the flag.
#[derive(Clone, Default)]
pub struct ProgressMonitor {
    cancelled: Arc<AtomicBool>,
    progress: Option<Arc<dyn Progress>>,
}

impl ProgressMonitor {
    /// Creates a monitor without a listener, not cancelled.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the listener for progress.
    #[must_use]
    pub fn with_progress(mut self, progress: Arc<dyn Progress>) -> Self {
        self.progress = Some(progress);
        self
    }

    /// Stops the work at its next step; it then fails and leaves no file. Safe to call from a
    /// signal handler.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Returns true if the work was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Returns an error if the work was cancelled.
    ///
    /// # Errors
    /// [`Cancelled`] if it was.
    pub fn check(&self) -> Result<(), Cancelled> {
        if self.is_cancelled() { Err(Cancelled) } else { Ok(()) }
    }

    /// Tells the listener that a phase begins that will move `bytes` bytes.
    pub fn begin(&self, phase: Phase, bytes: u64) {
        if let Some(progress) = &self.progress {
            progress.begin(phase, bytes);
        }
    }

    /// Reports to the listener that another `bytes` bytes are done.
    ///
    /// # Errors
    /// [`Cancelled`] if the work was stopped.
    pub fn advance(&self, bytes: u64) -> Result<(), Cancelled> {
        if let Some(progress) = &self.progress {
            progress.advance(bytes);
        }
        self.check()
    }
}

impl fmt::Debug for ProgressMonitor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProgressMonitor")
            .field("cancelled", &self.is_cancelled())
            .field("progress", &self.progress.is_some())
            .finish()
    }
}
