//! Latency estimates of calls into the plug-in, and a limit on calls on the runtime's own threads.

use std::{
    sync::atomic::{AtomicU64, AtomicUsize, Ordering},
    time::{Duration, Instant},
};

/// Latency estimate of a kind of call: the duration of the last one.
///
/// A quick call is made on the calling thread, because a switch of threads costs more than the
/// call. The runtime is told of it, so that it moves the thread's other tasks to another thread;
/// but the call cannot be abandoned before it ends. For a momentary call, moving the tasks costs
/// more than the call: it is made without, and blocks its thread of the runtime if it never ends;
/// [`Passing`] limits the number of such calls.
#[derive(Debug)]
pub(crate) struct LatencyEstimate {
    /// Duration of the last call in nanoseconds; the maximum before the first.
    last: AtomicU64,
}

impl Default for LatencyEstimate {
    fn default() -> Self {
        Self { last: AtomicU64::new(u64::MAX) }
    }
}

impl LatencyEstimate {
    /// Upper bound of a quick call: longer than handing a call to another thread takes.
    const QUICK: Duration = Duration::from_micros(500);
    /// Upper bound of a momentary call: longer than moving a thread's other tasks takes; as long as
    /// any task of this server occupies a thread.
    const MOMENT: Duration = Duration::from_micros(50);

    /// Upper bound of an instant call: shorter than another thread takes to start work.
    const INSTANT: Duration = Duration::from_micros(5);

    /// Returns true if the next call is expected to be quick; false before the first.
    pub(crate) fn is_quick(&self) -> bool {
        self.last() < Self::QUICK
    }

    /// Returns true if the call is expected to end sooner than the thread's other tasks could be
    /// moved.
    pub(crate) fn is_momentary(&self) -> bool {
        self.last() < Self::MOMENT
    }

    /// Returns true if the call is expected to end sooner than another thread could start work.
    pub(crate) fn is_instant(&self) -> bool {
        self.last() < Self::INSTANT
    }

    fn last(&self) -> Duration {
        Duration::from_nanos(self.last.load(Ordering::Relaxed))
    }

    /// Makes a call, and records its duration.
    pub(crate) fn note<T>(&self, call: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let result = call();
        let took = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.last.store(took, Ordering::Relaxed);
        result
    }
}

/// Counter of calls made on the runtime's own threads while those have other tasks: fewer than
/// threads, so that one remains free whatever the plug-in does.
#[derive(Debug, Default)]
pub(crate) struct Passing(AtomicUsize);

/// Permit for one of these calls, returned on drop.
pub(crate) struct Passes<'a>(&'a Passing);

impl Passing {
    /// Admits one more call on a runtime of `threads` threads, if there is a free permit.
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
        // Even on a busy machine one of many calls returns at once.
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
