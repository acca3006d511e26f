//! Host functions that plug-ins hold, and the function through which they run one.
//!
//! A plug-in promises to run an accepted function exactly once. Some drop it, some run it twice,
//! and one could run it much later; so it gets a number instead of a pointer, under which the
//! function is found as long as it is waited for.

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
};

use serdes_abi::{TF_Code, TF_Status};

use crate::border::report_to_plugin;

pub(super) type Function = Box<dyn FnOnce() -> Result<(), String> + Send>;

/// The functions that plug-ins hold, by the number that they were given.
static PENDING: Mutex<Option<HashMap<usize, Arc<CallbackRecord>>>> = Mutex::new(None);
/// The newest number.
static NEWEST: AtomicUsize = AtomicUsize::new(0);

/// The record of a callback.
#[derive(Debug, Default)]
pub(super) struct CallbackRecord {
    run: Mutex<CallbackRun>,
    pub(super) changed: Condvar,
}

#[derive(Default)]
pub(super) struct CallbackRun {
    pub(super) function: Option<Function>,
    pub(super) runs: u32,
    /// The result of the function, once it has run.
    pub(super) result: Option<Result<(), String>>,
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
    pub(super) fn run(&self) -> MutexGuard<'_, CallbackRun> {
        self.run.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn pending<T>(act: impl FnOnce(&mut HashMap<usize, Arc<CallbackRecord>>) -> T) -> T {
    let mut pending = PENDING.lock().unwrap_or_else(PoisonError::into_inner);
    act(pending.get_or_insert_default())
}

/// Keeps the number in the list until neither the stream nor the reader of the outcome needs the
/// callback any more.
#[derive(Debug)]
pub(super) struct Listed {
    pub(super) number: usize,
}

impl Drop for Listed {
    fn drop(&mut self) {
        let removed = pending(|pending| pending.remove(&self.number));
        drop(removed);
    }
}

/// The stream's half of a callback: dropped once the stream has passed it.
#[derive(Debug)]
pub(crate) struct PendingCallback {
    pub(super) record: Arc<CallbackRecord>,
    pub(super) listed: Arc<Listed>,
}

impl PendingCallback {
    /// Records a function, so that plug-ins can be given its number.
    pub(super) fn new(function: Function) -> Self {
        let record = Arc::new(CallbackRecord::default());
        record.run().function = Some(function);
        let number = NEWEST.fetch_add(1, Ordering::Relaxed) + 1;
        pending(|pending| pending.insert(number, Arc::clone(&record)));
        Self { record, listed: Arc::new(Listed { number }) }
    }
}

impl Drop for PendingCallback {
    fn drop(&mut self) {
        let mut state = self.record.run();
        let function = state.function.take();
        drop(state);
        // A function that never ran is dropped here, outside all locks.
        drop(function);
    }
}

/// Runs the function of a number; plug-ins call it.
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
    // A panic must not unwind into the plug-in. The function is dropped afterwards, so only its
    // owner can see inconsistent state.
    let result = catch_unwind(AssertUnwindSafe(function))
        .unwrap_or_else(|panic| Err(format!("it panicked: {}", panic_message(panic.as_ref()))));
    if let Err(message) = &result {
        // SAFETY: NULL, or a status that the plug-in made with our functions and passes to this
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
