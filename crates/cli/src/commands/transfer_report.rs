//! Common report of `save`, `restore` and `convert` on the tensors that they moved.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use serdes_tensors::transfers;

use crate::terminal::{bytes, count, rate};

/// Amount of moved data, and its duration.
pub(crate) struct TransferReport {
    moved: transfers::Moved,
    total_time: Duration,
}

impl TransferReport {
    /// Creates the report of a transfer whose command began at `begin`.
    pub(crate) fn of(moved: transfers::Moved, begin: Instant) -> Self {
        Self { moved, total_time: begin.elapsed() }
    }

    /// Returns the JSON object of the result, with additional fields of the command.
    pub(crate) fn object(&self, mut besides: Value) -> Value {
        let own = json!({
            "tensors": self.moved.tensors,
            "bytes": self.moved.bytes,
            "seconds": self.moved.time.as_secs_f64(),
            "sync_seconds": self.moved.sync_time.as_secs_f64(),
            "total_seconds": self.total_time.as_secs_f64(),
            "bytes_per_second": rate(self.moved.bytes, self.moved.time),
        });
        if let (Value::Object(object), Value::Object(own)) = (&mut besides, own) {
            object.extend(own);
        }
        besides
    }

    /// Formats the amount: `3 tensors, 12 MiB`.
    pub(crate) fn amount(&self) -> String {
        format!("{}, {}", count(self.moved.tensors, "tensor"), bytes(self.moved.bytes))
    }

    /// Formats duration and rate: `in 0.25 s (48 MiB/s)`.
    pub(crate) fn duration_and_rate(&self) -> String {
        let rate = bytes(rate(self.moved.bytes, self.moved.time));
        format!("in {:.2} s ({rate}/s)", self.moved.time.as_secs_f64())
    }
}
