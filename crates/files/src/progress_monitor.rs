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
    /// Tensors of a source go onto the device.
    Upload,
    /// Buffers of the device go into a state.
    Save,
    /// Buffers of a state go onto the device.
    Restore,
    /// Buffers of the device go into a target.
    ReadBack,
    /// Data is read and compared with checksums.
    Verify,
    /// Data of two files is read and compared.
    Compare,
    /// Tensors of files go into another file.
    Convert,
}

/// Hears how far a piece of work has come; called from several threads, often, so be quick.
pub trait Progress: Send + Sync {
    /// A phase begins that will move `bytes` bytes.
    fn begin(&self, phase: Phase, bytes: u64);

    /// Another `bytes` bytes are done.
    fn advance(&self, bytes: u64);
}

/// The work was stopped by [`ProgressMonitor::cancel`].
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

    /// Stops the work at its next step; it then fails and leaves no file. May be called from a
    /// signal handler.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Returns true if the work was cancelled.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    /// Ends the work if it was cancelled.
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

    /// Notes that another `bytes` bytes are done.
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
