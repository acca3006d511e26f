//! What `save`, `restore` and `convert` say of the tensors that they moved, in the same keys and words.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use serdes::trips::{ConvertReport, RestoreReport, SaveReport};

use crate::terminal::{bytes, count, rate};

/// How much was moved, and how long it took.
pub(crate) struct Moved {
    tensors: u64,
    bytes: u64,
    time: Duration,
    sync_time: Duration,
    total_time: Duration,
}

impl Moved {
    /// By a save whose command began then.
    pub(crate) fn saved(report: &SaveReport, begin: Instant) -> Self {
        Self {
            tensors: report.tensors,
            bytes: report.bytes,
            time: report.time,
            sync_time: report.sync_time,
            total_time: begin.elapsed(),
        }
    }

    /// By a conversion whose command began then.
    pub(crate) fn converted(report: &ConvertReport, begin: Instant) -> Self {
        Self {
            tensors: report.tensors,
            bytes: report.bytes,
            time: report.time,
            sync_time: report.sync_time,
            total_time: begin.elapsed(),
        }
    }

    /// By a restore whose command began then.
    pub(crate) fn restored(report: &RestoreReport, begin: Instant) -> Self {
        Self {
            tensors: report.tensors,
            bytes: report.bytes,
            time: report.time,
            sync_time: report.sync_time,
            total_time: begin.elapsed(),
        }
    }

    /// The object of the result, with what the command has to say besides.
    pub(crate) fn object(&self, mut besides: Value) -> Value {
        let own = json!({
            "tensors": self.tensors,
            "bytes": self.bytes,
            "seconds": self.time.as_secs_f64(),
            "sync_seconds": self.sync_time.as_secs_f64(),
            "total_seconds": self.total_time.as_secs_f64(),
            "bytes_per_second": rate(self.bytes, self.time),
        });
        if let (Value::Object(object), Value::Object(own)) = (&mut besides, own) {
            object.extend(own);
        }
        besides
    }

    /// How much, for people: `3 tensors, 12 MiB`.
    pub(crate) fn amount(&self) -> String {
        format!("{}, {}", count(self.tensors, "tensor"), bytes(self.bytes))
    }

    /// How fast, for people: `in 0.25 s (48 MiB/s)`.
    pub(crate) fn pace(&self) -> String {
        let rate = bytes(rate(self.bytes, self.time));
        format!("in {:.2} s ({rate}/s)", self.time.as_secs_f64())
    }
}
