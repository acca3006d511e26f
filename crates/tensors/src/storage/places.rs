//! Paths as people write them, and what is opened and begun at them.

use std::{
    borrow::Cow,
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

#[cfg(feature = "addresses")]
use object_store::{ObjectStore, path::Path as Key};
#[cfg(feature = "addresses")]
use serdes::device_state::{Commit, ObjectParts};
use serdes::device_state::{
    Durability, Error, LocalParts, Merged, Part, PartStore, PendingPart, Reader, Salvaged, SaveId,
    Watch, WriteOptions, Writer, discard, merge_in,
};
use serdes_files::{EntryKind, FileSystem, Files, ReadAt, Tree};

#[cfg(feature = "addresses")]
use super::{
    address::{Address, shown},
    bucket::Bucket,
    remote::Remote,
    web::Web,
};

/// Access to files for one piece of work: the listings of a bucket are kept as long as this is.
///
/// ```
/// use serdes::files::Tree;
/// use serdes_tensors::storage::Storage;
///
/// let storage = Storage::system(); // or Storage::anywhere(), with the feature `addresses`
/// assert!(storage.is_of_system("state.sds".as_ref()));
/// ```
#[derive(Clone, Debug, Default)]
pub struct Storage {
    /// `None` where every path is one of the file system.
    #[cfg(feature = "addresses")]
    remote: Option<Remote>,
}

/// Place that a path refers to.
enum Place<'p> {
    System(Cow<'p, Path>),
    #[cfg(feature = "addresses")]
    Object(Arc<Bucket>, Key),
    #[cfg(feature = "addresses")]
    Web(Arc<Web>, http::Uri),
}

impl Storage {
    /// The file system alone: no path is an address.
    #[must_use]
    pub fn system() -> Self {
        Self::default()
    }

    /// The file system, and what addresses lead to. Nothing is asked before it is needed.
    #[cfg(feature = "addresses")]
    #[must_use]
    pub fn anywhere() -> Self {
        Self { remote: Some(Remote::default()) }
    }

    /// Sets the watch: waits for a store end when the work is cancelled. The listings of buckets
    /// are dropped.
    #[must_use]
    pub fn with_watch(self, watch: &Watch) -> Self {
        #[cfg(feature = "addresses")]
        if let Some(remote) = &self.remote {
            return Self { remote: Some(remote.watched(watch.clone())) };
        }
        let _ = watch;
        self
    }

    /// Sets the client for the bucket at an address (`s3://bucket`), in place of one that the
    /// environment describes.
    ///
    /// ```
    /// use std::{path::Path, sync::Arc};
    /// use object_store::memory::InMemory;
    /// use serdes::device_state::{Versions, WriteOptions};
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
    /// If the address is not that of a bucket.
    #[cfg(feature = "addresses")]
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

    /// Opens the state at a path, of one file or of several parts.
    ///
    /// # Errors
    /// As [`Reader::open`], or if the path leads nowhere.
    pub fn open_state(&self, path: &Path) -> Result<Reader, Error> {
        match self.place(path).map_err(|error| self.failed("open", path, error))? {
            Place::System(path) => Reader::open(path),
            #[cfg(feature = "addresses")]
            Place::Object(..) | Place::Web(..) => {
                let source = self.open(path);
                let source = source.map_err(|error| self.failed("open", path, error))?;
                Reader::from_source_among(source, self.name(path), Arc::new(self.clone()))
            }
        }
    }

    /// Finds out what is whole in the state at a path, by reading all of it.
    ///
    /// # Errors
    /// As [`Reader::salvage`], or if the path leads nowhere.
    pub fn salvage_state(&self, path: &Path, watch: &Watch) -> Result<Salvaged, Error> {
        match self.place(path).map_err(|error| self.failed("open", path, error))? {
            Place::System(path) => Reader::salvage(path, watch),
            #[cfg(feature = "addresses")]
            Place::Object(..) | Place::Web(..) => {
                let source = self.open(path);
                let source = source.map_err(|error| self.failed("open", path, error))?;
                Reader::salvage_among(source, self.name(path), Arc::new(self.clone()), watch)
            }
        }
    }

    /// Begins a state at a path, which appears when it is finished.
    ///
    /// # Errors
    /// If none can be begun there.
    pub fn create_state(&self, path: &Path, options: WriteOptions) -> Result<Writer, Error> {
        match self.place(path).map_err(|error| self.failed("create", path, error))? {
            Place::System(path) => options.create(path),
            #[cfg(feature = "addresses")]
            Place::Object(bucket, key) => options.create_in(&object_parts(&bucket, key, path)?),
            #[cfg(feature = "addresses")]
            Place::Web(..) => Err(self.failed("create", path, read_only())),
        }
    }

    /// Begins the part of this process of a state at a path that several processes save together.
    ///
    /// # Errors
    /// If none can be begun there.
    pub fn create_part(
        &self,
        path: &Path,
        part: Part,
        options: WriteOptions,
    ) -> Result<Writer, Error> {
        match self.place(path).map_err(|error| self.failed("create", path, error))? {
            Place::System(path) => options.create_part(path, part),
            #[cfg(feature = "addresses")]
            Place::Object(bucket, key) => {
                options.create_part_in(&object_parts(&bucket, key, path)?, part)
            }
            #[cfg(feature = "addresses")]
            Place::Web(..) => Err(self.failed("create", path, read_only())),
        }
    }

    /// Makes the state at a path of the parts of a save, all of which are there.
    ///
    /// # Errors
    /// As [`merge`](serdes::device_state::merge).
    pub fn merge(
        &self,
        path: &Path,
        save: SaveId,
        options: &WriteOptions,
    ) -> Result<Merged, Error> {
        let store: Arc<dyn PartStore> =
            match self.place(path).map_err(|error| self.failed("merge", path, error))? {
                Place::System(path) => Arc::new(LocalParts::new(path.into_owned())),
                #[cfg(feature = "addresses")]
                Place::Object(bucket, key) => Arc::new(object_parts(&bucket, key, path)?),
                #[cfg(feature = "addresses")]
                Place::Web(..) => return Err(self.failed("merge", path, read_only())),
            };
        merge_in(store, save, options)
    }

    /// Removes the state at a path before its parts, so that no state with missing parts can be
    /// opened. Parts that another saver writes stay.
    ///
    /// ```
    /// use serdes::device_state::{Versions, WriteOptions};
    /// use serdes_tensors::storage::Storage;
    ///
    /// let directory = tempfile::tempdir()?;
    /// let path = directory.path().join("step-7.sds");
    /// let storage = Storage::system();
    /// storage.create_state(&path, WriteOptions::new(Versions::current()))?.finish()?;
    /// storage.remove_state(&path)?;
    /// assert!(storage.open_state(&path).is_err());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If there is none, or it cannot be removed. What is left of the parts of one that is not
    /// there goes nevertheless.
    pub fn remove_state(&self, path: &Path) -> Result<(), Error> {
        match self.place(path).map_err(|error| self.failed("remove", path, error))? {
            Place::System(path) => LocalParts::new(path.into_owned()).remove_state(),
            #[cfg(feature = "addresses")]
            Place::Object(bucket, key) => object_parts(&bucket, key, path)?.remove_state(),
            #[cfg(feature = "addresses")]
            Place::Web(..) => Err(self.failed("remove", path, read_only())),
        }
    }

    /// Removes the parts of a failed save of the state at a path, so that they are not merged. They
    /// stay if the state is made of them. Failures are not reported: a later save cleans up.
    ///
    /// Parts in object storage have no locks: all processes of the save must know that it failed.
    pub fn discard(&self, path: &Path, save: SaveId) {
        match self.place(path) {
            Ok(Place::System(path)) => discard(path, save),
            #[cfg(feature = "addresses")]
            Ok(Place::Object(bucket, key)) => {
                if let Ok(parts) = object_parts(&bucket, key, path) {
                    parts.discard(save);
                }
            }
            _ => {}
        }
    }

    /// Begins any file at a path, front to back; it appears, and replaces what was there, when it
    /// is committed.
    ///
    /// # Errors
    /// If none can be begun there.
    pub fn put(&self, path: &Path, durability: Durability) -> Result<PendingPart, Error> {
        match self.place(path).map_err(|error| self.failed("create", path, error))? {
            Place::System(path) => PendingPart::create(&path, durability),
            #[cfg(feature = "addresses")]
            Place::Object(bucket, key) => {
                let (sink, upload) =
                    bucket.put(key).map_err(|error| self.failed("create", path, error))?;
                let place = PathBuf::from(self.name(path));
                let commit: Box<dyn Commit> = ObjectParts::commit(upload, place);
                Ok(PendingPart { sink: Box::new(sink), commit })
            }
            #[cfg(feature = "addresses")]
            Place::Web(..) => Err(self.failed("create", path, read_only())),
        }
    }

    /// Calls `visit` with the name of each entry of a directory, in no order. Where a store lists
    /// in pages, one of them is in memory at a time; a prefix that holds nothing has no entries.
    ///
    /// ```
    /// use serdes_tensors::storage::Storage;
    ///
    /// let directory = tempfile::tempdir()?;
    /// std::fs::write(directory.path().join("step-7.sds"), b"")?;
    /// let mut names = Vec::new();
    /// Storage::system().visit(directory.path(), &mut |name| names.push(name.to_owned()))?;
    /// assert_eq!(names, ["step-7.sds"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// If the path leads to no directory, or it cannot be listed.
    pub fn visit(&self, directory: &Path, visit: &mut dyn FnMut(&str)) -> io::Result<()> {
        match self.place(directory)? {
            Place::System(directory) => {
                for entry in std::fs::read_dir(directory)? {
                    visit(&entry?.file_name().to_string_lossy());
                }
                Ok(())
            }
            #[cfg(feature = "addresses")]
            Place::Object(bucket, key) => bucket.visit(&key, visit),
            #[cfg(feature = "addresses")]
            Place::Web(..) => Err(no_listing()),
        }
    }

    /// The path as it stays if the working directory changes.
    ///
    /// # Errors
    /// If the system does not tell the working directory.
    pub fn absolute<'p>(&self, path: &'p Path) -> io::Result<Cow<'p, Path>> {
        match self.system_path(path)? {
            Some(found) => std::path::absolute(found).map(Cow::Owned),
            None => Ok(Cow::Borrowed(path)),
        }
    }

    /// The path of the file system that a path is, or leads to; `None` for other places.
    ///
    /// # Errors
    /// If it is an address that is wrong.
    pub fn system_path<'p>(&self, path: &'p Path) -> io::Result<Option<Cow<'p, Path>>> {
        #[cfg(feature = "addresses")]
        if self.remote.is_some() {
            return Ok(match Address::of(path).transpose()? {
                None => Some(Cow::Borrowed(path)),
                Some(Address::File(path)) => Some(Cow::Owned(path)),
                Some(Address::Object { .. } | Address::Web(_)) => None,
            });
        }
        Ok(Some(Cow::Borrowed(path)))
    }

    /// Removes a file.
    pub(crate) fn remove(&self, path: &Path) -> io::Result<()> {
        match self.place(path)? {
            Place::System(path) => std::fs::remove_file(path),
            #[cfg(feature = "addresses")]
            Place::Object(bucket, key) => bucket.remove(key),
            #[cfg(feature = "addresses")]
            Place::Web(..) => Err(read_only()),
        }
    }

    fn place<'p>(&self, path: &'p Path) -> io::Result<Place<'p>> {
        #[cfg(feature = "addresses")]
        if let Some(remote) = &self.remote {
            return match Address::of(path).transpose()? {
                None => Ok(Place::System(Cow::Borrowed(path))),
                Some(Address::File(path)) => Ok(Place::System(Cow::Owned(path))),
                Some(Address::Web(uri)) => Ok(Place::Web(remote.web()?, uri)),
                Some(Address::Object { scheme, bucket, key }) => {
                    Ok(Place::Object(remote.bucket(scheme, &bucket)?, key))
                }
            };
        }
        Ok(Place::System(Cow::Borrowed(path)))
    }

    fn failed(&self, action: &'static str, path: &Path, error: io::Error) -> Error {
        Error::io(action, Path::new(&self.name(path)), error)
    }
}

