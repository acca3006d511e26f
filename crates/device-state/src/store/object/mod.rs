//! States in object storage, of one process or of several.
//!
//! What objects are as files, `files` knows. This part knows stores only through the crate
//! `object_store`, never one of them by name.

mod commit;
mod parts;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use object_store::{ObjectStore, path::Path};

pub use self::parts::ObjectParts;
use super::PartStore;
use crate::{Error, Reader, WriteOptions, Writer};

impl WriteOptions {
    /// Begins a state that becomes the object at `location` of `store` when it is finished; until
    /// then, and if the writer is dropped, what was there stays. Processes that save one state
    /// together use [`ObjectParts`].
    ///
    /// At most three parts of 12 MiB are held in memory. A process that is killed may leave an
    /// upload that was never completed; it is no object, and a rule of the store's life cycle
    /// should remove such uploads. How durable the object is, is the store's affair:
    /// [`with_durability`](Self::with_durability) changes nothing.
    ///
    /// # Errors
    /// If the store does not take an upload.
    pub fn create_object(
        self,
        store: Arc<dyn ObjectStore>,
        location: &Path,
    ) -> Result<Writer, Error> {
        self.create_in(&ObjectParts::new(store, location.clone())?)
    }

    /// Like [`create_object`](Self::create_object), in place of what is there.
    ///
    /// # Errors
    /// If the store does not take an upload.
    pub fn create_in(self, parts: &ObjectParts) -> Result<Writer, Error> {
        let pending = parts.put_whole()?;
        Writer::new(self, pending.sink, parts.place(), Some(pending.commit))
    }
}

impl Reader {
    /// Opens the state that is the object at `location` of `store`, also one that several processes
    /// saved with [`ObjectParts`]: reads its header and its end. What is asked of it later is read
    /// by ranges, and nothing else is; what lies together comes in ranges of up to 8 MiB, three at
    /// a time. An object that is replaced meanwhile is an error, not a mixture, where the store has
    /// entity tags.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_object(store: Arc<dyn ObjectStore>, location: &Path) -> Result<Self, Error> {
        Self::open_in(Arc::new(ObjectParts::new(store, location.clone())?))
    }
}
