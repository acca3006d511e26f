//! Resolution of addresses, and storage that supports them.

use std::{borrow::Cow, io, path::Path, sync::Arc};

use object_store::ObjectStore;

use super::{
    super::{Storage, location::Location, system::SystemPath},
    Remote,
    address::{Address, shown},
    object::ObjectPath,
    page::Page,
};

impl Storage {
    /// Creates storage for the file system and addresses. Clients are created on first use.
    #[must_use]
    pub fn anywhere() -> Self {
        Self { remote: Some(Remote::default()) }
    }

    /// Sets the client for the bucket at an address (`s3://bucket`), instead of one from the
    /// environment.
    ///
    /// ```
    /// use std::{path::Path, sync::Arc};
    /// use object_store::memory::InMemory;
    /// use serdes_device_state::{Versions, WriteOptions};
    /// use serdes_tensors::storage::Storage;
    ///
    /// let storage = Storage::anywhere().with_bucket("s3://runs", Arc::new(InMemory::new()))?;
    /// let path = Path::new("s3://runs/step-7.sds");
    /// storage.create_state(path, WriteOptions::new(Versions::current()))?.finish()?;
    /// assert!(storage.open_state(path)?.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the address is not a bucket.
    pub fn with_bucket(self, address: &str, store: Arc<dyn ObjectStore>) -> io::Result<Self> {
        let Some(Address::Object { scheme, bucket, .. }) =
            Address::of(Path::new(address)).transpose()?
        else {
            let reason = format!("{address} is no address of a bucket; expected s3://bucket");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, reason));
        };
        let remote = self.remote.unwrap_or_default();
        Ok(Self { remote: Some(remote.given(scheme, bucket, store)) })
    }
}

impl Remote {
    /// Resolves an address; `None` for a file system path.
    ///
    /// # Errors
    /// If the address is invalid, or its client cannot be created.
    pub(in super::super) fn locate<'p>(
        &self,
        path: &'p Path,
    ) -> io::Result<Option<Box<dyn Location + 'p>>> {
        let Some(address) = Address::of(path).transpose()? else { return Ok(None) };
        Ok(Some(match address {
            Address::File(path) => Box::new(SystemPath(Cow::Owned(path))),
            Address::Web(uri) => Box::new(Page { web: self.web()?, uri }),
            Address::Object { scheme, bucket, key } => {
                let bucket = self.bucket(scheme, &bucket)?;
                Box::new(ObjectPath { bucket, key, path: path.to_path_buf() })
            }
        }))
    }

    /// Returns the file system path of a path or address; `None` for other places.
    ///
    /// # Errors
    /// If the address is invalid.
    pub(in super::super) fn system_path<'p>(
        &self,
        path: &'p Path,
    ) -> io::Result<Option<Cow<'p, Path>>> {
        Ok(match Address::of(path).transpose()? {
            None => Some(Cow::Borrowed(path)),
            Some(Address::File(path)) => Some(Cow::Owned(path)),
            Some(Address::Object { .. } | Address::Web(_)) => None,
        })
    }

    /// Returns the path for messages, without secrets.
    pub(in super::super) fn name(&self, path: &Path) -> String {
        match Address::of(path) {
            Some(Ok(Address::Web(uri))) => shown(&uri),
            Some(Err(_)) => name_of_malformed(&path.to_string_lossy()),
            Some(Ok(_)) | None => path.to_string_lossy().into_owned(),
        }
    }
}

/// Returns the text for an invalid address, which may contain anything.
fn name_of_malformed(text: &str) -> String {
    let text = text.split(['?', '#']).next().unwrap_or_default();
    match text.split_once("://") {
        Some((scheme, rest)) => {
            format!("{scheme}://{}", rest.rsplit('@').next().unwrap_or_default())
        }
        None => text.to_owned(),
    }
}
