//! Functions that a stream runs on the host.
//!
//! A plug-in promises to run an accepted function exactly once. Some drop it, some run it twice,
//! and one could run it long after; so what it is given is not a pointer but a number, under which
//! the function is found as long as it is waited for.

use std::{
    any::Any,
    collections::HashMap,
    ffi::c_void,
    fmt,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc, Condvar, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serdes_abi::{TF_Code, TF_Status};

use super::stream_work::StreamInner;
use crate::stream_executor::{border::report_to_plugin, error::Error};

type Function = Box<dyn FnOnce() -> Result<(), String> + Send>;

/// The functions that plug-ins have, by the number that was given to them.
static PENDING: Mutex<Option<HashMap<usize, Arc<CallbackRecord>>>> = Mutex::new(None);
/// The newest number.
static NEWEST: AtomicUsize = AtomicUsize::new(0);

/// What is known of a callback.
#[derive(Debug, Default)]
struct CallbackRecord {
    run: Mutex<CallbackRun>,
    changed: Condvar,
}

#[derive(Default)]
struct CallbackRun {
    function: Option<Function>,
    runs: u32,
    /// What the function gave, once it has run.
    result: Option<Result<(), String>>,
}

impl fmt::Debug for CallbackRun {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("CallbackRun")
            .field("runs", &self.runs)
            .field("result", &self.result)
            .finish_non_exhaustive()
    }
}

impl CallbackRecord {
    fn run(&self) -> MutexGuard<'_, CallbackRun> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn pending<T>(act: impl FnOnce(&mut HashMap<usize, Arc<CallbackRecord>>) -> T) -> T {
    let mut pending = PENDING.lock().unwrap_or_else(PoisonError::into_inner);
    act(pending.get_or_insert_default())
}

/// A function that was given to a stream.
#[derive(Debug)]
pub struct HostCallback {
    record: Arc<CallbackRecord>,
    stream: Arc<StreamInner>,
    listed: Arc<Listed>,
}

/// Has the number in the list until nobody waits for the callback any more: neither its stream nor
/// whoever asks for its outcome.
#[derive(Debug)]
struct Listed {
    number: usize,
}

impl Drop for Listed {
    fn drop(&mut self) {
        let removed = pending(|pending| pending.remove(&self.number));
        drop(removed);
    }
}

/// What the stream keeps: when it is dropped, the stream is past the callback.
#[derive(Debug)]
pub(crate) struct PendingCallback {
    record: Arc<CallbackRecord>,
    _listed: Arc<Listed>,
}

impl Drop for PendingCallback {
    fn drop(&mut self) {
        let mut state = self.record.run();
        let function = state.function.take();
        drop(state);
        // What was never run is dropped here, outside of all locks.
        drop(function);
    }
}

impl HostCallback {
    pub(crate) fn new(function: Function, stream: Arc<StreamInner>) -> (Self, PendingCallback) {
        let record = Arc::new(CallbackRecord::default());
        record.run().function = Some(function);
        let number = NEWEST.fetch_add(1, Ordering::Relaxed) + 1;
        pending(|pending| pending.insert(number, Arc::clone(&record)));
        let listed = Arc::new(Listed { number });
        let kept = PendingCallback { record: Arc::clone(&record), _listed: Arc::clone(&listed) };
        (Self { record, stream, listed }, kept)
    }

    /// What the plug-in is given.
    pub(crate) fn argument(&self) -> *mut c_void {
        std::ptr::without_provenance_mut(self.listed.number)
    }

    /// The plug-in did not take it.
    pub(crate) fn refuse(self) {
        let function = self.record.run().function.take();
        drop(function);
    }

    /// Whether it has run.
    #[must_use]
    pub fn has_run(&self) -> bool {
        self.record.run().runs > 0
    }

    /// Waits until the stream is past it, and says how it went.
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
            // It is being run by a thread of the plug-in that the stream did not wait for.
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

    /// Waits for the function that has begun.
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

/// What plug-ins call.
///
/// Sound with any argument at any time: an unknown number does nothing.
pub(crate) unsafe extern "C" fn run(argument: *mut c_void, status: *mut TF_Status) {
    let number = argument.addr();
    let Some(record) = pending(|pending| pending.get(&number).cloned()) else { return };
    let function = {
        let mut state = record.run();
        state.runs = state.runs.saturating_add(1);
        state.function.take()
    };
    let Some(function) = function else { return };
    // A panic must not cross into the plug-in. The function is gone afterwards, so nobody sees what
    // it left half done but its owner.
    let result = catch_unwind(AssertUnwindSafe(function))
        .unwrap_or_else(|panic| Err(format!("it panicked: {}", panic_message(panic.as_ref()))));
    if let Err(message) = &result {
        // SAFETY: NULL, or a status that the plug-in made with our functions and hands to this
        // call.
        unsafe { report_to_plugin(status, TF_Code::INTERNAL, message) };
    }
    record.run().result = Some(result);
    record.changed.notify_all();
}

fn panic_message(panic: &(dyn Any + Send)) -> &str {
    panic
        .downcast_ref::<&str>()
        .copied()
        .or_else(|| panic.downcast_ref::<String>().map(String::as_str))
        .unwrap_or("without a message")
}
