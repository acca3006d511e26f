//! Time limits of calls into a plug-in, with the errors of this host.

use std::time::Duration;

pub(crate) use serdes_library_file::enter;

use crate::error::Error;

/// Runs `work` on its own thread, and waits for it for at most `limit`.
///
/// Use it around calls into a plug-in that may never return. After the limit the thread is
/// abandoned, with everything that `work` owns: nothing that the plug-in may still use is freed.
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
