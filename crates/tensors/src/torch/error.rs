//! Errors of reading a PyTorch file, without the path of the file.

use std::{io, path::Path};

use super::{super::Error, KIND};

/// An error of reading a PyTorch file.
#[derive(Debug)]
pub(super) enum TorchError {
    /// Bytes that are not a valid pickle.
    Damaged {
        /// The value that was found.
        found: String,
        /// The value that was expected.
        expected: String,
    },
    /// A valid file with an unsupported feature.
    Unsupported(String),
    /// An error of the operating system.
    Io(io::Error),
}

impl TorchError {
    pub(super) fn damaged(found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::Damaged { found: found.into(), expected: expected.into() }
    }

    pub(super) fn unsupported(reason: impl Into<String>) -> Self {
        Self::Unsupported(reason.into())
    }

    /// Adds the path of the file to the error.
    pub(super) fn of(self, path: &Path) -> Error {
        match self {
            Self::Damaged { found, expected } => Error::corrupt(path, KIND, found, expected),
            Self::Unsupported(reason) => Error::unsupported(path, reason),
            Self::Io(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                Error::corrupt(path, KIND, "a file that became shorter", "all of it")
            }
            Self::Io(error) => Error::io("read", path, error),
        }
    }
}

impl From<io::Error> for TorchError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}
