//! Amounts and times that all transfers report.

use std::time::Duration;

/// Amount of moved data, and the time that it took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Moved {
    /// Number of tensors.
    pub tensors: u64,
    /// Their payload in bytes.
    pub bytes: u64,
    /// Time from the first moved byte until the last one was handed to the system, or was on the
    /// device.
    pub time: Duration,
    /// Time of syncing and renaming.
    pub sync_time: Duration,
}
