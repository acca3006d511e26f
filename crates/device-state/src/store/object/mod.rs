//! States in object storage, of one process or of several.
//!
//! Objects as files are implemented in `serdes-files`. This module uses stores only through the
//! crate `object_store` and treats none of them specially.

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
    /// Creates a state that becomes the object at `location` of `store` when it is finished; until
    /// then, and if the writer is dropped, the old object stays. Processes that save one state
    /// together use [`ObjectParts`].
    ///
    /// At most three parts of 12 MiB are held in memory. A killed process may leave an incomplete
    /// upload; it is not an object, and a life-cycle rule of the store should remove such uploads.
    /// The store determines the durability of the object:
    /// [`with_durability`](Self::with_durability) has no effect.
    ///
    /// # Errors
    /// If the store refuses an upload.
    pub fn create_object(
        self,
        store: Arc<dyn ObjectStore>,
        location: &Path,
    ) -> Result<Writer, Error> {
        self.create_in(&ObjectParts::new(store, location.clone())?)
    }

    /// Like [`create_object`](Self::create_object), replacing the existing state.
    ///
    /// # Errors
    /// If the store refuses an upload.
    pub fn create_in(self, parts: &ObjectParts) -> Result<Writer, Error> {
        let pending = parts.put_whole()?;
        Writer::new(self, pending.sink, parts.place(), Some(pending.commit))
    }
}

impl Reader {
    /// Opens the state in the object at `location` of `store`, including one that several processes
    /// saved with [`ObjectParts`]: reads its header and its end. Later requests read exactly the
    /// needed ranges; adjacent data come in ranges of up to 8 MiB, three at a time. If the object
    /// is replaced meanwhile, reads fail instead of mixing both, if the store has entity tags.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_object(store: Arc<dyn ObjectStore>, location: &Path) -> Result<Self, Error> {
        Self::open_in(Arc::new(ObjectParts::new(store, location.clone())?))
    }
}
