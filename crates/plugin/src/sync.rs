//! The threads and locks that streams use: the standard library's, or loom's when a model is
//! checked.

#[cfg(not(all(loom, test)))]
pub(crate) use std::{
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    thread,
};

#[cfg(all(loom, test))]
pub(crate) use loom::{
    sync::{Arc, Condvar, Mutex, MutexGuard},
    thread,
};
#[cfg(all(loom, test))]
pub(crate) use std::sync::PoisonError;

/// Locks a mutex and ignores poisoning: panics are caught where they happen, and every critical
/// section here leaves the data consistent.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Waits on a condition variable, with the same rule as [`lock`].
pub(crate) fn wait<'a, T>(condition: &Condvar, guard: MutexGuard<'a, T>) -> MutexGuard<'a, T> {
    condition.wait(guard).unwrap_or_else(PoisonError::into_inner)
}
