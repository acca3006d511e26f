//! The work of a stream, whose objects are kept until it is known to be done.

use std::{
    collections::VecDeque,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use serdes_abi::{SE_EventStatus, SP_Stream};

use super::{
    event::EventInner, handle::Device, host_memory::HostAllocation, memory::DeviceAllocation,
    pending_callback::PendingCallback, timer::TimerInner,
};
use crate::error::Error;

/// Shared ownership of a stream: by its handle, and by transfers in progress.
#[derive(Debug)]
pub(crate) struct StreamInner {
    pub(crate) device: Device,
    pub(crate) handle: SP_Stream,
    work: Mutex<Work>,
    failed: AtomicBool,
}

// SAFETY: the handle means something to the plug-in alone; calls that put work into the stream are
// made under the lock.
unsafe impl Send for StreamInner {}
// SAFETY: see above.
unsafe impl Sync for StreamInner {}

/// The work that was put into a stream and is not known to be done.
#[derive(Debug, Default)]
struct Work {
    /// The number of the newest piece of work.
    newest: u64,
    /// Objects that the pieces use, oldest first, each with the number of its piece.
    kept: VecDeque<(u64, Kept)>,
    /// Events that can be recorded again.
    spare: Vec<Arc<EventInner>>,
}

/// The maximum number of events that a stream keeps for reuse.
const MOST_SPARE_EVENTS: usize = 32;

/// An object that a stream's work uses.
#[derive(Debug)]
#[expect(dead_code, reason = "held so that it is not dropped; never looked at")]
pub(crate) enum Kept {
    /// Device memory that is read or written.
    Device(Arc<DeviceAllocation>),
    /// Host memory that is read or written.
    Host(Arc<HostAllocation>),
    /// An event that is recorded or waited for.
    Event(Arc<EventInner>),
    /// A timer that is started or stopped.
    Timer(Arc<TimerInner>),
    /// A function to be run on the host.
    Callback(PendingCallback),
}

impl StreamInner {
    pub(crate) fn new(device: Device, handle: SP_Stream) -> Self {
        Self { device, handle, work: Mutex::default(), failed: AtomicBool::new(false) }
    }

    /// Returns true if a call on the stream failed.
    pub(crate) fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Relaxed)
    }

    /// Enqueues one piece of work. The objects that it uses are kept first, so that the plug-in
    /// never uses freed ones.
    pub(crate) fn enqueue(
        &self,
        kept: impl IntoIterator<Item = Kept>,
        call: impl FnOnce() -> Result<(), Error>,
    ) -> Result<u64, Error> {
        let mut work = self.work();
        work.newest += 1;
        let number = work.newest;
        work.kept.extend(kept.into_iter().map(|kept| (number, kept)));
        let result = call();
        drop(work);
        self.noted(result).map(|()| number)
    }

    /// Returns an event for a piece of work: a spare one, or a new one.
    pub(crate) fn spare_event(&self) -> Result<Arc<EventInner>, Error> {
        let spare = self.work().spare.pop();
        match spare {
            Some(event) => Ok(event),
            None => Ok(Arc::new(self.noted(EventInner::create(&self.device))?)),
        }
    }

    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records a failure of the stream's work.
    #[inline]
    pub(crate) fn noted<T>(&self, result: Result<T, Error>) -> Result<T, Error> {
        // A match on the result: a successful value is not moved with the space for an error.
        match result {
            Ok(value) => Ok(value),
            Err(error) => Err(self.failed_by(error)),
        }
    }

    #[cold]
    fn failed_by(&self, error: Error) -> Error {
        self.failed.store(true, Ordering::Relaxed);
        error
    }

    /// Releases the objects of the work up to and including number `done`.
    pub(crate) fn passed(&self, done: u64) {
        let mut work = self.work();
        let count = work.kept.iter().take_while(|(number, _)| *number <= done).count();
        let released: Vec<_> = work.kept.drain(..count).collect();
        // Freeing calls the plug-in, so it happens outside the lock.
        drop(work);
        drop(released);
    }

    /// Takes back an event that is not waited for any more.
    pub(crate) fn reuse(&self, event: Arc<EventInner>) {
        let mut work = self.work();
        if work.spare.len() < MOST_SPARE_EVENTS {
            work.spare.push(event);
        }
    }

    /// Waits for the work so far, with the plug-in's own function or with an event.
    fn block(&self) -> Result<(), Error> {
        match self.block_by_function() {
            Err(Error::Unsupported { .. }) => self.block_by_event(),
            result => result,
        }
    }

    /// Waits for the work so far with the plug-in's own function.
    pub(crate) fn block_by_function(&self) -> Result<(), Error> {
        // SAFETY: device and stream are alive.
        unsafe { self.device.calls().block_host_until_done(self.handle) }
    }

    /// Waits for the work so far with an event after it.
    pub(crate) fn block_by_event(&self) -> Result<(), Error> {
        let calls = self.device.calls();
        let event = EventInner::create(&self.device)?;
        // SAFETY: device, stream and event are alive; the event is kept until it has come.
        let recorded = unsafe { calls.record_event(self.handle, event.handle()) };
        let waited = recorded.and_then(|()| event.wait());
        if waited.is_err() {
            let mut work = self.work();
            let newest = work.newest;
            work.kept.push_back((newest, Kept::Event(Arc::new(event))));
        }
        waited
    }

    /// Waits for the work so far, and releases its objects.
    pub(crate) fn synchronize(&self) -> Result<(), Error> {
        let newest = self.work().newest;
        self.noted(self.block())?;
        self.passed(newest);
        self.status()
    }

    /// Returns the stream's status from the plug-in.
    #[inline]
    pub(crate) fn status(&self) -> Result<(), Error> {
        // SAFETY: device and stream are alive.
        self.noted(unsafe { self.device.calls().get_stream_status(self.handle) })
    }

    /// Waits until no work of the stream can be in progress any more. Returns false if that cannot
    /// be determined.
    fn is_over(&self) -> bool {
        // A stream that failed may refuse to be waited for; the whole device may not.
        // SAFETY: the device is alive.
        self.block().is_ok()
            || unsafe { self.device.calls().synchronize_all_activity() }.is_ok()
            || self.has_failed_to_the_end()
    }

    /// Returns true if an event after the work completes or fails within the limit: then the work
    /// is over, too.
    fn has_failed_to_the_end(&self) -> bool {
        let Ok(event) = EventInner::create(&self.device) else { return false };
        // SAFETY: device, stream and event are alive; the event is dropped only when it has come.
        if unsafe { self.device.calls().record_event(self.handle, event.handle()) }.is_err() {
            return false;
        }
        let limit = Instant::now() + LONGEST_WAIT_FOR_FAILURE;
        loop {
            match event.is_done() {
                Ok(true) => return true,
                Err(Error::EventFailed { state }) => return state == SE_EventStatus::ERROR.0,
                Ok(false) if Instant::now() < limit => std::thread::sleep(Duration::from_millis(1)),
                Ok(false) | Err(_) => {
                    std::mem::forget(event);
                    return false;
                }
            }
        }
    }
}

/// The longest wait, when a failed stream is dropped, for its work to end.
const LONGEST_WAIT_FOR_FAILURE: Duration = Duration::from_secs(2);

impl Drop for StreamInner {
    fn drop(&mut self) {
        let done = self.is_over();
        let work = self.work.get_mut().unwrap_or_else(PoisonError::into_inner);
        let kept = std::mem::take(&mut work.kept);
        if done {
            drop(kept);
        } else {
            std::mem::forget(kept);
        }
        work.spare.clear();
        // SAFETY: the device is alive; this is the last user of the stream.
        unsafe { self.device.calls().destroy_stream(self.handle) };
    }
}
