//! Objects of a bucket, and prefixes of objects.

use std::{io, path::PathBuf, sync::Arc};

use object_store::path::Path as Key;
use serdes_device_state::{
    Commit, Durability, Error, ObjectParts, Part, PartStore, PendingPart, SaveId, WriteOptions,
    Writer,
};
use serdes_files::{EntryKind, ReadAt};

use super::{super::location::Location, bucket::Bucket};

/// An object, or a prefix of objects.
pub(super) struct ObjectPath {
    pub(super) bucket: Arc<Bucket>,
    pub(super) key: Key,
    /// The address.
    pub(super) path: PathBuf,
}

impl ObjectPath {
    fn object_parts(&self) -> Result<ObjectParts, Error> {
        let driver = Arc::clone(&self.bucket.driver);
        let store = Arc::clone(&self.bucket.client.store);
        Ok(ObjectParts::driven(driver, store, self.key.clone())?.called(self.path.clone()))
    }
}

impl Location for ObjectPath {
    fn name(&self) -> PathBuf {
        self.path.clone()
    }

    fn open(&self) -> io::Result<Arc<dyn ReadAt>> {
        self.bucket.open(&self.key)
    }

    fn open_anew(&self) -> io::Result<Arc<dyn ReadAt>> {
        self.bucket.open_anew(&self.key)
    }

    fn look(&self) -> io::Result<EntryKind> {
        self.bucket.look(&self.key)
    }

    fn list(&self) -> io::Result<Vec<PathBuf>> {
        let names = self.bucket.list(&self.key)?;
        Ok(names.into_iter().map(|name| self.path.join(name)).collect())
    }

    fn visit(&self, visit: &mut dyn FnMut(&str)) -> io::Result<()> {
        self.bucket.visit(&self.key, visit)
    }

    fn remove(&self) -> io::Result<()> {
        self.bucket.remove(self.key.clone())
    }

    fn put(&self, _: Durability) -> Result<PendingPart, Error> {
        let put = self.bucket.put(self.key.clone());
        let (sink, upload) = put.map_err(|error| Error::io("create", &self.path, error))?;
        let commit: Box<dyn Commit> = ObjectParts::commit(upload, self.path.clone());
        Ok(PendingPart { sink: Box::new(sink), commit })
    }

    fn create_state(&self, options: WriteOptions) -> Result<Writer, Error> {
        options.create_in(&self.object_parts()?)
    }

    fn create_part(&self, part: Part, options: WriteOptions) -> Result<Writer, Error> {
        options.create_part_in(&self.object_parts()?, part)
    }

    fn parts(&self) -> Result<Arc<dyn PartStore>, Error> {
        Ok(Arc::new(self.object_parts()?))
    }

    fn remove_state(&self) -> Result<(), Error> {
        self.object_parts()?.remove_state()
    }

    fn discard(&self, save: SaveId) {
        if let Ok(parts) = self.object_parts() {
            parts.discard(save);
        }
    }
}
