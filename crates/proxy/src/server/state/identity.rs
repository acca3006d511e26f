//! Identities of files, for checking if a name still refers to the written file.

use std::{fs::Metadata, path::Path};

/// Identity of the file behind a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct FileIdentity {
    device: u64,
    number: u64,
    length: u64,
    modified: (i64, i64),
}

impl FileIdentity {
    /// Returns the identity of the file at `path`; `None` if there is no file, or the system does
    /// not report it.
    #[cfg(unix)]
    pub(crate) fn of(path: &Path) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let found = std::fs::metadata(path).ok()?;
        Some(Self {
            device: found.dev(),
            number: found.ino(),
            length: found.len(),
            modified: (found.mtime(), found.mtime_nsec()),
        })
    }

    #[cfg(not(unix))]
    pub(crate) fn of(_: &Path) -> Option<Self> {
        None
    }

    /// Returns true if `path` refers to the file with this metadata, or the system does not report
    /// it.
    #[cfg(unix)]
    pub(crate) fn names(own: &Metadata, path: &Path) -> bool {
        use std::os::unix::fs::MetadataExt as _;
        std::fs::symlink_metadata(path)
            .is_ok_and(|found| (found.dev(), found.ino()) == (own.dev(), own.ino()))
    }

    #[cfg(not(unix))]
    pub(crate) fn names(_: &Metadata, _: &Path) -> bool {
        true
    }
}
