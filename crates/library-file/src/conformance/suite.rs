//! The options of a suite, and the outcome of each behaviour.

use std::time::Duration;

use super::trial::{Failure, Verdict};
use crate::time_limit::{TimeLimitError, with_time_limit};

/// The outcome of a behaviour.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Conformance {
    /// The plug-in behaves as the C API requires.
    Pass,
    /// The plug-in does not behave as the C API requires.
    Fail,
    /// The plug-in does not support it, which is permitted.
    Unsupported,
    /// It cannot be tried here, and neither can the later ones, because the hardware is missing.
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

/// One behaviour and its outcome.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The behaviour's name.
    pub behaviour: &'static str,
    /// The outcome.
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
    /// Creates options with 30 seconds per behaviour, and all behaviours.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the time limit of one behaviour. After the first call that hangs, later behaviours get
    /// a tenth of it, so that a call that always hangs does not cost the whole limit each time.
    #[must_use]
    pub fn with_time_limit(mut self, limit: Duration) -> Self {
        self.time_limit = limit;
        self
    }

    /// Skips the first `behaviours` of the suite, which ran before one of them ended its process.
    #[must_use]
    pub fn with_skip(mut self, behaviours: usize) -> Self {
        self.skip = behaviours;
        self
    }

    /// Omits the named behaviours: they are not tried, and not counted by
    /// [`with_skip`](Self::with_skip).
    #[must_use]
    pub fn without(mut self, behaviours: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.left_out.extend(behaviours.into_iter().map(Into::into));
        self
    }

    /// Returns true unless the behaviour is omitted.
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

/// Tries one behaviour on its own thread; also returns true if it finished within the limit.
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
