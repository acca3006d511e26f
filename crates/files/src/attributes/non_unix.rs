//! Non-Unix: replacing a file preserves only its permission to write.

use std::{
    fs::{self, File, Permissions},
    io,
    path::Path,
};

/// Permissions of a file, which have only the read-only flag here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Attributes(Permissions);

impl Attributes {
    /// Returns the attributes of the file at `path`; `None` if there is no file.
    pub(crate) fn of(path: &Path) -> io::Result<Option<Self>> {
        match fs::symlink_metadata(path) {
            Ok(metadata) => Ok(metadata.is_file().then(|| Self(metadata.permissions()))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Applies the attributes to a file.
    pub(crate) fn give_to(&self, file: &File) -> io::Result<()> {
        file.set_permissions(self.0.clone())
    }
}
