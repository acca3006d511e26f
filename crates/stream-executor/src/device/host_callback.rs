//! The outcome of functions that a stream runs on the host.

use std::{
    ffi::c_void,
    sync::{Arc, PoisonError},
    time::Duration,
};

use super::{
    pending_callback::{CallbackRecord, Function, Listed, PendingCallback},
    stream_work::StreamInner,
};
use crate::error::Error;

/// A function that was put into a stream, to be run on the host.
#[derive(Debug)]
pub struct HostCallback {
    record: Arc<CallbackRecord>,
    stream: Arc<StreamInner>,
    listed: Arc<Listed>,
}

impl HostCallback {
    /// Returns the half for the caller that reads the outcome, and the half for the stream.
    pub(crate) fn new(function: Function, stream: Arc<StreamInner>) -> (Self, PendingCallback) {
        let kept = PendingCallback::new(function);
        let (record, listed) = (Arc::clone(&kept.record), Arc::clone(&kept.listed));
        (Self { record, stream, listed }, kept)
    }

    /// Returns the argument that the plug-in passes to the callback.
    pub(crate) fn argument(&self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.listed.number)
    }

    /// Records that the plug-in did not accept the function.
    pub(crate) fn refuse(self) {
        let function = self.record.run().function.take();
        drop(function);
    }

    /// Returns true if the function has run.
    #[must_use]
    pub fn has_run(&self) -> bool {
        self.record.run().runs > 0
    }

    /// Waits until the stream has passed the function, and returns the outcome.
    ///
    /// # Errors
    /// [`Error::CallbackDropped`] if the stream is done and never ran it;
    /// [`Error::CallbackRepeated`] if it was run more than once; [`Error::CallbackFailed`] with the
    /// function's own error; what the plug-in reports of the stream.
    pub fn outcome(&self) -> Result<(), Error> {
        let waited = self.stream.synchronize();
        let state = self.record.run();
        match (&state.result, state.runs) {
            (_, times @ 2..) => Err(Error::CallbackRepeated { times }),
            (Some(Err(message)), _) => Err(Error::CallbackFailed { message: message.clone() }),
            (Some(Ok(())), _) => waited,
            // A thread of the plug-in still runs the function; the stream did not wait for it.
            (None, 1) => {
                drop(state);
                self.finished(Duration::from_secs(10))
            }
            (None, _) => {
                waited?;
                Err(Error::CallbackDropped)
            }
        }
    }

    /// Waits for a function that has begun.
    fn finished(&self, limit: Duration) -> Result<(), Error> {
        let (state, _) = self
            .record
            .changed
            .wait_timeout_while(self.record.run(), limit, |state| state.result.is_none())
            .unwrap_or_else(PoisonError::into_inner);
        match &state.result {
            Some(Ok(())) => Ok(()),
            Some(Err(message)) => Err(Error::CallbackFailed { message: message.clone() }),
            None => Err(Error::TimedOut { call: "host_callback", limit }),
        }
    }
}
