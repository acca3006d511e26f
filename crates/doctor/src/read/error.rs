//! Errors of reading.

use std::{io, path::PathBuf};

use serdes_abi::ErrorKind;

/// An error of reading an environment.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The system cannot read the path.
    #[error("cannot read {}: {source}", path.display())]
    System {
        /// The path.
        path: PathBuf,
        /// The reason.
        source: io::Error,
    },
    /// The path has no known form of an environment.
    #[error("{} is no environment: expected a virtual environment (pyvenv.cfg), a conda prefix (conda-meta), a folder of packages (*.dist-info), the root of an image (etc/os-release), or a lock file", path.display())]
    NoEnvironment {
        /// The path.
        path: PathBuf,
    },
    /// The path is neither a folder nor a regular file.
    #[error("{} is a pipe, a socket or a device, and was not opened; save it as a file", path.display())]
    NoFile {
        /// The path.
        path: PathBuf,
    },
    /// A lock file is damaged.
    #[error("{} is damaged: {reason}", path.display())]
    Damaged {
        /// The path.
        path: PathBuf,
        /// The damage.
        reason: String,
    },
}

impl ReadError {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::System { source, .. } => ErrorKind::of_io(source),
            Self::NoEnvironment { .. } | Self::NoFile { .. } => ErrorKind::InvalidInput,
            Self::Damaged { .. } => ErrorKind::Corrupt,
        }
    }
}
