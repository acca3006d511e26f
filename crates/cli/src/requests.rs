//! Source of requests during work: signals, or the supervising process in a worker.

use std::io;

use crate::signals::{self, Hangup, Request};
#[cfg(target_os = "linux")]
use crate::supervision;

/// Calls `each` for every request from now on, on a thread of its own.
///
/// # Errors
/// The system's error if it cannot listen.
pub(crate) fn listen(hangup: Hangup, each: impl FnMut(Request) + Send + 'static) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if supervision::is_worker() {
        supervision::obey(each);
        return Ok(());
    }
    signals::listen(hangup, each)
}
