//! Files that are created in a temporary directory, and uploaded when they are finished: those that
//! are not written sequentially, and sets of files.

use std::{
    ffi::OsString,
    fs::{self, File},
    io::{self, Read, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use serdes_device_state::{Durability, PendingPart, WriteOptions};
use serdes_files::{Files, ProgressMonitor, Tree, read_at::read_arriving};
use tempfile::TempDir;

use super::{Error, Metadata, Target, TensorInfo, TensorSink, sharded::RemoteSet};
use crate::storage::Storage;

/// Maximum size in bytes of an index of a checkpoint that is replaced.
const LONGEST_INDEX: u64 = 1 << 30;
/// Bytes that are copied at a time.
const STEP_BYTES: usize = 1 << 20;

/// A target at an address whose files are created in a temporary directory.
pub(super) struct StagedTarget {
    inner: Box<dyn Target>,
    journey: Journey,
}

/// Source and destination of the upload.
struct Journey {
    folder: TempDir,
    storage: Storage,
    /// Address of the file, or of the files' prefix.
    to: PathBuf,
    /// The existing set, if a set of shards is uploaded.
    set: Option<RemoteSet>,
    monitor: ProgressMonitor,
}

impl StagedTarget {
    pub(super) fn create(
        storage: &Storage,
        to: &Path,
        options: &WriteOptions,
        make: impl FnOnce(PathBuf, &WriteOptions) -> Result<Box<dyn Target>, Error>,
    ) -> Result<Self, Error> {
        Self::begin(storage, to, options, None, make)
    }

    /// Creates a target for a set of shards that replaces the given one.
    pub(super) fn create_set(
        storage: &Storage,
        to: &Path,
        options: &WriteOptions,
        set: RemoteSet,
        make: impl FnOnce(PathBuf, &WriteOptions) -> Result<Box<dyn Target>, Error>,
    ) -> Result<Self, Error> {
        Self::begin(storage, to, options, Some(set), make)
    }

    fn begin(
        storage: &Storage,
        to: &Path,
        options: &WriteOptions,
        set: Option<RemoteSet>,
        make: impl FnOnce(PathBuf, &WriteOptions) -> Result<Box<dyn Target>, Error>,
    ) -> Result<Self, Error> {
        let failed = |error| Error::io("create", Path::new("a temporary directory"), error);
        let folder = tempfile::tempdir().map_err(failed)?;
        let Some(name) = to.file_name() else {
            return Err(Error::io("create", to, io::ErrorKind::InvalidInput.into()));
        };
        let (storage, to, monitor) = (storage.clone(), to.to_owned(), options.monitor());
        let journey = Journey { storage, to, monitor, folder, set };
        journey.fetch_index()?;
        // The directory is temporary: syncing it to the disk gains nothing.
        let local = options.clone().with_durability(Durability::None);
        let inner = make(journey.folder.path().join(name), &local)?;
        Ok(Self { inner, journey })
    }
}

impl Target for StagedTarget {
    fn keeps_metadata(&self) -> bool {
        self.inner.keeps_metadata()
    }

    fn check(&self, info: &TensorInfo) -> Result<(), Error> {
        self.inner.check(info)
    }

    fn begin(
        self: Box<Self>,
        tensors: Vec<TensorInfo>,
        metadata: &Metadata,
    ) -> Result<Box<dyn TensorSink>, Error> {
        let inner = self.inner.begin(tensors, metadata)?;
        Ok(Box::new(BroughtSink { inner, journey: self.journey }))
    }
}

struct BroughtSink {
    inner: Box<dyn TensorSink>,
    journey: Journey,
}

impl TensorSink for BroughtSink {
    fn order(&self) -> &[usize] {
        self.inner.order()
    }

    fn write(&mut self, position: usize, data: &mut dyn Read) -> Result<(), Error> {
        self.inner.write(position, data)
    }

    fn write_strings(&mut self, position: usize, strings: &[Vec<u8>]) -> Result<(), Error> {
        self.inner.write_strings(position, strings)
    }

    fn finish(self: Box<Self>) -> Result<Duration, Error> {
        let Self { inner, journey } = *self;
        Ok(inner.finish()? + journey.bring()?)
    }
}

/// Returns true if the file is an index that names the others.
fn is_index(name: &OsString) -> bool {
    let name = name.to_string_lossy();
    name.ends_with(".index") || name.ends_with(".index.json")
}

impl Journey {
    /// Copies the existing index beside the new files, so that these get unused names: the old
    /// checkpoint can be read until the last moment.
    fn fetch_index(&self) -> Result<(), Error> {
        let put = |path: &Path, bytes: &[u8]| {
            let copy = self.folder.path().join(path.file_name().unwrap_or_default());
            fs::write(&copy, bytes).map_err(|error| Error::io("write", &copy, error))
        };
        if let Some(set) = &self.set {
            return set.index.iter().try_for_each(|bytes| put(&set.index_path(), bytes));
        }
        let index = self.beside(".index");
        if !self.storage.has_file(&index) {
            return Ok(());
        }
        let failed = |error| Error::io("read", &self.shown(&index), error);
        let source = self.storage.open(&index).map_err(failed)?;
        let size = source.size().map_err(failed)?;
        if size > LONGEST_INDEX {
            return Err(failed(io::ErrorKind::FileTooLarge.into()));
        }
        let bytes = read_arriving(&*source, 0, size).map_err(failed)?;
        put(&index, &bytes)
    }

    fn bring(&self) -> Result<Duration, Error> {
        let folder = self.folder.path();
        let failed = |error| Error::io("list", folder, error);
        let mut names = Vec::new();
        for entry in fs::read_dir(folder).map_err(failed)? {
            names.push(entry.map_err(failed)?.file_name());
        }
        names.sort_by_key(|name| (is_index(name), name.clone()));
        let mut time = Duration::ZERO;
        for name in &names {
            let to = self.to.with_file_name(name);
            let pending = self.storage.put(&to, Durability::Data)?;
            let PendingPart { mut sink, commit } = pending;
            self.copy(&folder.join(name), &mut *sink, &to)?;
            drop(sink);
            time += commit.commit(Durability::Data)?;
        }
        match &self.set {
            Some(set) => {
                let names = names.iter().map(|name| name.to_string_lossy().into_owned());
                set.remove_superseded(&names.collect())?;
            }
            None => self.remove_superseded(&names),
        }
        Ok(time)
    }

    fn copy(&self, from: &Path, sink: &mut dyn Write, to: &Path) -> Result<(), Error> {
        let mut file = File::open(from).map_err(|error| Error::io("open", from, error))?;
        let failed = |error| Error::io("write", &self.shown(to), error);
        let mut step = vec![0; STEP_BYTES];
        loop {
            self.monitor.check()?;
            let count = file.read(&mut step).map_err(|error| Error::io("read", from, error))?;
            if count == 0 {
                break sink.flush().map_err(failed);
            }
            sink.write_all(step.get(..count).unwrap_or_default()).map_err(failed)?;
        }
    }

    /// Removes data files of the replaced checkpoint, which no index names any more.
    fn remove_superseded(&self, names: &[OsString]) {
        let data = self.beside(".data-");
        let (Some(prefix), Some(folder)) = (data.file_name(), data.parent()) else { return };
        let prefix = prefix.to_string_lossy();
        // A remaining file is not read.
        for path in self.storage.list(folder).unwrap_or_default() {
            let is_data = |name: &OsString| name.to_string_lossy().starts_with(&*prefix);
            let name = path.file_name().map(OsString::from);
            if name.is_some_and(|name| is_data(&name) && !names.contains(&name)) {
                let _ = self.storage.remove(&path);
            }
        }
    }

    fn beside(&self, suffix: &str) -> PathBuf {
        let mut path = self.to.as_os_str().to_owned();
        path.push(suffix);
        path.into()
    }

    fn shown(&self, path: &Path) -> PathBuf {
        self.storage.name(path).into()
    }
}
