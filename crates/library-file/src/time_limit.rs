//! Time limits of calls into a plug-in, with the name of the call in progress.
//!
//! A function of a plug-in that does not return cannot be stopped. A host can only make the calls
//! on a separate thread, stop waiting for that thread, and report which call it is in.

#![allow(
    unsafe_code,
    reason = "a watched thread shows its call through a pointer, which costs one store"
)]

use std::{
    cell::Cell,
    io, ptr,
    sync::{
        Arc, Condvar, Mutex, PoisonError,
        atomic::{AtomicPtr, Ordering},
    },
    time::Duration,
};

/// The error of work that was not done in time.
#[derive(Debug, thiserror::Error)]
pub enum TimeLimitError {
    /// A call did not return in time.
    #[error(
        "{call} did not return within {limit:?}; the thread that waits for it has been left behind"
    )]
    TimedOut {
        /// The call in progress.
        call: &'static str,
        /// The time limit.
        limit: Duration,
    },
    /// The operating system could not begin the work.
    #[error("cannot {doing}: {error}")]
    System {
        /// The operation.
        doing: &'static str,
        /// Error of the operating system.
        error: io::Error,
    },
}

/// The record in which a watched thread stores its call in progress.
#[derive(Debug, Default)]
struct CallInProgress {
    /// The name of the call, or NULL.
    name: AtomicPtr<&'static str>,
}

thread_local! {
    /// The record of the call in progress on this thread; NULL if the thread is not watched.
    static IN_PROGRESS: Cell<*const CallInProgress> = const { Cell::new(ptr::null()) };
}

/// Records that this thread is in the call `name` until the guard is dropped.
///
/// Costs one thread-local load on a thread that is not watched.
#[inline]
pub fn enter(name: &'static &'static str) -> CallGuard {
    let watch = IN_PROGRESS.get();
    if watch.is_null() {
        return CallGuard { watch, before: ptr::null_mut() };
    }
    // SAFETY: `with_time_limit` sets the pointer to a watch that its thread holds until it has set
    // it back.
    let before = unsafe { &*watch }.name.swap(ptr::from_ref(name).cast_mut(), Ordering::Relaxed);
    CallGuard { watch, before }
}

/// Ends the call that [`enter`] recorded, on drop.
#[derive(Debug)]
pub struct CallGuard {
    watch: *const CallInProgress,
    before: *mut &'static str,
}

impl Drop for CallGuard {
    #[inline]
    fn drop(&mut self) {
        if !self.watch.is_null() {
            // SAFETY: as in `enter`; the guard does not leave its thread (it holds a raw pointer),
            // nor the work that is watched.
            unsafe { &*self.watch }.name.store(self.before, Ordering::Relaxed);
        }
    }
}

/// Ends the watch of this thread, even if the work panics; borrows the watch, so that it ends
/// before it.
struct Unwatch<'a>(#[expect(dead_code, reason = "held for its lifetime")] &'a CallInProgress);

impl Drop for Unwatch<'_> {
    fn drop(&mut self) {
        IN_PROGRESS.set(ptr::null());
    }
}

/// The state of the work.
enum Progress<T> {
    Working,
    Done(T),
    /// The work panicked.
    Lost,
}

/// A slot through which one thread passes the result of its work to another that waits for it.
///
/// A channel is not used, because the first wait on one registers a destructor of a thread-local
/// variable, for which the dynamic loader's lock is needed; a library whose initialiser hangs holds
/// that lock, so the wait would never begin.
struct Handover<T> {
    progress: Mutex<Progress<T>>,
    changed: Condvar,
}

impl<T> Handover<T> {
    fn set(&self, progress: Progress<T>) {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner) = progress;
        self.changed.notify_one();
    }

    /// Waits for the result, for at most `limit`.
    fn wait(&self, limit: Duration) -> Progress<T> {
        let progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        let (mut progress, _) = self
            .changed
            .wait_timeout_while(progress, limit, |progress| matches!(progress, Progress::Working))
            .unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *progress, Progress::Working)
    }
}

/// Marks the work as lost when a panic drops it.
struct Lost<'a, T>(&'a Handover<T>);

impl<T> Drop for Lost<'_, T> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.set(Progress::Lost);
        }
    }
}

/// Runs `work` on its own thread, and waits for it for at most `limit`.
///
/// Use it around calls into a plug-in that may never return. After the limit the thread is
/// abandoned, with everything that `work` owns: nothing that the plug-in may still use is freed.
///
/// # Errors
/// [`TimeLimitError::TimedOut`], which names the call that was in progress.
/// [`TimeLimitError::System`] if no thread can be made.
pub fn with_time_limit<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, TimeLimitError> {
    let watch = Arc::new(CallInProgress::default());
    let handover =
        Arc::new(Handover { progress: Mutex::new(Progress::Working), changed: Condvar::new() });
    let (watched, theirs) = (Arc::clone(&watch), Arc::clone(&handover));
    let thread = std::thread::Builder::new()
        .name("serdes plug-in calls".to_owned())
        .spawn(move || {
            let _unwatch = Unwatch(watched.as_ref());
            IN_PROGRESS.set(Arc::as_ptr(&watched));
            let _lost = Lost(&theirs);
            // If the waiting thread has given up, the value is dropped with `theirs` when this
            // thread ends.
            theirs.set(Progress::Done(work()));
        })
        .map_err(|error| TimeLimitError::System { doing: "start a thread", error })?;
    match handover.wait(limit) {
        Progress::Done(value) => {
            // The rest of the thread is two stores, which cannot panic.
            let _ = thread.join();
            Ok(value)
        }
        Progress::Working => {
            let current = watch.name.load(Ordering::Relaxed);
            // SAFETY: NULL or a pointer made of a `&'static &'static str` in `enter`.
            let call =
                unsafe { current.as_ref() }.copied().unwrap_or("a thread that the work waits for");
            Err(TimeLimitError::TimedOut { call, limit })
        }
        Progress::Lost => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => {
                Err(TimeLimitError::TimedOut { call: "a thread that the work waits for", limit })
            }
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc;

    use super::*;

    #[test]
    fn the_call_that_hangs_is_named() {
        let (release, wait) = mpsc::channel::<()>();
        let result = with_time_limit(Duration::from_millis(50), move || {
            let _outer = enter(&"outer");
            drop(enter(&"finished"));
            let _inner = enter(&"memcpy_dtoh");
            let _ = wait.recv();
        });
        assert!(
            matches!(result, Err(TimeLimitError::TimedOut { call: "memcpy_dtoh", .. })),
            "found {result:?}"
        );
        drop(release);
    }

    /// A value that arrives after the waiter gave up is dropped.
    #[test]
    fn a_value_that_comes_too_late_is_dropped() {
        let (release, wait) = mpsc::channel::<()>();
        let value = Arc::new(());
        let late = Arc::downgrade(&value);
        let result = with_time_limit(Duration::from_millis(20), move || {
            let _ = wait.recv();
            value
        });
        assert!(matches!(result, Err(TimeLimitError::TimedOut { .. })), "found {result:?}");
        drop(release);
        while late.strong_count() > 0 {
            std::thread::yield_now();
        }
    }

    #[test]
    #[should_panic(expected = "as it must")]
    fn a_panic_of_the_work_goes_on_in_the_waiter() {
        let _ = with_time_limit(Duration::from_secs(60), || panic!("as it must"));
    }

    #[test]
    fn work_in_time_gives_its_value() {
        assert_eq!(with_time_limit(Duration::from_secs(60), || 7).unwrap(), 7);
    }
}
