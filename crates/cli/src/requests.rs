//! Where what people ask of a work comes from: signals, or in a worker the process that started it.

use std::io;

use crate::signals::{self, Hangup, Request};
#[cfg(target_os = "linux")]
use crate::supervision;

/// Tells `each` of every request from now on, on a thread of its own.
///
/// # Errors
/// What the system says if nobody can listen.
pub(crate) fn listen(hangup: Hangup, each: impl FnMut(Request) + Send + 'static) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if supervision::is_worker() {
        supervision::obey(each);
        return Ok(());
    }
    signals::listen(hangup, each)
}
