//! Objects as sources of bytes.

use std::{
    io,
    ops::Range,
    sync::{Arc, mpsc::Receiver},
};

use bytes::Bytes;
use object_store::{
    Error as StoreError, GetOptions, GetRange, ObjectMeta, ObjectStore, ObjectStoreExt,
    UpdateVersion, path::Path,
};

use super::Driver;
use crate::files::ReadAt;

/// An object that is read by ranges; one that is replaced meanwhile is an error.
pub(crate) struct Object {
    driver: Arc<Driver>,
    store: Arc<dyn ObjectStore>,
    meta: ObjectMeta,
}

impl Object {
    /// Asks the store for the object at a location.
    ///
    /// # Errors
    /// If there is none, or what the store says.
    pub(crate) fn open(
        driver: Arc<Driver>,
        store: Arc<dyn ObjectStore>,
        location: Path,
    ) -> io::Result<Self> {
        let asked = Arc::clone(&store);
        let meta = driver.run(async move { asked.head(&location).await })?;
        Ok(Self { driver, store, meta })
    }

    /// An object of which the store has told already what it is.
    #[cfg(feature = "addresses")]
    pub(crate) fn described(
        driver: Arc<Driver>,
        store: Arc<dyn ObjectStore>,
        meta: ObjectMeta,
    ) -> Self {
        Self { driver, store, meta }
    }

    /// Which of the objects that the location had or will have.
    pub(crate) fn version(&self) -> UpdateVersion {
        UpdateVersion { e_tag: self.meta.e_tag.clone(), version: self.meta.version.clone() }
    }

    fn get(&self, range: Range<u64>) -> impl Future<Output = Result<Bytes, StoreError>> + use<> {
        let options = GetOptions {
            range: Some(GetRange::Bounded(range)),
            if_match: self.meta.e_tag.clone(),
            ..GetOptions::default()
        };
        let (store, location) = (Arc::clone(&self.store), self.meta.location.clone());
        async move { store.get_opts(&location, options).await?.bytes().await }
    }
}

impl ReadAt for Object {
    fn size(&self) -> io::Result<u64> {
        Ok(self.meta.size)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let end = offset.saturating_add(buffer.len() as u64).min(self.meta.size);
        if end <= offset {
            return Ok(0);
        }
        let bytes = self.driver.run(self.get(offset..end))?;
        let count = bytes.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), bytes.get(..count)) {
            to.copy_from_slice(from);
        }
        Ok(count)
    }

    fn begin_read(&self, range: Range<u64>) -> Option<Receiver<io::Result<Bytes>>> {
        if range.is_empty() || range.end > self.meta.size {
            return None;
        }
        Some(self.driver.start(self.get(range)))
    }

    fn answers_late(&self) -> bool {
        true
    }
}
