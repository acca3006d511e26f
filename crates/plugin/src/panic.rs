//! Keeps panics inside the plug-in.

use std::{
    any::Any,
    panic::{AssertUnwindSafe, catch_unwind},
};

use crate::{Result, Status};

/// Runs foreign Rust code; a panic in it becomes an `INTERNAL` status with the panic's message.
///
/// Unwind safety: only the author's own state can be inconsistent afterwards, and the author
/// accesses it through `&self`, exactly as after a panic in one of several threads that share it.
pub(crate) fn contain<T>(code: impl FnOnce() -> Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(code)) {
        Ok(result) => result,
        Err(payload) => Err(describe(payload)),
    }
}

/// Drops a value of the author, and catches a panic in its destructor.
pub(crate) fn contain_drop<T>(value: T) {
    // A failing destructor cannot be reported: the C functions that destroy return nothing.
    let _ = contain(|| {
        drop(value);
        Ok(())
    });
}

fn describe(payload: Box<dyn Any + Send>) -> Status {
    let message = payload
        .downcast_ref::<&str>()
        .map(|text| (*text).to_owned())
        .or_else(|| payload.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "a value that is no text".to_owned());
    // The payload's own destructor may panic, too. The second payload is usually text; any other is
    // leaked, because it could panic again and again.
    if let Err(second) = catch_unwind(AssertUnwindSafe(|| drop(payload)))
        && !second.is::<&str>()
        && !second.is::<String>()
    {
        std::mem::forget(second);
    }
    Status::internal(format!("the plug-in panicked: {message}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_becomes_a_status_with_its_message() {
        let status = contain::<()>(|| panic!("block {} is gone", 7)).unwrap_err();
        assert_eq!(status, Status::internal("the plug-in panicked: block 7 is gone"));
    }

    #[test]
    fn a_payload_whose_destructor_panics_is_contained() {
        struct Bomb;
        impl Drop for Bomb {
            fn drop(&mut self) {
                panic!("in the destructor");
            }
        }
        let status = contain::<()>(|| std::panic::panic_any(Bomb)).unwrap_err();
        assert!(status.message().contains("no text"));
        contain_drop(Bomb);
    }
}
