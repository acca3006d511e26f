//! Time limits of calls into a plug-in, with the errors of this host.

use std::time::Duration;

pub(crate) use serdes_library_file::enter;

use crate::error::Error;

/// Does `work` on a thread of its own, and waits for it no longer than `limit`.
///
/// Use it around calls into a plug-in that is not trusted to return. When the time is up the thread
/// is left to itself, with everything that `work` owns: nothing that the plug-in may still be using
/// is freed.
///
/// # Errors
/// [`Error::TimedOut`], which names the call that was in progress. [`Error::System`] if no thread
/// can be made.
pub fn with_time_limit<T: Send + 'static>(
    limit: Duration,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, Error> {
    Ok(serdes_library_file::with_time_limit(limit, work)?)
}
