//! The part that the reports of all transfers share.

use std::time::Duration;

/// Amount of moved data, and the time that it took.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Moved {
    /// Number of tensors.
    pub tensors: u64,
    /// Their payload in bytes.
    pub bytes: u64,
    /// From the first byte that was moved until the last one was where it belongs: handed to the
    /// system, or on the device.
    pub time: Duration,
    /// Syncing and renaming of what was written.
    pub sync_time: Duration,
}
