//! The interface to a place of files.

use std::{io, path::PathBuf, sync::Arc};

use serdes_device_state::{
    Durability, Error, Part, PartStore, PendingPart, ProgressMonitor, Reader, Salvaged, SaveId,
    WriteOptions, Writer,
};
use serdes_files::{EntryKind, Files, ReadAt};

/// The place that a path refers to: a file or a folder of the file system, an object or a prefix
/// of objects, a page of the web.
///
/// Errors of type [`Error`] name the place; those of type [`io::Error`] leave it to the caller.
pub(super) trait Location {
    /// Returns the path for messages.
    fn name(&self) -> PathBuf;

    /// Opens the file for reading.
    fn open(&self) -> io::Result<Arc<dyn ReadAt>>;

    /// Like [`open`](Self::open), but ignores cached knowledge of the file.
    fn open_anew(&self) -> io::Result<Arc<dyn ReadAt>>;

    /// Returns the kind of the entry; follows links.
    fn look(&self) -> io::Result<EntryKind>;

    /// Returns the kind of the entry; does not follow links.
    fn look_at_entry(&self) -> io::Result<EntryKind> {
        self.look()
    }

    /// Returns the paths of the entries of a directory.
    fn list(&self) -> io::Result<Vec<PathBuf>>;

    /// Calls `visit` with the name of each entry of a directory.
    fn visit(&self, visit: &mut dyn FnMut(&str)) -> io::Result<()>;

    /// Removes the file.
    fn remove(&self) -> io::Result<()>;

    /// Creates a file that is written sequentially.
    fn put(&self, durability: Durability) -> Result<PendingPart, Error>;

    /// Opens a state; other parts are opened through `files`.
    fn open_state(&self, files: Arc<dyn Files>) -> Result<Reader, Error> {
        let source = self.open().map_err(|error| Error::io("open", &self.name(), error))?;
        Reader::from_source_among(source, self.name(), files)
    }

    /// Salvages a state; other parts are opened through `files`.
    fn salvage_state(
        &self,
        files: Arc<dyn Files>,
        monitor: &ProgressMonitor,
    ) -> Result<Salvaged, Error> {
        let source = self.open().map_err(|error| Error::io("open", &self.name(), error))?;
        Reader::salvage_among(source, self.name(), files, monitor)
    }

    /// Creates a state.
    fn create_state(&self, options: WriteOptions) -> Result<Writer, Error>;

    /// Creates a part of a state.
    fn create_part(&self, part: Part, options: WriteOptions) -> Result<Writer, Error>;

    /// Returns the parts of a state, for merging.
    fn parts(&self) -> Result<Arc<dyn PartStore>, Error>;

    /// Removes a state before its parts.
    fn remove_state(&self) -> Result<(), Error>;

    /// Removes the parts of a failed save.
    fn discard(&self, save: SaveId);
}
