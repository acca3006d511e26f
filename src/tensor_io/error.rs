use std::{
    io,
    path::{Path, PathBuf},
};

#[cfg(feature = "artifact")]
use crate::artifact::tensor_bundle::BundleError;
use crate::{device_state, files};

/// Why tensors could not be read from a file or written to one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    // The bytes.
    /// The file breaks a rule of its format.
    #[error("{} is damaged or no {kind}: found {found}, expected {expected}", path.display())]
    #[non_exhaustive]
    Corrupt {
        /// The file.
        path: PathBuf,
        /// The kind of file that it was read as.
        kind: &'static str,
        /// What is there.
        found: String,
        /// What should be there.
        expected: String,
    },

    // The caller.
    /// A tensor of this type or form cannot be moved.
    #[error("{name:?}: {reason}")]
    #[non_exhaustive]
    Refused {
        /// The tensor.
        name: String,
        /// Why.
        reason: String,
    },
    /// No kind of file fits the path.
    #[error("{}: {reason}", path.display())]
    #[non_exhaustive]
    UnknownForm {
        /// The path.
        path: PathBuf,
        /// What was expected.
        reason: String,
    },
    // Others.
    /// The bytes of a tensor could not be read.
    #[error("the data of {name:?} cannot be read: {source}")]
    #[non_exhaustive]
    Data {
        /// The tensor.
        name: String,
        /// What its source reported.
        source: io::Error,
    },
    /// A device state could not be read or written.
    #[error(transparent)]
    DeviceState(Box<device_state::Error>),
    /// A checkpoint could not be read or written.
    #[cfg(feature = "artifact")]
    #[error(transparent)]
    Bundle(Box<BundleError>),
    /// The system could not use a file.
    #[error("cannot {action} {}: {source}", path.display())]
    #[non_exhaustive]
    Io {
        /// What was being done.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system reported.
        source: io::Error,
    },
}

impl Error {
    pub(crate) fn corrupt(
        path: &Path,
        kind: &'static str,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Self {
        Self::Corrupt {
            path: path.to_path_buf(),
            kind,
            found: found.into(),
            expected: expected.into(),
        }
    }

    pub(crate) fn refused(name: &str, reason: impl Into<String>) -> Self {
        Self::Refused { name: name.to_owned(), reason: reason.into() }
    }

    pub(crate) fn io(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::Io { action, path: path.to_path_buf(), source }
    }
}

#[cfg(feature = "artifact")]
impl From<BundleError> for Error {
    fn from(error: BundleError) -> Self {
        Self::Bundle(Box::new(error))
    }
}

impl From<files::Error> for Error {
    fn from(error: files::Error) -> Self {
        let files::Error { action, path, source } = error;
        Self::Io { action, path, source }
    }
}

impl From<device_state::Error> for Error {
    fn from(error: device_state::Error) -> Self {
        Self::DeviceState(Box::new(error))
    }
}
