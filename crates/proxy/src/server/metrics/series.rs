//! Requests by kind: their number, results and durations.

use std::{
    collections::BTreeMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use serdes::codec::StatusCode;

/// Upper bounds of the duration histogram's buckets, in seconds. A small request takes about 0.1
/// ms, one that moves a large array seconds, a compilation minutes.
pub(super) const BOUNDS: [f64; 14] =
    [0.0001, 0.000_25, 0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.1, 0.5, 1.0, 5.0, 30.0, 300.0];

/// Requests by kind. The kinds are names of the protocol, never text of a client, so their number
/// is limited.
#[derive(Debug, Default)]
pub(crate) struct RequestSeries(Mutex<BTreeMap<&'static str, Series>>);

/// The requests of one kind.
#[derive(Clone, Debug, Default)]
pub(super) struct Series {
    /// Number of requests that ended with each code.
    pub(super) by_code: BTreeMap<StatusCode, u64>,
    /// Number of requests in each bucket: at most its bound, and more than the one before.
    pub(super) by_bound: [u64; BOUNDS.len()],
    /// Number of requests.
    pub(super) count: u64,
    /// Total duration in seconds.
    pub(super) seconds: f64,
}

impl RequestSeries {
    /// Counts a request that has been answered.
    pub(crate) fn note(&self, kind: &'static str, code: StatusCode, took: Duration) {
        let mut kinds = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let series = kinds.entry(kind).or_default();
        let seconds = took.as_secs_f64();
        *series.by_code.entry(code).or_default() += 1;
        series.count += 1;
        series.seconds += seconds;
        let bound = BOUNDS.iter().position(|bound| seconds <= *bound);
        if let Some(count) = bound.and_then(|bound| series.by_bound.get_mut(bound)) {
            *count += 1;
        }
    }

    /// Returns a copy of all series.
    pub(super) fn read(&self) -> BTreeMap<&'static str, Series> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
