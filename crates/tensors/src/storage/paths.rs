//! Paths and addresses, and the operations on them.

use std::{
    borrow::Cow,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serdes_device_state::{
    Durability, Error, Merged, Part, PendingPart, ProgressMonitor, Reader, Salvaged, SaveId,
    WriteOptions, Writer, merge_in,
};
use serdes_files::{EntryKind, Files, ReadAt, Tree};

use super::{addresses::Remote, location::Location, system::SystemPath};

/// Access to files for one piece of work: listings of buckets are cached for the life of this
/// value.
///
/// ```
/// use serdes_device_state::files::Tree;
/// use serdes_tensors::storage::Storage;
///
/// let storage = Storage::system(); // or Storage::anywhere(), with the feature `addresses`
/// assert!(storage.is_of_system("state.sds".as_ref()));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Storage {
    /// `None` if all paths belong to the file system.
    pub(super) remote: Option<Remote>,
}

impl Storage {
    /// Creates storage for the file system only: no path is an address.
    #[must_use]
    pub fn system() -> Self {
        Self::default()
    }

    /// Sets the monitor: waits for a store end when the work is cancelled. Cached listings of
    /// buckets are dropped.
    #[must_use]
    pub fn with_monitor(self, monitor: &ProgressMonitor) -> Self {
        Self { remote: self.remote.map(|remote| remote.watched(monitor.clone())) }
    }

    /// Opens the state at a path, from one file or several parts.
    ///
    /// # Errors
    /// As [`Reader::open`], or if nothing is at the path.
    pub fn open_state(&self, path: &Path) -> Result<Reader, Error> {
        self.resolve("open", path)?.open_state(Arc::new(self.clone()))
    }

    /// Reads the whole state at a path and reports its undamaged contents.
    ///
    /// # Errors
    /// As [`Reader::salvage`], or if nothing is at the path.
    pub fn salvage_state(&self, path: &Path, monitor: &ProgressMonitor) -> Result<Salvaged, Error> {
        self.resolve("open", path)?.salvage_state(Arc::new(self.clone()), monitor)
    }

    /// Creates a state at a path, which appears when it is finished.
    ///
    /// # Errors
    /// If no state can be created there.
    pub fn create_state(&self, path: &Path, options: WriteOptions) -> Result<Writer, Error> {
        self.resolve("create", path)?.create_state(options)
    }

    /// Creates this process's part of a state at a path that several processes save together.
    ///
    /// # Errors
    /// If no part can be created there.
    pub fn create_part(
        &self,
        path: &Path,
        part: Part,
        options: WriteOptions,
    ) -> Result<Writer, Error> {
        self.resolve("create", path)?.create_part(part, options)
    }

    /// Merges the complete parts of a save into the state at a path.
    ///
    /// # Errors
    /// As [`merge`](serdes_device_state::merge).
    pub fn merge(
        &self,
        path: &Path,
        save: SaveId,
        options: &WriteOptions,
    ) -> Result<Merged, Error> {
        merge_in(self.resolve("merge", path)?.parts()?, save, options)
    }

    /// Removes the state at a path before its parts, so that no state with missing parts can be
    /// opened. Parts that another saver writes stay.
    ///
    /// ```
    /// use serdes_device_state::{Versions, WriteOptions};
    /// use serdes_tensors::storage::Storage;
    ///
    /// let directory = tempfile::tempdir()?;
    /// let path = directory.path().join("step-7.sds");
    /// let storage = Storage::system();
    /// storage.create_state(&path, WriteOptions::new(Versions::current()))?.finish()?;
    /// storage.remove_state(&path)?;
    /// assert!(storage.open_state(&path).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If there is no state, or it cannot be removed. Leftover parts of a missing state are removed
    /// all the same.
    pub fn remove_state(&self, path: &Path) -> Result<(), Error> {
        self.resolve("remove", path)?.remove_state()
    }

    /// Removes the parts of a failed save of the state at a path, so that they are not merged. They
    /// stay if the state is made of them. Failures are not reported: a later save cleans up.
    ///
    /// Parts in object storage have no locks: all processes of the save must know that it failed.
    pub fn discard(&self, path: &Path, save: SaveId) {
        if let Ok(location) = self.locate(path) {
            location.discard(save);
        }
    }

    /// Creates a file at a path, written sequentially; it appears, and replaces an old one, when it
    /// is committed.
    ///
    /// # Errors
    /// If no file can be created there.
    pub fn put(&self, path: &Path, durability: Durability) -> Result<PendingPart, Error> {
        self.resolve("create", path)?.put(durability)
    }

    /// Calls `visit` with the name of each entry of a directory, in no particular order. If a store
    /// lists in pages, one page is in memory at a time; an empty prefix has no entries.
    ///
    /// ```
    /// use serdes_tensors::storage::Storage;
    ///
    /// let directory = tempfile::tempdir()?;
    /// std::fs::write(directory.path().join("step-7.sds"), b"")?;
    /// let mut names = Vec::new();
    /// Storage::system().visit(directory.path(), &mut |name| names.push(name.to_owned()))?;
    /// assert_eq!(names, ["step-7.sds"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the path is not a directory, or it cannot be listed.
    pub fn visit(&self, directory: &Path, visit: &mut dyn FnMut(&str)) -> io::Result<()> {
        self.locate(directory)?.visit(visit)
    }

    /// Returns a path that does not depend on the working directory.
    ///
    /// # Errors
    /// If the system does not report the working directory.
    pub fn absolute<'p>(&self, path: &'p Path) -> io::Result<Cow<'p, Path>> {
        match self.system_path(path)? {
            Some(found) => std::path::absolute(found).map(Cow::Owned),
            None => Ok(Cow::Borrowed(path)),
        }
    }

    /// Returns the file system path of a path or address; `None` for other places.
    ///
    /// # Errors
    /// If the address is invalid.
    pub fn system_path<'p>(&self, path: &'p Path) -> io::Result<Option<Cow<'p, Path>>> {
        match &self.remote {
            Some(remote) => remote.system_path(path),
            None => Ok(Some(Cow::Borrowed(path))),
        }
    }

    /// Removes a file.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        self.locate(path)?.remove()
    }

    fn locate<'p>(&self, path: &'p Path) -> io::Result<Box<dyn Location + 'p>> {
        let remote = match &self.remote {
            Some(remote) => remote.locate(path)?,
            None => None,
        };
        Ok(remote.unwrap_or_else(|| Box::new(SystemPath(Cow::Borrowed(path)))))
    }

    /// Returns the location of a path; `action` is for errors.
    fn resolve<'p>(
        &self,
        action: &'static str,
        path: &'p Path,
    ) -> Result<Box<dyn Location + 'p>, Error> {
        self.locate(path).map_err(|error| Error::io(action, Path::new(&self.name(path)), error))
    }
}

impl Files for Storage {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadAt>> {
        self.locate(path)?.open()
    }

    fn open_anew(&self, path: &Path) -> io::Result<Arc<dyn ReadAt>> {
        self.locate(path)?.open_anew()
    }
}

impl Tree for Storage {
    fn look(&self, path: &Path) -> io::Result<EntryKind> {
        self.locate(path)?.look()
    }

    fn look_at_entry(&self, path: &Path) -> io::Result<EntryKind> {
        self.locate(path)?.look_at_entry()
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        self.locate(directory)?.list()
    }

    fn is_of_system(&self, path: &Path) -> bool {
        matches!(self.system_path(path), Ok(Some(_)))
    }

    fn name(&self, path: &Path) -> String {
        match &self.remote {
            Some(remote) => remote.name(path),
            None => path.to_string_lossy().into_owned(),
        }
    }
}
