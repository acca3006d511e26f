//! Errors of the operating system; the modules above make their own errors of them.

use std::{
    io,
    path::{Path, PathBuf},
};

/// The system could not do something with a file.
#[derive(Debug)]
pub struct Error {
    /// The operation: "create".
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

    /// Returns a target that is none, with what is expected instead.
    pub(super) fn refused(action: &'static str, path: &Path, reason: &str) -> Self {
        Self::new(action, path, io::Error::new(io::ErrorKind::InvalidInput, reason.to_owned()))
    }
}
