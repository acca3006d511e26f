//! State of the standard streams before Rust's runtime changes it.
//!
//! The runtime opens `/dev/null` for closed standard streams. Results would be lost silently, a
//! missing input would look empty, and the replacement cannot be distinguished from a `/dev/null`
//! that the caller chose; so this module checks before the runtime starts.

use std::sync::atomic::{AtomicBool, Ordering};

static STANDARD_INPUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);
static STANDARD_OUTPUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

#[cfg(unix)]
ctor::declarative::ctor! {
    // Sound before `main`: two system calls and two stores, which do not depend on the runtime.
    #[ctor(unsafe)]
    fn look() {
        let is_closed = |stream| rustix::io::fcntl_getfd(stream).is_err();
        STANDARD_INPUT_WAS_CLOSED.store(is_closed(rustix::stdio::stdin()), Ordering::Relaxed);
        STANDARD_OUTPUT_WAS_CLOSED.store(is_closed(rustix::stdio::stdout()), Ordering::Relaxed);
    }
}

/// Name of standard input in messages, and of an unnamed tensor in it.
pub(crate) const INPUT: &str = "stdin";

/// Returns true if standard input was closed.
pub(crate) fn standard_input_was_closed() -> bool {
    STANDARD_INPUT_WAS_CLOSED.load(Ordering::Relaxed)
}

/// Returns true if standard output was closed.
pub(crate) fn standard_output_was_closed() -> bool {
    STANDARD_OUTPUT_WAS_CLOSED.load(Ordering::Relaxed)
}
