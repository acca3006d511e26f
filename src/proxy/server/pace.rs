//! Whether a kind of calls into the plug-in has been quick.

use std::{
    sync::atomic::{AtomicBool, Ordering},
    time::{Duration, Instant},
};

/// Whether calls of a kind have been quick: the last one says what the next is taken for.
///
/// A quick call is made on the thread that asks for it, for another thread costs more than the call.
/// Nothing stands still if it turns out to be slow: the runtime gives the thread's other tasks to
/// another one. But nobody can give it up before it ends.
#[derive(Debug, Default)]
pub(crate) struct Pace(AtomicBool);

impl Pace {
    /// Longer than it takes to have a call made by another thread.
    const QUICK: Duration = Duration::from_micros(500);

    /// Whether the next call is taken for a quick one: never the first.
    pub(crate) fn is_quick(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Makes a call, and notes how long it took.
    pub(crate) fn note<T>(&self, call: impl FnOnce() -> T) -> T {
        let begin = Instant::now();
        let result = call();
        self.0.store(begin.elapsed() < Self::QUICK, Ordering::Relaxed);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_call_says_what_the_next_is_taken_for() {
        let pace = Pace::default();
        assert!(!pace.is_quick());
        // However busy the machine is, one of many is quick.
        assert!((0..1000).any(|_| {
            assert_eq!(pace.note(|| 7), 7);
            pace.is_quick()
        }));
        pace.note(|| std::thread::sleep(Pace::QUICK));
        assert!(!pace.is_quick());
    }
}
