//! Latency estimates of calls into the plug-in, and a limit on calls on the runtime's own threads.

use std::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    time::{Duration, Instant},
};

/// Latency estimate of a kind of call: the duration of the last one.
///
/// A quick call is made on the calling thread, because a switch of threads costs more than the
/// call. The runtime is told of it, so that it moves the thread's other tasks to another thread;
/// but the call cannot be abandoned before it ends. Moving the tasks costs more than a momentary
/// call: such a call is made without, and blocks its thread of the runtime if it never ends;
/// [`Passing`] limits their number.
#[derive(Debug)]
pub(crate) struct LatencyEstimate {
    /// Duration of the last call, in nanoseconds; the maximum before the first.
    last: AtomicU64,
}

impl Default for LatencyEstimate {
    fn default() -> Self {
        Self { last: AtomicU64::new(u64::MAX) }
    }
}

impl LatencyEstimate {
    /// Longer than it takes to have a call made by another thread.
    const QUICK: Duration = Duration::from_micros(500);
    /// Longer than it takes to give the other tasks of a thread away; as long as any task of this
    /// server has a thread for itself.
    const MOMENT: Duration = Duration::from_micros(50);

    /// Shorter than it takes another thread to begin with something.
    const INSTANT: Duration = Duration::from_micros(5);

    /// Returns true if the next call is expected to be quick; false before the first.
    pub(crate) fn is_quick(&self) -> bool {
        self.last() < Self::QUICK
    }

    /// Returns true if it is expected to end sooner than the thread's other tasks could be moved.
    pub(crate) fn is_momentary(&self) -> bool {
        self.last() < Self::MOMENT
    }

    /// Returns true if it is expected to end sooner than another thread could begin with something.
    pub(crate) fn is_instant(&self) -> bool {
        self.last() < Self::INSTANT
    }

    fn last(&self) -> Duration {
        Duration::from_nanos(self.last.load(Ordering::Relaxed))
    }

    /// Makes a call, and notes how long it took.
    pub(crate) fn note<T>(&self, call: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let result = call();
        let took = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.last.store(took, Ordering::Relaxed);
        result
    }
}

/// Calls that are made on the runtime's own threads while those have other tasks: fewer than there
/// are threads, so that one is left whatever the plug-in does.
#[derive(Debug, Default)]
pub(crate) struct Passing(AtomicUsize);

/// One of these calls, until it is dropped.
pub(crate) struct Passes<'a>(&'a Passing);

impl Passing {
    /// Admits one more call on a runtime of `threads` threads, if one is left.
    pub(crate) fn take(&self, threads: usize) -> Option<Passes<'_>> {
        let one_more = |calls: usize| (calls + 1 < threads).then_some(calls + 1);
        let taken = self.0.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_more);
        taken.ok().map(|_| Passes(self))
    }
}

impl Drop for Passes<'_> {
    fn drop(&mut self) {
        self.0.0.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_call_says_what_the_next_is_taken_for() {
        let latency = LatencyEstimate::default();
        assert!(!latency.is_quick() && !latency.is_momentary());
        // However busy the machine is, one of many is over at once.
        assert!((0..1000).any(|_| {
            assert_eq!(latency.note(|| 7), 7);
            latency.is_quick() && latency.is_momentary()
        }));
        latency.note(|| std::thread::sleep(LatencyEstimate::MOMENT));
        assert!(!latency.is_momentary());
        latency.note(|| std::thread::sleep(LatencyEstimate::QUICK));
        assert!(!latency.is_quick());
    }

    #[test]
    fn runtime_always_keeps_one_free_thread() {
        let passing = Passing::default();
        assert!(passing.take(0).is_none() && passing.take(1).is_none());
        let first = passing.take(3);
        let second = passing.take(3);
        assert!(first.is_some() && second.is_some() && passing.take(3).is_none());
        drop(first);
        assert!(passing.take(3).is_some() && passing.take(2).is_none());
    }
}
