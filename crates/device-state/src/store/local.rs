//! States in the file system.

use std::{
    fs::{self, File},
    io::{self, Write as _},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use serdes_files::{
    self, DirectSource, Durability, Replacement, StillDirect,
    read_at::{self, ReadAt},
};

use super::{Commit, NewFile, Part, PartStore, PendingPart, SaveId};
use crate::{
    Error,
    format::{MAGIC, role::Role},
    load::read_header,
};

/// The state at a path of the file system, with its parts in the directory `<name>.parts` beside
/// it.
#[derive(Clone, Debug)]
pub struct LocalParts {
    path: PathBuf,
    /// Set if direct I/O is requested; cleared when a file system refuses it.
    direct: Option<StillDirect>,
}

impl LocalParts {
    /// Creates the store of the state at `path`.
    ///
    /// A link is resolved. The working directory may change afterwards.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        Self { path: serdes_files::resolve(&path.into()), direct: None }
    }

    /// Sets if new parts are written, and states and their parts are read, past the system's page
    /// cache, if the file system supports it; see
    /// [`WriteOptions::with_direct`](crate::WriteOptions::with_direct). Such reads keep the cached
    /// data of other programs, and are slower: the system does not read ahead.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use serdes_device_state::{LocalParts, Reader};
    ///
    /// # fn read(path: &str) -> Result<(), serdes_device_state::Error> {
    /// let files = Arc::new(LocalParts::new(path).with_direct(true));
    /// let state = Reader::open_in(files.clone())?;
    /// println!("{} tensors, past the cache: {}", state.len(), files.reads_direct());
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn with_direct(mut self, direct: bool) -> Self {
        self.direct = direct.then(|| Arc::new(AtomicBool::new(true)));
        self
    }

    /// Returns true if everything so far was read past the system's page cache.
    pub fn reads_direct(&self) -> bool {
        self.direct.as_ref().is_some_and(|direct| direct.load(Ordering::Relaxed))
    }

    fn open(&self, path: &Path) -> Result<Box<dyn ReadAt>, Error> {
        let file = read_at::open(path).map_err(|error| Error::io("open", path, error))?;
        Ok(match &self.direct {
            Some(direct) => Box::new(DirectSource::open(file, path, Arc::clone(direct))),
            None => Box::new(file),
        })
    }

    fn parts_directory(&self) -> PathBuf {
        self.path.with_file_name(self.directory())
    }

    /// Creates the directory of the parts if it does not exist, and returns its path.
    fn create_parts_directory(&self) -> Result<PathBuf, Error> {
        let directory = self.parts_directory();
        fs::create_dir_all(&directory).map_err(|error| Error::io("create", &directory, error))?;
        Ok(directory)
    }

    /// Returns the saves whose parts the merged states beside the directory need, under any file
    /// name.
    ///
    /// # Errors
    /// An error for a state that cannot be read, because it may need any part.
    fn saves_in_use(&self) -> Result<Vec<SaveId>, Error> {
        let directory = self.path.parent().unwrap_or(&self.path);
        let failed = |error| Error::io("list", directory, error);
        let mut saves = Vec::new();
        for entry in fs::read_dir(directory).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            if entry.file_type().map_err(failed)?.is_file() {
                saves.extend(self.save_used_by(&entry.path())?);
            }
        }
        Ok(saves)
    }

    /// Returns the save whose parts in the directory the file at `path` needs; `None` for a file
    /// that is not the index of a merged state with this directory.
    ///
    /// # Errors
    /// An error for a state that is damaged, or of a newer build: the parts that it needs are
    /// unknown.
    fn save_used_by(&self, path: &Path) -> Result<Option<SaveId>, Error> {
        let failed = |error| Error::io("read", path, error);
        let file = match read_at::open(path) {
            // The file was removed after it was listed.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(failed)?,
        };
        let mut magic = [0; MAGIC.len()];
        match file.read_exact_at(&mut magic, 0) {
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
            read => read.map_err(failed)?,
        }
        if magic != MAGIC {
            return Ok(None);
        }
        let length = ReadAt::size(&file).map_err(failed)?;
        Ok(match read_header(&file, path, length)?.0.role {
            Role::Merged(merged) if merged.directory == self.directory() => {
                Some(SaveId(merged.save))
            }
            _ => None,
        })
    }

    /// Removes the state before its parts, so that no state with missing parts can be opened. Parts
    /// that another state needs, or that are being written, are kept.
    ///
    /// # Errors
    /// An error of the system if the state cannot be removed; parts that cannot be are left.
    pub fn remove_state(&self) -> Result<(), Error> {
        let removed = fs::remove_file(&self.path);
        // Also if there is no state: an earlier removal may have left its parts.
        self.clean(&[]);
        removed.map_err(|error| Error::io("remove", &self.path, error))
    }

    /// Returns the names in the directory of the parts; `None` if it cannot be listed to its end.
    fn names(&self) -> Option<Vec<String>> {
        let entries = fs::read_dir(self.parts_directory()).ok()?;
        let names: io::Result<Vec<_>> =
            entries.map(|entry| entry.map(|entry| entry.file_name())).collect();
        // Names of parts are ASCII.
        Some(names.ok()?.into_iter().filter_map(|name| name.into_string().ok()).collect())
    }
}

