//! Keeps Python exceptions where the library can only return its own error.

use std::{
    io,
    sync::{Arc, Mutex, PoisonError},
};

use pyo3::PyErr;

/// The first exception of a piece of work, until it is raised again.
#[derive(Clone, Default)]
pub(crate) struct Raised(Arc<Mutex<Option<PyErr>>>);

impl Raised {
    /// Stores an exception, and returns the error that represents it.
    pub(crate) fn keep(&self, error: PyErr) -> io::Error {
        let told = io::Error::other(error.to_string());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
        told
    }

    /// Takes the stored exception.
    pub(crate) fn take(&self) -> Option<PyErr> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}
