//! The completion of an operation, with waits and callbacks.
//!
//! The module does not depend on devices or the C API.

use std::{
    cell::Cell,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use crate::{Result, Status, panic::contain};

type Callback = Box<dyn FnOnce(Result<()>) + Send>;

enum Progress {
    Pending(Vec<Callback>),
    Done(Result<()>),
}

struct Shared {
    progress: Mutex<Progress>,
    done: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The completion of an operation, which happens once.
#[derive(Clone)]
pub(super) struct Event(Arc<Shared>);

/// Completes an event. One that is dropped before completes it with the error that its work was
/// abandoned.
pub(super) struct Completer(Option<Event>);

thread_local! {
    /// True while this thread does the work of a device.
    static WORKING: Cell<bool> = const { Cell::new(false) };
}

/// Runs the work of a device. Callbacks from it cannot wait for other work, which might be queued
/// behind it.
pub(super) fn working<T>(work: impl FnOnce() -> T) -> T {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            WORKING.set(self.0);
        }
    }
    let _restore = Restore(WORKING.replace(true));
    work()
}

impl Event {
    fn of(progress: Progress) -> Self {
        Self(Arc::new(Shared { progress: Mutex::new(progress), done: Condvar::new() }))
    }

    /// Returns a pending event, and its completer.
    pub(super) fn pending() -> (Completer, Self) {
        let event = Self::of(Progress::Pending(Vec::new()));
        (Completer(Some(event.clone())), event)
    }

    /// Returns an event that is done.
    pub(super) fn done(outcome: Result<()>) -> Self {
        Self::of(Progress::Done(outcome))
    }

    /// Returns the outcome, if the event is done.
    pub(super) fn outcome(&self) -> Option<Result<()>> {
        match &*self.0.lock() {
            Progress::Pending(_) => None,
            Progress::Done(outcome) => Some(outcome.clone()),
        }
    }

    /// Waits for the event on the calling thread.
    ///
    /// # Errors
    /// The failure of the operation; `FAILED_PRECONDITION` if a device's own work waits.
    pub(super) fn wait(&self) -> Result<()> {
        let mut progress = self.0.lock();
        loop {
            match &*progress {
                Progress::Done(outcome) => return outcome.clone(),
                Progress::Pending(_) if WORKING.get() => {
                    return Err(Status::failed_precondition(
                        "a callback of an event waits for another event, which may be behind it; \
                         wait on another thread",
                    ));
                }
                Progress::Pending(_) => {
                    progress = self.0.done.wait(progress).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// Calls `callback` when the event is done: on the thread that completes it, or immediately if
    /// it is done.
    pub(super) fn on_done(&self, callback: impl FnOnce(Result<()>) + Send + 'static) {
        let mut progress = self.0.lock();
        match &mut *progress {
            Progress::Pending(callbacks) => callbacks.push(Box::new(callback)),
            Progress::Done(outcome) => {
                let outcome = outcome.clone();
                drop(progress);
                callback(outcome);
            }
        }
    }
}

impl Completer {
    /// Completes the event: wakes waiting threads, and calls the callbacks.
    pub(super) fn complete(mut self, outcome: Result<()>) {
        if let Some(event) = self.0.take() {
            finish(&event, outcome);
        }
    }
}

impl Drop for Completer {
    fn drop(&mut self) {
        if let Some(event) = self.0.take() {
            finish(
                &event,
                Err(Status::new(serdes_abi::TF_Code::CANCELLED, "the work was given up")),
            );
        }
    }
}

fn finish(event: &Event, outcome: Result<()>) {
    let mut progress = event.0.lock();
    let before = std::mem::replace(&mut *progress, Progress::Done(outcome.clone()));
    drop(progress);
    event.0.done.notify_all();
    if let Progress::Pending(callbacks) = before {
        for callback in callbacks {
            // A callback that panics must not prevent the others; the panic is not reported.
            let _ = contain(|| {
                callback(outcome.clone());
                Ok(())
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn callback_runs_once_whether_set_before_or_after_the_event() {
        let (completer, event) = Event::pending();
        let (told, answers) = mpsc::channel();
        let early = told.clone();
        event.on_done(move |outcome| early.send(outcome).unwrap());
        event.on_done(|_| panic!("a callback that panics"));
        assert_eq!(event.outcome(), None);
        completer.complete(Err(Status::internal("no")));
        event.on_done(move |outcome| told.send(outcome).unwrap());
        let expected = Err(Status::internal("no"));
        assert_eq!(answers.iter().collect::<Vec<_>>(), [expected.clone(), expected.clone()]);
        assert_eq!(event.wait(), expected);
    }

    #[test]
    fn dropped_completer_completes_its_event_with_an_error() {
        let (completer, event) = Event::pending();
        let waiting = std::thread::spawn({
            let event = event.clone();
            move || event.wait()
        });
        drop(completer);
        assert_eq!(waiting.join().unwrap().unwrap_err().message(), "the work was given up");
    }

    #[test]
    fn the_work_of_a_device_does_not_wait_for_other_work() {
        let (_completer, event) = Event::pending();
        let refused = working(|| event.wait()).unwrap_err();
        assert_eq!(refused.code(), serdes_abi::TF_Code::FAILED_PRECONDITION);
        assert_eq!(working(|| Event::done(Ok(())).wait()), Ok(()));
    }
}
