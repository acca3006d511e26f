//! Files by path, in the system's file system and in other places with the same interface.
//!
//! Does not interpret the bytes, and writes none.

use std::{
    fmt, fs, io,
    path::{Path, PathBuf},
    sync::Arc,
};

use super::{ReadAt, read_at};

/// A source of files, which are opened by path.
pub trait Files: Send + Sync + fmt::Debug {
    /// Opens a file for reading at any position.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is no file, or the system's error.
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadAt>>;

    /// Like [`open`](Self::open), but opens the current file at a path and ignores cached knowledge
    /// of it. The default calls `open`, for sources without a cache.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    fn open_anew(&self, path: &Path) -> io::Result<Arc<dyn ReadAt>> {
        self.open(path)
    }
}

/// Kind of the entry at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EntryKind {
    /// A file: bytes that can be read at any position.
    File,
    /// A directory, or a prefix under which there are objects.
    Directory,
    /// A pipe, a device or a dangling link.
    Other,
}

/// Files in directories.
///
/// Paths are text: an implementation may interpret one as an address or as a file name.
pub trait Tree: Files {
    /// Returns the kind of the entry at a path and follows links.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if there is no entry, or the system's error.
    fn look(&self, path: &Path) -> io::Result<EntryKind>;

    /// Returns the kind of a directory's entry itself: [`EntryKind::Other`] for a link. The
    /// default, for places without links, calls [`look`](Self::look).
    ///
    /// # Errors
    /// As [`look`](Self::look).
    fn look_at_entry(&self, path: &Path) -> io::Result<EntryKind> {
        self.look(path)
    }

    /// Returns the entries of a directory, in no particular order.
    ///
    /// # Errors
    /// If the path is not a directory, or it cannot be listed.
    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>>;

    /// Returns true if the path is in the system's own file system. `false` by default.
    fn is_of_system(&self, _path: &Path) -> bool {
        false
    }

    /// Returns the text of a path for messages, without secrets. The path by default.
    fn name(&self, path: &Path) -> String {
        path.to_string_lossy().into_owned()
    }

    /// Returns true if there is a file at the path.
    fn has_file(&self, path: &Path) -> bool {
        matches!(self.look(path), Ok(EntryKind::File))
    }
}

impl<T: Files + ?Sized> Files for Arc<T> {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadAt>> {
        (**self).open(path)
    }

    fn open_anew(&self, path: &Path) -> io::Result<Arc<dyn ReadAt>> {
        (**self).open_anew(path)
    }
}

impl fmt::Debug for dyn ReadAt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ReadAt").field("size", &self.size().ok()).finish_non_exhaustive()
    }
}

/// The system's file system.
#[derive(Clone, Copy, Debug, Default)]
pub struct FileSystem;

impl Files for FileSystem {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadAt>> {
        Ok(Arc::new(read_at::open(path)?))
    }
}

impl Tree for FileSystem {
    fn look(&self, path: &Path) -> io::Result<EntryKind> {
        fs::metadata(path).map(|found| kind_of(found.file_type()))
    }

    fn look_at_entry(&self, path: &Path) -> io::Result<EntryKind> {
        fs::symlink_metadata(path).map(|found| kind_of(found.file_type()))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        fs::read_dir(directory)?.map(|entry| Ok(entry?.path())).collect()
    }

    fn is_of_system(&self, _: &Path) -> bool {
        true
    }
}

fn kind_of(found: fs::FileType) -> EntryKind {
    if found.is_file() {
        EntryKind::File
    } else if found.is_dir() {
        EntryKind::Directory
    } else {
        EntryKind::Other
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_system_tells_files_directories_and_absence_apart() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("a");
        fs::write(&file, b"abc").unwrap();
        assert_eq!(FileSystem.look(&file).unwrap(), EntryKind::File);
        assert_eq!(FileSystem.look(folder.path()).unwrap(), EntryKind::Directory);
        let nothing = FileSystem.look(&folder.path().join("b")).unwrap_err();
        assert_eq!(nothing.kind(), io::ErrorKind::NotFound);
        assert_eq!(FileSystem.list(folder.path()).unwrap(), std::slice::from_ref(&file));
        assert_eq!(FileSystem.open(&file).unwrap().size().unwrap(), 3);
        assert!(FileSystem.has_file(&file) && !FileSystem.has_file(folder.path()));
        assert!(FileSystem.list(&file).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_itself_as_an_entry_and_what_it_leads_to_as_a_path() {
        let folder = tempfile::tempdir().unwrap();
        let link = folder.path().join("link");
        std::os::unix::fs::symlink(folder.path(), &link).unwrap();
        assert_eq!(FileSystem.look(&link).unwrap(), EntryKind::Directory);
        assert_eq!(FileSystem.look_at_entry(&link).unwrap(), EntryKind::Other);
    }
}
