//! State of the standard streams before Rust's runtime changes it.
//!
//! The runtime opens `/dev/null` where one of the standard streams is closed. Results would be lost
//! there without a word, an input that is not there would be an empty one, and nothing tells that
//! `/dev/null` from one that the caller chose; so this looks before the runtime begins.

use std::sync::atomic::{AtomicBool, Ordering};

static STANDARD_INPUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);
static STANDARD_OUTPUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

#[cfg(unix)]
ctor::declarative::ctor! {
    // Sound before `main`: two system calls and two stores, which need nothing that the runtime
    // prepares.
    #[ctor(unsafe)]
    fn look() {
        let is_closed = |stream| rustix::io::fcntl_getfd(stream).is_err();
        STANDARD_INPUT_WAS_CLOSED.store(is_closed(rustix::stdio::stdin()), Ordering::Relaxed);
        STANDARD_OUTPUT_WAS_CLOSED.store(is_closed(rustix::stdio::stdout()), Ordering::Relaxed);
    }
}

/// Name of standard input in messages; also the name of a tensor that has none.
pub(crate) const INPUT: &str = "stdin";

/// Returns true if there is no standard input to read.
pub(crate) fn standard_input_was_closed() -> bool {
    STANDARD_INPUT_WAS_CLOSED.load(Ordering::Relaxed)
}

/// Returns true if there is no standard output to write to.
pub(crate) fn standard_output_was_closed() -> bool {
    STANDARD_OUTPUT_WAS_CLOSED.load(Ordering::Relaxed)
}
