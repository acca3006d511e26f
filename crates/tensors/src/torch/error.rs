//! Why a file of PyTorch's could not be read, before it is known which file it is.

use std::{io, path::Path};

use super::{super::Error, KIND};

/// Why a file of PyTorch's could not be read.
#[derive(Debug)]
pub(super) enum TorchError {
    /// Bytes that no pickle has.
    Damaged {
        /// The value that was found.
        found: String,
        /// The value that was expected.
        expected: String,
    },
    /// Something whole that is not read.
    Unsupported(String),
    /// The system could not read.
    Io(io::Error),
}

impl TorchError {
    pub(super) fn damaged(found: impl Into<String>, expected: impl Into<String>) -> Self {
        Self::Damaged { found: found.into(), expected: expected.into() }
    }

    pub(super) fn unsupported(reason: impl Into<String>) -> Self {
        Self::Unsupported(reason.into())
    }

    /// Returns the error about the file at a path.
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
