//! Runs long work on a separate thread, while the calling thread handles Ctrl-C and reports
//! progress.

use std::{
    panic::resume_unwind,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    thread,
    time::Duration,
};

use pyo3::prelude::*;
use serdes_device_state::files::{Phase, Progress, ProgressMonitor};

/// Interval at which the caller checks for signals and calls back.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Number of finished bytes, and of all bytes.
struct Counter {
    done: AtomicU64,
    total: AtomicU64,
    /// True if the work reports the total, since the caller does not know it.
    learns_total: bool,
}

impl Counter {
    fn new(total: u64) -> Self {
        Self { done: AtomicU64::new(0), total: AtomicU64::new(total), learns_total: total == 0 }
    }

    fn both(&self) -> (u64, u64) {
        let total = self.total.load(Ordering::Relaxed);
        (self.done.load(Ordering::Relaxed).min(total), total)
    }
}

impl Progress for Counter {
    fn begin(&self, _: Phase, bytes: u64) {
        if self.learns_total {
            self.total.fetch_add(bytes, Ordering::Relaxed);
        }
    }

    fn advance(&self, bytes: u64) {
        self.done.fetch_add(bytes, Ordering::Relaxed);
    }
}

/// Set at the end of the work, by return or panic.
#[derive(Default)]
struct Ended {
    ended: Mutex<bool>,
    changed: Condvar,
}

impl Ended {
    /// Waits for the end, for at most `limit`; returns true if the work has ended.
    fn wait(&self, limit: Duration) -> bool {
        let ended = self.ended.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(ended, limit, |ended| !*ended);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Guard that reports the end on drop, also after a panic.
struct SaysEnd<'a>(&'a Ended);

impl Drop for SaysEnd<'_> {
    fn drop(&mut self) {
        *self.0.ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.0.changed.notify_all();
    }
}

/// Runs `work` on `total` bytes without the interpreter's lock, and returns its result. Calls
/// `progress` with the numbers of finished bytes and of all bytes; for a `total` of 0 with the
/// total that the work reports.
///
/// # Errors
/// An exception of a signal handler or `progress`: the work has then been cancelled and has ended.
pub(crate) fn interruptible<T: Send>(
    py: Python<'_>,
    progress: Option<&Bound<'_, PyAny>>,
    total: u64,
    work: impl FnOnce(&ProgressMonitor) -> T + Send,
) -> PyResult<T> {
    let counter = Arc::new(Counter::new(total));
    let monitor = &ProgressMonitor::new().with_progress(Arc::clone(&counter) as Arc<dyn Progress>);
    let ended = &Ended::default();
    let tell = || match progress {
        Some(progress) => progress.call1(counter.both()).map(drop),
        None => Ok(()),
    };
    thread::scope(|scope| {
        let worker = scope.spawn(move || {
            let _says = SaysEnd(ended);
            work(monitor)
        });
        let heard = loop {
            if py.detach(|| ended.wait(LOOK_EVERY)) {
                break Ok(());
            }
            if let Err(error) = py.check_signals().and_then(|()| tell()) {
                monitor.cancel();
                break Err(error);
            }
        };
        let result = py.detach(|| worker.join()).unwrap_or_else(|panic| resume_unwind(panic));
        heard.and_then(|()| tell())?;
        Ok(result)
    })
}
