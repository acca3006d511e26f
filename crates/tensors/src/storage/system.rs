//! Paths of the file system.

use std::{
    borrow::Cow,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serdes_device_state::{
    Durability, Error, LocalParts, Part, PartStore, PendingPart, ProgressMonitor, Reader, Salvaged,
    SaveId, WriteOptions, Writer, discard,
};
use serdes_files::{EntryKind, FileSystem, Files, ReadAt, Tree};

use super::location::Location;

/// A path of the file system.
pub(super) struct SystemPath<'p>(pub(super) Cow<'p, Path>);

impl SystemPath<'_> {
    fn local_parts(&self) -> LocalParts {
        LocalParts::new(self.0.to_path_buf())
    }
}

impl Location for SystemPath<'_> {
    fn name(&self) -> PathBuf {
        self.0.to_path_buf()
    }

    fn open(&self) -> io::Result<Arc<dyn ReadAt>> {
        FileSystem.open(&self.0)
    }

    fn open_anew(&self) -> io::Result<Arc<dyn ReadAt>> {
        FileSystem.open(&self.0)
    }

    fn look(&self) -> io::Result<EntryKind> {
        FileSystem.look(&self.0)
    }

    fn look_at_entry(&self) -> io::Result<EntryKind> {
        FileSystem.look_at_entry(&self.0)
    }

    fn list(&self) -> io::Result<Vec<PathBuf>> {
        FileSystem.list(&self.0)
    }

    fn visit(&self, visit: &mut dyn FnMut(&str)) -> io::Result<()> {
        for entry in std::fs::read_dir(&self.0)? {
            visit(&entry?.file_name().to_string_lossy());
        }
        Ok(())
    }

    fn remove(&self) -> io::Result<()> {
        std::fs::remove_file(&self.0)
    }

    fn put(&self, durability: Durability) -> Result<PendingPart, Error> {
        PendingPart::create(&self.0, durability)
    }

    fn open_state(&self, _: Arc<dyn Files>) -> Result<Reader, Error> {
        Reader::open(&self.0)
    }

    fn salvage_state(
        &self,
        _: Arc<dyn Files>,
        monitor: &ProgressMonitor,
    ) -> Result<Salvaged, Error> {
        Reader::salvage(&self.0, monitor)
    }

    fn create_state(&self, options: WriteOptions) -> Result<Writer, Error> {
        options.create(&self.0)
    }

    fn create_part(&self, part: Part, options: WriteOptions) -> Result<Writer, Error> {
        options.create_part(&self.0, part)
    }

    fn parts(&self) -> Result<Arc<dyn PartStore>, Error> {
        Ok(Arc::new(self.local_parts()))
    }

    fn remove_state(&self) -> Result<(), Error> {
        self.local_parts().remove_state()
    }

    fn discard(&self, save: SaveId) {
        discard(&self.0, save);
    }
}
