//! Stamps that distinguish a file from one that replaced it.

use std::{fmt, sync::Arc};

/// Identity of a file's contents: two files of one name with the same stamp have the same bytes, as
/// far as their file system or store can tell.
///
/// Stamps of the file system are compared while the files are open: the inode number of a closed
/// and removed file may be reused.
#[derive(Clone, PartialEq, Eq)]
pub struct Stamp(Arc<str>);

impl Stamp {
    /// Creates a stamp from text.
    pub fn new(words: impl Into<Arc<str>>) -> Self {
        Self(words.into())
    }

    /// Returns the stamp of an open file of the system.
    pub(super) fn of_file(file: &std::fs::File) -> Option<Self> {
        let metadata = file.metadata().ok()?;
        let (length, modified) = (metadata.len(), metadata.modified().ok());
        #[cfg(unix)]
        let id = {
            use std::os::unix::fs::MetadataExt as _;
            (metadata.dev(), metadata.ino())
        };
        #[cfg(not(unix))]
        let id = metadata.created().ok();
        Some(Self::new(format!("{id:?} {length} {modified:?}")))
    }
}

impl fmt::Debug for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stamp").field(&self.0).finish()
    }
}
