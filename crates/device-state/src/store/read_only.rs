//! States in read-only files: of the web, or of a store that is accessed by path.

use std::{
    io,
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};

use serdes_files::{Durability, Files, ReadAt};

use super::{Part, PartStore, PendingPart, SaveId};
use crate::Error;

/// The state at a path, with its parts in the directory that its index names, beside it.
#[derive(Debug)]
pub(crate) struct ReadOnlyParts {
    files: Arc<dyn Files>,
    path: PathBuf,
}

impl ReadOnlyParts {
    pub(crate) fn new(files: Arc<dyn Files>, path: PathBuf) -> Self {
        Self { files, path }
    }

    fn open(&self, path: &Path) -> Result<Box<dyn ReadAt>, Error> {
        match self.files.open(path) {
            Ok(source) => Ok(Box::new(source)),
            Err(error) => Err(Error::io("open", path, error)),
        }
    }

    fn refusal(&self, action: &'static str) -> Error {
        Error::io(action, &self.path, io::ErrorKind::ReadOnlyFilesystem.into())
    }
}

impl PartStore for ReadOnlyParts {
    fn place(&self) -> PathBuf {
        self.path.clone()
    }

    fn directory(&self) -> String {
        let name = self.path.file_name().unwrap_or_default();
        format!("{}.parts", name.to_string_lossy())
    }

    fn put_part(&self, _: Part) -> Result<PendingPart, Error> {
        Err(self.refusal("create"))
    }

    fn list_parts(&self) -> Result<Vec<Part>, Error> {
        Err(self.refusal("list"))
    }

    fn open_part(&self, directory: &str, part: Part) -> Result<Box<dyn ReadAt>, Error> {
        self.open(&self.path.with_file_name(directory).join(part.name()))
    }

    fn open_index(&self) -> Result<Box<dyn ReadAt>, Error> {
        self.open(&self.path)
    }

    fn commit_index(&self, _: &[u8], _: Durability) -> Result<Duration, Error> {
        Err(self.refusal("write"))
    }

    fn clean(&self, _: &[SaveId]) {}
}
