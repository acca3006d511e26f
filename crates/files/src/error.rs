//! Errors of the operating system, which the modules above convert into their own.

use std::{
    io,
    path::{Path, PathBuf},
};

/// A failed operation on a file.
#[derive(Debug)]
pub struct Error {
    /// The operation, such as "create".
    pub action: &'static str,
    /// The file.
    pub path: PathBuf,
    /// Error of the operating system.
    pub source: io::Error,
}

impl Error {
    pub(super) fn new(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self { action, path: path.to_path_buf(), source }
    }

    /// Returns the error for a path that cannot be a target; `reason` says what is expected
    /// instead.
    pub(super) fn refused(action: &'static str, path: &Path, reason: &str) -> Self {
        Self::new(action, path, io::Error::new(io::ErrorKind::InvalidInput, reason.to_owned()))
    }
}
