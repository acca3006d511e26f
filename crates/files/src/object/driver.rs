//! Runs the asynchronous requests to a store for synchronous callers.

use std::{
    fmt, io,
    num::NonZero,
    sync::mpsc::{Receiver, RecvTimeoutError, sync_channel},
    thread::available_parallelism,
    time::{Duration, Instant},
};

use object_store::Error as StoreError;
use tokio::runtime::{Builder, Runtime};

use super::messages::{is_refusal, message_of};
use crate::{Cancelled, ProgressMonitor};

/// Maximum number of threads for requests.
const MOST_THREADS: usize = 4;
/// Interval at which a wait for a store checks for cancellation.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Receiver of a request's result.
pub type Outcome<T> = Receiver<io::Result<T>>;

/// Runtime for requests, and the token that cancels the wait for them.
pub struct Driver {
    runtime: Option<Runtime>,
    monitor: ProgressMonitor,
}

impl Driver {
    /// Creates a runtime; waits end when `monitor` is cancelled.
    pub fn new(monitor: ProgressMonitor) -> io::Result<Self> {
        // Encrypting and copying many answers at a time takes more than one core.
        let threads = available_parallelism().map_or(1, NonZero::get).min(MOST_THREADS);
        let runtime = Builder::new_multi_thread().worker_threads(threads).enable_all().build()?;
        Ok(Self { runtime: Some(runtime), monitor })
    }

    /// Starts a request to a store and returns the channel of its outcome. The request is abandoned
    /// when the work is cancelled.
    pub fn start<T: Send + 'static>(
        &self,
        request: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Outcome<T> {
        self.start_io(async move { request.await.map_err(system_error) })
    }

    /// Starts a request whose errors are I/O errors, and returns the channel of its outcome.
    pub fn start_io<T: Send + 'static>(
        &self,
        request: impl Future<Output = io::Result<T>> + Send + 'static,
    ) -> Outcome<T> {
        let monitor = self.monitor.clone();
        let stopped = async move {
            while !monitor.is_cancelled() {
                tokio::time::sleep(LOOK_EVERY).await;
            }
        };
        self.send(async move {
            tokio::select! {
                biased;
                outcome = request => outcome,
                () = stopped => Err(io::Error::other(Cancelled)),
            }
        })
    }

    /// Starts a request to a store that runs to its end even if the work is cancelled: after an
    /// abandoned request it would not be known if it took effect.
    pub(super) fn start_kept<T: Send + 'static>(
        &self,
        request: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Outcome<T> {
        self.send(async move { request.await.map_err(system_error) })
    }

    fn send<T: Send + 'static>(
        &self,
        request: impl Future<Output = io::Result<T>> + Send + 'static,
    ) -> Outcome<T> {
        let (send, outcome) = sync_channel(1);
        self.spawn(async move {
            // The receiver is gone if the request was abandoned.
            let _ = send.send(request.await);
        });
        outcome
    }

    /// Spawns a task in the background.
    pub fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.runtime {
            runtime.spawn(task);
        }
    }

    /// Sends a request to a store and waits for its outcome.
    pub fn run<T: Send + 'static>(
        &self,
        request: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> io::Result<T> {
        self.wait(&self.start(request))
    }

    /// Sends a request with I/O errors and waits for its outcome.
    pub fn run_io<T: Send + 'static>(
        &self,
        request: impl Future<Output = io::Result<T>> + Send + 'static,
    ) -> io::Result<T> {
        self.wait(&self.start_io(request))
    }

    /// Waits for an outcome until the work is cancelled.
    pub fn wait<T>(&self, outcome: &Outcome<T>) -> io::Result<T> {
        loop {
            match outcome.recv_timeout(LOOK_EVERY) {
                Ok(outcome) => return outcome,
                Err(RecvTimeoutError::Disconnected) => return Err(no_answer()),
                Err(RecvTimeoutError::Timeout) if self.monitor.is_cancelled() => {
                    return Err(io::Error::other(Cancelled));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // Dropping a runtime blocks, which threads of another runtime must not do.
        if let Some(runtime) = self.runtime.take() {
            runtime.shutdown_background();
        }
    }
}

fn no_answer() -> io::Error {
    io::Error::other("the request to the store ended without an answer")
}

/// Waits for an outcome until `deadline`, even if the work was cancelled: for requests that undo
/// earlier ones.
pub fn wait<T>(outcome: &Outcome<T>, deadline: Instant) -> io::Result<T> {
    match outcome.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        Ok(outcome) => outcome,
        Err(RecvTimeoutError::Disconnected) => Err(no_answer()),
        Err(RecvTimeoutError::Timeout) => Err(io::ErrorKind::TimedOut.into()),
    }
}

/// Converts an error of a store to an I/O error with the kind that messages and exit statuses need,
/// and a message without secrets.
pub fn system_error(error: StoreError) -> io::Error {
    let kind = match &error {
        StoreError::NotFound { .. } => io::ErrorKind::NotFound,
        StoreError::Unauthenticated { .. } => io::ErrorKind::PermissionDenied,
        error if is_refusal(error) => io::ErrorKind::PermissionDenied,
        StoreError::NotSupported { .. } | StoreError::NotImplemented { .. } => {
            io::ErrorKind::Unsupported
        }
        StoreError::InvalidPath { .. } => io::ErrorKind::InvalidInput,
        StoreError::Precondition { .. } | StoreError::NotModified { .. } => {
            return io::Error::other("the object was replaced meanwhile; open it again");
        }
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, message_of(&error))
}
