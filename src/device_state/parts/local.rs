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

use super::{
    super::{
        Error, Sync,
        direct::{DirectSource, StillDirect},
        format::{MAGIC, role::Role},
        reader::read_header,
        replace::{self, Replacement},
    },
    Commit, Part, PartStore, PendingPart, SaveId,
};
use crate::read_at::{self, ReadAt};

/// The state at a path of the file system, its parts in the directory `<name>.parts` beside it.
#[derive(Clone, Debug)]
pub struct LocalParts {
    path: PathBuf,
    /// Set if files are used past the system's cache, until a file system refuses.
    direct: Option<StillDirect>,
}

impl LocalParts {
    /// The store of the state at `path`.
    ///
    /// A link stands for what it points to.
    pub fn new(path: impl Into<PathBuf>) -> Self {
        let path = path.into();
        Self { path: fs::canonicalize(&path).unwrap_or(path), direct: None }
    }

    /// Whether new parts are written, and states and their parts read, past the system's page cache
    /// where the file system can; see
    /// [`WriteOptions::with_direct`](super::super::WriteOptions::with_direct). Reading so spares what
    /// others have in the cache, and is slower: the system reads nothing ahead.
    ///
    /// ```
    /// use std::sync::Arc;
    ///
    /// use serdes::device_state::{LocalParts, Reader};
    ///
    /// # fn read(path: &str) -> Result<(), serdes::device_state::Error> {
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

    /// Whether everything that was read up to here was read past the system's page cache.
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

    fn parts(&self) -> PathBuf {
        self.path.with_file_name(self.directory())
    }

    /// The directory, made if it is not there.
    fn make(&self) -> Result<PathBuf, Error> {
        let directory = self.parts();
        fs::create_dir_all(&directory).map_err(|error| Error::io("create", &directory, error))?;
        Ok(directory)
    }
}

impl LocalParts {
    /// The saves that states beside the directory name, whatever they are called; `None` if one
    /// does not tell.
    fn named_beside(&self) -> Option<Vec<SaveId>> {
        let directory = self.parts().parent()?.to_path_buf();
        let beside = if directory.as_os_str().is_empty() { ".".into() } else { directory };
        let mut named = Vec::new();
        for entry in fs::read_dir(beside).ok()?.flatten() {
            if !entry.file_type().is_ok_and(|kind| kind.is_file()) {
                continue;
            }
            let path = entry.path();
            let Ok(file) = File::open(&path) else { continue };
            let mut magic = [0; MAGIC.len()];
            if file.read_exact_at(&mut magic, 0).is_err() || magic != MAGIC {
                continue;
            }
            // Nobody knows which parts the state of a newer build needs.
            match read_header(&file, &path, ReadAt::size(&file).ok()?).ok()?.0.role {
                Role::Merged(merged) if merged.directory == self.directory() => {
                    named.push(SaveId(merged.save));
                }
                _ => {}
            }
        }
        Some(named)
    }
}

impl Commit for Replacement {
    fn commit(self: Box<Self>, sync: Sync) -> Result<Duration, Error> {
        self.finish(sync)
    }

    fn file(&self) -> Option<&File> {
        // A sink past the cache does not write at the cursor.
        (!Self::is_direct(self)).then_some(Self::file(self))
    }

    fn is_direct(&self) -> bool {
        Self::is_direct(self)
    }
}

/// A state of one file that takes the place of a state, also of one of several parts.
pub(in super::super) struct WholeFile {
    pub(in super::super) replacement: Replacement,
    pub(in super::super) parts: LocalParts,
}

impl Commit for WholeFile {
    fn commit(self: Box<Self>, sync: Sync) -> Result<Duration, Error> {
        let time = self.replacement.finish(sync)?;
        self.parts.clean(&[]);
        Ok(time)
    }

    fn file(&self) -> Option<&File> {
        Commit::file(&self.replacement)
    }

    fn is_direct(&self) -> bool {
        self.replacement.is_direct()
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
            let path = self.make()?.join(part.name());
            let mut replacement = match Replacement::create(&path) {
                Ok(replacement) => replacement,
                Err(Error::Io { source, .. })
                    if source.kind() == io::ErrorKind::NotFound && attempts < 100 =>
                {
                    continue;
                }
                Err(error) => return Err(error),
            };
            // A part is synced when it is committed, not on the way.
            let sink = replacement.sink(Sync::None, self.direct.is_some())?;
            return Ok(PendingPart { sink, commit: Box::new(replacement) });
        }
    }

    fn list_parts(&self) -> Result<Vec<Part>, Error> {
        let directory = self.parts();
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

    fn commit_index(&self, bytes: &[u8], sync: Sync) -> Result<Duration, Error> {
        let replacement = Replacement::create(&self.path)?;
        let written = replacement.file().write_all(bytes);
        written.map_err(|error| Error::io("write", &self.path, error))?;
        replacement.finish(sync)
    }

    fn clean(&self, keep: &[SaveId]) {
        let directory = self.parts();
        let Ok(entries) = fs::read_dir(&directory) else { return };
        let names: Vec<_> =
            entries.flatten().filter_map(|entry| entry.file_name().into_string().ok()).collect();
        let Some(named) = self.named_beside() else { return };
        let mut alive = [keep, &named].concat();
        for name in &names {
            let Some(part) = replace::target_of(name).and_then(Part::from_name) else { continue };
            if !replace::remove_if_dead(&directory.join(name)) {
                alive.push(part.save());
            }
        }
        for part in names.iter().filter_map(|name| Part::from_name(name)) {
            if !alive.contains(&part.save()) {
                let _ = fs::remove_file(directory.join(part.name()));
            }
        }
        // Only if it is empty.
        let _ = fs::remove_dir(&directory);
    }
}
