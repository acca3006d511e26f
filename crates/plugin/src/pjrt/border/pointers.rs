//! Pointers to the plug-in's objects that a host holds: creates, dereferences and reclaims them.
//!
//! The module does not depend on the types behind the pointers.

use std::ptr;

use crate::{Result, Status};

/// Returns the object behind a handle.
///
/// # Safety
/// `raw` is NULL, or a pointer to a `T` that lives as long as `'a`.
pub(super) unsafe fn behind<'a, T, C>(raw: *const C, what: &str) -> Result<&'a T> {
    // SAFETY: the caller's promise.
    unsafe { raw.cast::<T>().as_ref() }
        .ok_or_else(|| Status::invalid_argument(format!("found NULL, expected {what}")))
}

/// Converts a value into a pointer for the host, which owns it then.
pub(super) fn give<T, C>(value: T) -> *mut C {
    Box::into_raw(Box::new(value)).cast()
}

/// Reclaims a value from the host.
///
/// # Safety
/// `raw` is NULL, or [`give`] returned it for a `T`, and it was not reclaimed before.
pub(super) unsafe fn take<T, C>(raw: *mut C, what: &str) -> Result<Box<T>> {
    if raw.is_null() {
        return Err(Status::invalid_argument(format!("found NULL, expected {what}")));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { Box::from_raw(raw.cast()) })
}

/// A list of handles that a host reads.
#[derive(Debug)]
pub(in crate::pjrt) struct Handles<C>(Box<[*mut C]>);

// SAFETY: the addresses are of objects that any thread may use, and that live as long as the list.
unsafe impl<C> Send for Handles<C> {}
// SAFETY: as above.
unsafe impl<C> Sync for Handles<C> {}

impl<C> Handles<C> {
    /// Creates a list of handles of `values`, which must live as long as the list.
    pub(in crate::pjrt) fn of<T>(values: &[T]) -> Self {
        Self::new(values.iter().map(|value| ptr::from_ref(value).cast_mut().cast()))
    }

    /// Creates a list of addresses, which must be valid as long as the list.
    pub(in crate::pjrt) fn new(handles: impl Iterator<Item = *mut C>) -> Self {
        Self(handles.collect())
    }

    pub(super) fn all(&self) -> &[*mut C] {
        &self.0
    }

    pub(in crate::pjrt) fn get(&self, index: usize) -> Option<*mut C> {
        self.0.get(index).copied()
    }
}
