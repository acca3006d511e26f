//! Which call into a plug-in is in progress, and a limit on how long one may take.
//!
//! A function of a plug-in that does not return cannot be stopped. What can be done is to make the calls on a thread of their own, to
//! stop waiting for that thread, and to say which call it is in.

use std::cell::Cell;
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, mpsc};
use std::time::Duration;

use super::error::Error;

/// Where a watched thread says in which call it is.
#[derive(Debug, Default)]
struct Watch {
    /// The name of the call in progress, or NULL.
    current: AtomicPtr<&'static str>,
}

thread_local! {
    /// The watch of this thread; NULL on threads that nobody watches.
    static WATCH: Cell<*const Watch> = const { Cell::new(ptr::null()) };
}

/// Says that this thread is in the call `name` until the guard is dropped.
///
/// Costs one thread-local load where nobody watches.
#[inline]
pub(crate) fn enter(name: &'static &'static str) -> CallGuard {
    let watch = WATCH.get();
    if watch.is_null() {
        return CallGuard { watch, before: ptr::null_mut() };
    }
    // SAFETY: `with_time_limit` sets the pointer to a watch that its thread holds until it has set it back.
    let before = unsafe { &*watch }.current.swap(ptr::from_ref(name).cast_mut(), Ordering::Relaxed);
    CallGuard { watch, before }
}

/// Ends what [`enter`] began.
#[derive(Debug)]
pub(crate) struct CallGuard {
    watch: *const Watch,
    before: *mut &'static str,
}

impl Drop for CallGuard {
    #[inline]
    fn drop(&mut self) {
        if !self.watch.is_null() {
            // SAFETY: as in `enter`; the guard does not leave its thread (it holds a raw pointer), nor the work that is watched.
            unsafe { &*self.watch }.current.store(self.before, Ordering::Relaxed);
        }
    }
}

/// Ends the watch of this thread, also when the work panics; borrows the watch, so that it ends before it.
struct Unwatch<'a>(#[expect(dead_code, reason = "held for its lifetime")] &'a Watch);

impl Drop for Unwatch<'_> {
    fn drop(&mut self) {
        WATCH.set(ptr::null());
    }
}

/// Does `work` on a thread of its own, and waits for it no longer than `limit`.
///
/// Use it around calls into a plug-in that is not trusted to return. When the time is up the thread is left to itself, with everything
/// that `work` owns: nothing that the plug-in may still be using is freed.
///
/// # Errors
/// [`Error::TimedOut`], which names the call that was in progress. [`Error::System`] if no thread can be made.
pub fn with_time_limit<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    let watch = Arc::new(Watch::default());
    let watched = Arc::clone(&watch);
    let (sender, receiver) = mpsc::sync_channel(1);
    let thread = std::thread::Builder::new()
        .name("serdes plug-in calls".to_owned())
        .spawn(move || {
            let _unwatch = Unwatch(watched.as_ref());
            WATCH.set(Arc::as_ptr(&watched));
            let result = work();
            // The value may make calls when it is dropped, should nobody wait for it any more: that is inside the watch, too.
            let _ = sender.send(result);
        })
        .map_err(|error| Error::System { doing: "start a thread", error })?;
    match receiver.recv_timeout(limit) {
        Ok(value) => {
            // The rest of the thread is two stores; a panic in it cannot be.
            let _ = thread.join();
            Ok(value)
        }
        Err(mpsc::RecvTimeoutError::Timeout) => {
            let current = watch.current.load(Ordering::Relaxed);
            // SAFETY: NULL or a pointer made of a `&'static &'static str` in `enter`.
            let call = unsafe { current.as_ref() }.copied().unwrap_or("no call of the plug-in");
            Err(Error::TimedOut { call, limit })
        }
        Err(mpsc::RecvTimeoutError::Disconnected) => match thread.join() {
            Err(panic) => std::panic::resume_unwind(panic),
            Ok(()) => Err(Error::TimedOut { call: "no call of the plug-in", limit }),
        },
    }
}

#[cfg(test)]
mod tests {
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
            matches!(result, Err(Error::TimedOut { call: "memcpy_dtoh", .. })),
            "found {result:?}"
        );
        drop(release);
    }

    #[test]
    fn work_in_time_gives_its_value() {
        assert_eq!(with_time_limit(Duration::from_secs(60), || 7).unwrap(), 7);
    }
}
