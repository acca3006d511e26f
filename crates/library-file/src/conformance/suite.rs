//! The options of a suite, and the outcome of each behaviour.

use std::time::Duration;

use super::trial::{Failure, Verdict};
use crate::time_limit::{TimeLimitError, with_time_limit};

/// Outcome of a behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Conformance {
    /// It is as the C API says.
    Pass,
    /// It is not.
    Fail,
    /// The plug-in does not have it, and need not.
    Unsupported,
    /// It cannot be tried here, and neither can those behind it: the hardware is not there.
    Skipped,
}

impl Conformance {
    /// Returns `pass`, `fail`, `unsupported` or `skipped`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pass => "pass",
            Self::Fail => "fail",
            Self::Unsupported => "unsupported",
            Self::Skipped => "skipped",
        }
    }
}

/// One behaviour and what became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The behaviour's name.
    pub behaviour: &'static str,
    /// Outcome.
    pub result: Conformance,
    /// The observation.
    pub detail: String,
}

/// Options of a run of the suite.
#[derive(Clone, Debug)]
pub struct ConformanceOptions {
    time_limit: Duration,
    skip: usize,
    left_out: Vec<String>,
}

impl ConformanceOptions {
    /// Creates options with 30 seconds a behaviour, and all behaviours.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the time limit of one behaviour. After the first call that hangs, later behaviours
    /// get a tenth of it, so that a call that always hangs does not cost the whole limit in each.
    #[must_use]
    pub fn with_time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Skips the first `behaviours` of the suite: those that ran before one of them ended its
    /// process.
    #[must_use]
    pub fn with_skip(mut self, behaviours: usize) -> Self {
        self.skip = behaviours;
        self
    }

    /// Leaves out these behaviours, by name: they are not tried, and not counted by
    /// [`with_skip`](Self::with_skip).
    #[must_use]
    pub fn without(mut self, behaviours: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.left_out.extend(behaviours.into_iter().map(Into::into));
        self
    }

    /// Returns true unless the behaviour is left out.
    #[must_use]
    pub fn has(&self, behaviour: &str) -> bool {
        self.left_out.iter().all(|name| name != behaviour)
    }

    /// Returns the time limit of one behaviour.
    #[must_use]
    pub fn time_limit(&self) -> Duration {
        self.time_limit
    }

    /// Returns the time limit of a behaviour after a call of the plug-in has hung.
    #[must_use]
    pub fn time_limit_of_one_that_hung(&self) -> Duration {
        self.time_limit / 10
    }

    /// Returns the number of behaviours that are skipped.
    #[must_use]
    pub fn skip(&self) -> usize {
        self.skip
    }
}

impl Default for ConformanceOptions {
    fn default() -> Self {
        Self { time_limit: Duration::from_secs(30), skip: 0, left_out: Vec::new() }
    }
}

/// Tries one behaviour on a thread of its own; also answers whether it came back within the limit.
pub fn attempt(
    name: &'static str,
    limit: Duration,
    trial: impl FnOnce() -> Verdict + Send + 'static,
) -> (Outcome, bool) {
    let verdict = with_time_limit(limit, trial);
    let came_back = !matches!(verdict, Err(TimeLimitError::TimedOut { .. }));
    let (result, detail) = match verdict {
        Ok(Ok(detail)) => (Conformance::Pass, detail),
        Ok(Err(Failure::Failed(detail))) => (Conformance::Fail, detail),
        Ok(Err(Failure::Unsupported(detail))) => (Conformance::Unsupported, detail),
        Ok(Err(Failure::NoHardware(detail))) => (Conformance::Skipped, detail),
        Err(error) => (Conformance::Fail, error.to_string()),
    };
    (Outcome { behaviour: name, result, detail }, came_back)
}
