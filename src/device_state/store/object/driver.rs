//! Requests to a store, which speaks async, for callers that do not.

use std::{
    fmt, io,
    sync::mpsc::{Receiver, sync_channel},
};

use object_store::Error as StoreError;
use tokio::runtime::{Builder, Runtime};

/// Where requests run.
pub(super) struct Driver(Option<Runtime>);

impl Driver {
    pub(super) fn new() -> io::Result<Self> {
        Builder::new_multi_thread().worker_threads(1).enable_all().build().map(|r| Self(Some(r)))
    }

    /// Starts a request; its outcome comes out of the channel.
    pub(super) fn start<T: Send + 'static>(
        &self,
        request: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Receiver<Result<T, StoreError>> {
        let (send, outcome) = sync_channel(1);
        self.spawn(async move {
            // Nobody waits for a request that was given up.
            let _ = send.send(request.await);
        });
        outcome
    }

    pub(super) fn spawn(&self, task: impl Future<Output = ()> + Send + 'static) {
        if let Some(runtime) = &self.0 {
            runtime.spawn(task);
        }
    }

    pub(super) fn run<T: Send + 'static>(
        &self,
        request: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> io::Result<T> {
        wait(&self.start(request))
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // A plain drop waits, which the threads of another runtime must not.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

pub(super) fn wait<T>(outcome: &Receiver<Result<T, StoreError>>) -> io::Result<T> {
    match outcome.recv() {
        Ok(outcome) => outcome.map_err(system_error),
        Err(_) => Err(io::Error::other("the request to the store ended without an answer")),
    }
}

/// An error of a store as one of the system, with the kind that messages and exit statuses need.
pub(super) fn system_error(error: StoreError) -> io::Error {
    let kind = match &error {
        StoreError::NotFound { .. } => io::ErrorKind::NotFound,
        StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => {
            io::ErrorKind::PermissionDenied
        }
        StoreError::NotSupported { .. } | StoreError::NotImplemented { .. } => {
            io::ErrorKind::Unsupported
        }
        StoreError::InvalidPath { .. } => io::ErrorKind::InvalidInput,
        StoreError::Precondition { .. } | StoreError::NotModified { .. } => {
            return io::Error::other(format!(
                "the object was replaced while it was read; open it again ({error})"
            ));
        }
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}