#[cfg(feature = "addresses")]
fn object_parts(bucket: &Bucket, key: Key, path: &Path) -> Result<ObjectParts, Error> {
    let (driver, store) = (Arc::clone(&bucket.driver), Arc::clone(&bucket.client.store));
    Ok(ObjectParts::driven(driver, store, key)?.called(path.to_path_buf()))
}

#[cfg(feature = "addresses")]
fn read_only() -> io::Error {
    let reason = "addresses of the web are only read; write to a file, s3://, gs:// or az://";
    io::Error::new(io::ErrorKind::Unsupported, reason)
}

#[cfg(feature = "addresses")]
fn no_listing() -> io::Error {
    let reason = "a server of the web does not say what a folder holds; name a file";
    io::Error::new(io::ErrorKind::Unsupported, reason)
}

impl Files for Storage {
    fn open(&self, path: &Path) -> io::Result<Arc<dyn ReadAt>> {
        match self.place(path)? {
            Place::System(path) => FileSystem.open(&path),
            #[cfg(feature = "addresses")]
            Place::Object(bucket, key) => bucket.open(&key),
            #[cfg(feature = "addresses")]
            Place::Web(web, uri) => web.open(&uri),
        }
    }

    fn open_anew(&self, path: &Path) -> io::Result<Arc<dyn ReadAt>> {
        match self.place(path)? {
            Place::System(path) => FileSystem.open(&path),
            #[cfg(feature = "addresses")]
            Place::Object(bucket, key) => bucket.open_anew(&key),
            #[cfg(feature = "addresses")]
            Place::Web(web, uri) => {
                web.forget();
                web.open(&uri)
            }
        }
    }
}

