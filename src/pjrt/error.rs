//! What can go wrong, by who is to blame.

use std::path::{Path, PathBuf};

use crate::stream_executor;

/// An error of the host of PJRT plug-ins.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PjrtError {
    /// Bytes: the file cannot be loaded here, whatever is in it.
    #[error("{path} cannot be loaded: {reason}")]
    NotLoadable {
        /// The file.
        path: PathBuf,
        /// Why, and what to do.
        reason: String,
    },
}

impl PjrtError {
    /// An error of the reader of ELF files.
    pub(super) fn of_elf(path: &Path, error: stream_executor::Error) -> Self {
        let reason = match error {
            stream_executor::Error::NotLoadable { reason, .. } => reason,
            other => other.to_string(),
        };
        Self::NotLoadable { path: path.to_owned(), reason }
    }
}
