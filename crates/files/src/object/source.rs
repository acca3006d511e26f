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

use super::changed::{changed, header_text};
use super::{Driver, held::Held, system_error};
use crate::{ReadAt, Stamp};

/// An object that is read by ranges; reads fail if it is replaced meanwhile.
pub struct Object {
    driver: Arc<Driver>,
    store: Arc<dyn ObjectStore>,
    meta: ObjectMeta,
    held: Arc<Held>,
}

impl Object {
    /// Asks the store for the object at a location.
    ///
    /// # Errors
    /// If there is no object, or the error of the store.
    pub fn open(
        driver: Arc<Driver>,
        store: Arc<dyn ObjectStore>,
        location: Path,
    ) -> io::Result<Self> {
        let asked = Arc::clone(&store);
        let meta = driver.run(async move { asked.head(&location).await })?;
        let held = Arc::new(Held::new(&meta));
        Ok(Self { driver, store, meta, held })
    }

    /// Creates an object from a description that the store returned before.
    pub fn described(driver: Arc<Driver>, store: Arc<dyn ObjectStore>, meta: ObjectMeta) -> Self {
        let held = Arc::new(Held::new(&meta));
        Self { driver, store, meta, held }
    }

    /// Creates an object from an entry of a list.
    pub fn listed(driver: Arc<Driver>, store: Arc<dyn ObjectStore>, meta: ObjectMeta) -> Self {
        let held = Arc::new(Held::listed(&meta));
        Self { driver, store, meta, held }
    }

    /// Returns the stamp of an object with this description.
    pub fn stamp_of(meta: &ObjectMeta) -> Stamp {
        Held::stamp(meta)
    }

    /// Returns the version of the object at the location.
    pub fn version(&self) -> UpdateVersion {
        UpdateVersion { e_tag: self.meta.e_tag.clone(), version: self.meta.version.clone() }
    }

    /// Requests bytes of the object that was opened, and of no other.
    fn get(&self, range: Range<u64>) -> impl Future<Output = io::Result<Bytes>> + use<> {
        // A weak tag cannot fulfil a condition.
        let strong = self.meta.e_tag.clone().filter(|tag| !tag.starts_with("W/"));
        let length = range.end.saturating_sub(range.start);
        let options = GetOptions {
            range: Some(GetRange::Bounded(range)),
            version: self.meta.version.clone().filter(|_| strong.is_none()),
            if_match: strong,
            ..GetOptions::default()
        };
        let (store, location) = (Arc::clone(&self.store), self.meta.location.clone());
        let (held, tag) = (Arc::clone(&self.held), self.meta.e_tag.clone());
        async move {
            let expected = || header_text("ETag", tag.as_deref().map(str::as_bytes));
            let answer = store.get_opts(&location, options).await.map_err(|error| match error {
                StoreError::Precondition { .. } | StoreError::NotModified { .. } => {
                    changed("another object (412 Precondition Failed)", expected())
                }
                StoreError::NotFound { .. } => changed("no object any more", expected()),
                error => system_error(error),
            })?;
            held.check(&answer.meta)?;
            let bytes = answer.bytes().await.map_err(system_error)?;
            if bytes.len() as u64 != length {
                return Err(changed(format_args!("{} bytes", bytes.len()), length));
            }
            Ok(bytes)
        }
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
        let bytes = self.driver.run_io(self.get(offset..end))?;
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
        Some(self.driver.start_io(self.get(range)))
    }

    fn answers_late(&self) -> bool {
        true
    }

    fn stamp(&self) -> Option<Stamp> {
        Some(Held::stamp(&self.meta))
    }
}
