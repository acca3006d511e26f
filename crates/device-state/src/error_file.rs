//! Adds the file to errors where a state is opened or its data are compared, because readers of
//! bytes do not know it.

use std::path::{Path, PathBuf};

use super::Error;

/// Lists the errors about the contents of a file, with their paths, which readers of bytes do not
/// set.
macro_rules! about_contents {
    ($path:ident) => {
        Self::NotDeviceState { $path, .. }
            | Self::Corrupt { $path, .. }
            | Self::TooNew { $path, .. }
            | Self::TooNewFeature { $path, .. }
            | Self::TooOld { $path, .. }
            | Self::ProducerTooOld { $path, .. }
            | Self::BadConsumer { $path, .. }
            | Self::Spec { $path, .. }
    };
}

impl Error {
    /// Returns the file of the error, if it is known: the state, or one of its parts.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            about_contents!(path) => path.as_deref(),
            Self::MissingPart { place: path, .. }
            | Self::NothingSalvaged { path, .. }
            | Self::Unreadable { path, .. }
            | Self::Io { path, .. } => Some(path),
            _ => None,
        }
    }

    /// Removes the path from the error if it is this one: for messages that begin with the path. An
    /// error of the system keeps it.
    #[must_use]
    pub fn without_path(mut self, path: &Path) -> Self {
        if let Some(slot) = self.optional_path()
            && slot.as_deref() == Some(path)
        {
            *slot = None;
        }
        self
    }

    /// Adds the file to the error, if it has none yet.
    pub(crate) fn in_file(mut self, path: &Path) -> Self {
        if let Some(slot @ None) = self.optional_path() {
            *slot = Some(path.to_path_buf());
        }
        self
    }

    /// Returns the path of an error about the contents of a file, which readers of bytes do not
    /// set.
    fn optional_path(&mut self) -> Option<&mut Option<PathBuf>> {
        match self {
            about_contents!(path) => Some(path),
            _ => None,
        }
    }
}
