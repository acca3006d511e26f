//! What the process was given, before Rust's runtime mended it.
//!
//! The runtime opens `/dev/null` where one of the standard streams is closed. Results would be lost
//! there without a word, and nothing tells that `/dev/null` from one that the caller chose; so this
//! looks before the runtime begins.

use std::sync::atomic::{AtomicBool, Ordering};

static STANDARD_OUTPUT_WAS_CLOSED: AtomicBool = AtomicBool::new(false);

#[cfg(unix)]
ctor::declarative::ctor! {
    // Sound before `main`: one system call and one store, which need nothing that the runtime
    // prepares.
    #[ctor(unsafe)]
    fn look() {
        let is_closed = rustix::io::fcntl_getfd(rustix::stdio::stdout()).is_err();
        STANDARD_OUTPUT_WAS_CLOSED.store(is_closed, Ordering::Relaxed);
    }
}

/// Whether there is no standard output to write to.
pub(crate) fn standard_output_was_closed() -> bool {
    STANDARD_OUTPUT_WAS_CLOSED.load(Ordering::Relaxed)
}