/// A state of one file that replaces a state, and removes the parts of the one that it replaces.
pub(crate) struct WholeFile {
    pub(crate) file: NewFile,
    pub(crate) parts: LocalParts,
}

impl Commit for WholeFile {
    fn commit(self: Box<Self>, durability: Durability) -> Result<Duration, Error> {
        let time = Box::new(self.file).commit(durability)?;
        self.parts.clean(&[]);
        Ok(time)
    }

    fn file(&self) -> Option<&File> {
        self.file.file()
    }

    fn is_direct(&self) -> bool {
        self.file.is_direct()
    }
}

impl PartStore for LocalParts {
    fn place(&self) -> PathBuf {
        self.path.clone()
    }

    fn directory(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        format!("{}.parts", name.to_string_lossy())
    }

    fn put_part(&self, part: Part) -> Result<PendingPart, Error> {
        // Another saver may remove the directory between two steps, when it is empty.
        let mut attempts = 0;
        loop {
            attempts += 1;
            let path = self.create_parts_directory()?.join(part.name());
            let replacement = match Replacement::create(&path) {
                Err(error) if error.source.kind() == io::ErrorKind::NotFound && attempts < 100 => {
                    continue;
                }
                created => created?,
            };
            // The part gets the permissions of the state, if there is one.
            let mut file = NewFile::from(replacement.modelled_on(&self.path)?);
            // A part is synced when it is committed, not on the way.
            let sink = file.sink(Durability::None, self.direct.is_some())?;
            return Ok(PendingPart { sink, commit: Box::new(file) });
        }
    }

    fn list_parts(&self) -> Result<Vec<Part>, Error> {
        let directory = self.parts_directory();
        let failed = |error| Error::io("list", &directory, error);
        let entries = match fs::read_dir(&directory) {
            Ok(entries) => entries,
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut parts = Vec::new();
        for entry in entries {
            let name = entry.map_err(failed)?.file_name();
            parts.extend(name.to_str().and_then(Part::from_name));
        }
        Ok(parts)
    }

    fn open_part(&self, directory: &str, part: Part) -> Result<Box<dyn ReadAt>, Error> {
        self.open(&self.path.with_file_name(directory).join(part.name()))
    }

    fn open_index(&self) -> Result<Box<dyn ReadAt>, Error> {
        self.open(&self.path)
    }

    fn commit_index(&self, bytes: &[u8], durability: Durability) -> Result<Duration, Error> {
        let replacement = Replacement::create(&self.path)?;
        let written = replacement.file().write_all(bytes);
        written.map_err(|error| Error::io("write", &self.path, error))?;
        Ok(replacement.finish(durability)?)
    }

    fn clean(&self, keep: &[SaveId]) {
        let directory = self.parts_directory();
        // A state that cannot be listed, opened or read may need any part: then all are kept.
        let Some(names) = self.names() else { return };
        let Ok(in_use) = self.saves_in_use() else { return };
        let mut kept = [keep, &in_use].concat();
        for name in &names {
            let Some(part) = serdes_files::target_of(name).and_then(Part::from_name) else {
                continue;
            };
            if !serdes_files::remove_if_dead(&directory.join(name)) {
                kept.push(part.save());
            }
        }
        for part in names.iter().filter_map(|name| Part::from_name(name)) {
            if !kept.contains(&part.save()) {
                let _ = fs::remove_file(directory.join(part.name()));
            }
        }
        // Fails if the directory is not empty, as it should.
        let _ = fs::remove_dir(&directory);
    }
}