impl Tree for Storage {
    fn look(&self, path: &Path) -> io::Result<EntryKind> {
        match self.place(path)? {
            Place::System(path) => FileSystem.look(&path),
            #[cfg(feature = "addresses")]
            Place::Object(bucket, key) => bucket.look(&key),
            // What is added to an address that is signed is added to its query: the server would
            // answer with the file itself.
            #[cfg(feature = "addresses")]
            Place::Web(_, uri) if uri.query().is_some_and(|query| query.ends_with(".index")) => {
                Err(io::ErrorKind::NotFound.into())
            }
            #[cfg(feature = "addresses")]
            Place::Web(web, uri) => web.open(&uri).map(|_| EntryKind::File),
        }
    }

    fn look_at_entry(&self, path: &Path) -> io::Result<EntryKind> {
        match self.place(path)? {
            Place::System(path) => FileSystem.look_at_entry(&path),
            #[cfg(feature = "addresses")]
            Place::Object(..) | Place::Web(..) => self.look(path),
        }
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<PathBuf>> {
        match self.place(directory)? {
            Place::System(directory) => FileSystem.list(&directory),
            #[cfg(feature = "addresses")]
            Place::Object(bucket, key) => {
                Ok(bucket.list(&key)?.into_iter().map(|name| directory.join(name)).collect())
            }
            #[cfg(feature = "addresses")]
            Place::Web(..) => Err(no_listing()),
        }
    }

    fn is_of_system(&self, path: &Path) -> bool {
        matches!(self.system_path(path), Ok(Some(_)))
    }

    fn name(&self, path: &Path) -> String {
        #[cfg(feature = "addresses")]
        if self.remote.is_some()
            && let Some(address) = Address::of(path)
        {
            return match address {
                Ok(Address::Web(uri)) => shown(&uri),
                // What is no address may have anything in it.
                Err(_) => {
                    let text = path.to_string_lossy();
                    let text = text.split(['?', '#']).next().unwrap_or_default();
                    match text.split_once("://") {
                        Some((scheme, rest)) => {
                            format!("{scheme}://{}", rest.rsplit('@').next().unwrap_or_default())
                        }
                        None => text.to_owned(),
                    }
                }
                Ok(_) => path.to_string_lossy().into_owned(),
            };
        }
        path.to_string_lossy().into_owned()
    }
}
