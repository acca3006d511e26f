//! The interface to a place in which several processes save a state.

use std::{
    fmt,
    io::Write,
    path::{Path, PathBuf},
    time::Duration,
};

use serdes_files::{Durability, ReadAt};

use super::{Commit, NewFile, Part, SaveId};
use crate::Error;

/// A part that is being written.
pub struct PendingPart {
    /// Sequential sink of its bytes.
    pub sink: Box<dyn Write + Send>,
    /// The commit that makes it appear.
    pub commit: Box<dyn Commit>,
}

impl PendingPart {
    /// Creates a file that replaces the one at `path` when it is committed with this durability.
    ///
    /// # Errors
    /// If no file can be created beside `path`.
    pub fn create(path: &Path, durability: Durability) -> Result<Self, Error> {
        let mut file = NewFile::create(path)?;
        let sink = file.sink(durability, false)?;
        Ok(Self { sink, commit: Box::new(file) })
    }
}

impl fmt::Debug for PendingPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingPart").finish_non_exhaustive()
    }
}

/// The place of one state that several processes save: its index, and the parts in a directory
/// beside it.
///
/// The index and each part appear completely or not at all. A reader reads the index first, and
/// only the parts that it names.
pub trait PartStore: fmt::Debug + Send + Sync {
    /// Returns the name of the place for messages.
    fn place(&self) -> PathBuf;

    /// Returns the name of the directory for new parts, without its parent's path.
    fn directory(&self) -> String;

    /// Starts a part; it replaces one of the same name when it is committed.
    ///
    /// # Errors
    /// If the store refuses it.
    fn put_part(&self, part: Part) -> Result<PendingPart, Error>;

    /// Returns the existing parts of all saves.
    ///
    /// # Errors
    /// If the store cannot list them.
    fn list_parts(&self) -> Result<Vec<Part>, Error>;

    /// Opens a part in `directory`, which is a plain name.
    ///
    /// # Errors
    /// [`Error::Io`] of kind [`NotFound`](std::io::ErrorKind::NotFound) if it does not exist, or
    /// the store's error.
    fn open_part(&self, directory: &str, part: Part) -> Result<Box<dyn ReadAt>, Error>;

    /// Opens the index, which may also be a state of one file.
    ///
    /// # Errors
    /// As [`open_part`](Self::open_part).
    fn open_index(&self) -> Result<Box<dyn ReadAt>, Error>;

    /// Replaces the index by `bytes`, atomically; returns how long syncing took.
    ///
    /// # Errors
    /// If the store fails; the old index stays then.
    fn commit_index(&self, bytes: &[u8], durability: Durability) -> Result<Duration, Error>;

    /// Removes leftovers of saves that are not in `keep` and whose processes are dead, as far as
    /// the store can tell. Failures are ignored.
    fn clean(&self, keep: &[SaveId]);
}
