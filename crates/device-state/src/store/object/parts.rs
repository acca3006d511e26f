//! States that several processes save together in object storage.

use std::{
    collections::VecDeque,
    fmt, io,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant, SystemTime},
};

use object_store::{
    Error as StoreError, ObjectMeta, ObjectStore, ObjectStoreExt, PutMode, PutOptions, PutPayload,
    UpdateVersion,
    path::{Path, PathPart},
};
use serdes_files::{
    Durability, ProgressMonitor, ReadAt,
    object::{Driver, Object, Upload, UploadSink, system_error},
};

use super::commit::UploadCommit;
use crate::{
    Commit, Error, Part, PartStore, PendingPart, SaveId, format::role::Role, load::read_header,
};

/// Age at which parts of other saves count as leftovers of dead processes.
const LEFTOVER_AGE: Duration = Duration::from_secs(60 * 60);
/// Maximum number of concurrent removals.
const REMOVALS: usize = 16;

/// The state at a location of an object store, with its parts under `<name>.parts/` beside it.
///
/// Parts are multipart uploads, completed when a process finishes; the index is put last, in one
/// request. If the store supports conditional puts, a merge is refused if the state was replaced
/// since its parts were listed, so that two concurrent saves do not remove each other's parts.
///
/// A store does not know which processes are alive. Parts of saves that were not merged are removed
/// by a later save once they are an hour old, or [of the age you set](Self::with_leftover_age);
/// parts of a replaced state at once, so that readers of the old state get an error. An index that
/// is copied to another name refers to the parts of the old one, and no save checks if there is
/// such a copy: copy the parts along, under another prefix.
///
/// ```
/// use std::sync::Arc;
/// use object_store::{ObjectStore, memory::InMemory, path::Path};
/// use serdes_device_state::{ObjectParts, Part, Reader, SaveId, Versions, WriteOptions, merge_in};
/// use serdes::ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding};
///
/// let bucket: Arc<dyn ObjectStore> = Arc::new(InMemory::new()); // or AmazonS3Builder and others
/// let state = Arc::new(ObjectParts::new(bucket, Path::from("runs/7/step-1000.sds"))?);
/// let options = WriteOptions::new(Versions::current());
/// let spec = ArraySpec::new(DType::F32, Shape::new([2])?, SingleDeviceSharding::new(DeviceId(0)));
///
/// let save = SaveId::random(); // known to all processes
/// for process in 0..2 {
///     // In each process:
///     let mut part = options.clone().create_part_in(&*state, Part::new(save, process, 2)?)?;
///     part.add_bytes(&format!("bias-{process}"), &spec, &[0; 8])?;
///     part.finish()?;
/// }
/// // In one of them, when all have finished:
/// merge_in(state.clone(), save, &options)?;
/// assert_eq!(Reader::open_in(state)?.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone)]
pub struct ObjectParts {
    driver: Arc<Driver>,
    store: Arc<dyn ObjectStore>,
    location: Path,
    /// Name of the state in messages.
    place: PathBuf,
    name: String,
    leftover_age: Duration,
    /// Version of the index at the last read; `None` before.
    seen: Arc<Mutex<Option<Seen>>>,
}

/// The index at the last read.
#[derive(Clone, Debug, Default)]
struct Seen {
    /// `None` if there is no index.
    version: Option<UpdateVersion>,
    /// The save whose parts the index names.
    save: Option<SaveId>,
}

impl fmt::Debug for ObjectParts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ObjectParts").field("place", &self.place()).finish_non_exhaustive()
    }
}

impl ObjectParts {
    /// Creates the state at `location` of `store`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if `location` is the root of the store; or if the system has no thread
    /// for the requests.
    pub fn new(store: Arc<dyn ObjectStore>, location: Path) -> Result<Self, Error> {
        let driver = Driver::new(ProgressMonitor::new()).map_err(|error| {
            Error::io("start requests to", &place_of(&*store, &location), error)
        })?;
        Self::driven(Arc::new(driver), store, location)
    }

    /// Creates the state at `location` of `store`, whose requests run on `driver`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if `location` is the root of the store.
    pub fn driven(
        driver: Arc<Driver>,
        store: Arc<dyn ObjectStore>,
        location: Path,
    ) -> Result<Self, Error> {
        let Some(name) = location.filename().map(str::to_owned) else {
            return Err(Error::invalid(
                "found the root of an object store as the place of a state; expected a name"
                    .to_owned(),
            ));
        };
        let place = place_of(&*store, &location);
        Ok(Self {
            driver,
            store,
            place,
            location,
            name,
            leftover_age: LEFTOVER_AGE,
            seen: Arc::default(),
        })
    }

    /// Sets the minimum age at which later saves remove parts of saves that were not merged; zero
    /// if saves of the state never overlap.
    #[must_use]
    pub fn with_leftover_age(mut self, age: Duration) -> Self {
        self.leftover_age = age;
        self
    }

    /// Returns the commit of an upload that is not a state; the place is for messages.
    pub fn commit(upload: Upload, place: PathBuf) -> Box<dyn Commit> {
        Box::new(UploadCommit { upload, place })
    }

    /// Sets the name of the state in messages.
    pub fn called(mut self, place: PathBuf) -> Self {
        self.place = place;
        self
    }

    /// Returns the prefix of the parts in `directory`.
    fn prefix(&self, directory: &str) -> io::Result<Path> {
        let parts = self.location.parts();
        let count = self.location.parts_count().saturating_sub(1);
        let last = PathPart::parse(directory)
            .map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
        Ok(parts.take(count).chain([last]).collect())
    }

    /// Lists the existing parts, as the store describes them.
    fn list(&self) -> io::Result<Vec<(Part, ObjectMeta)>> {
        let prefix = self.prefix(&self.directory())?;
        let store = Arc::clone(&self.store);
        let found =
            self.driver.run(async move { store.list_with_delimiter(Some(&prefix)).await })?;
        let part = |meta: ObjectMeta| Some((Part::from_name(meta.location.filename()?)?, meta));
        Ok(found.objects.into_iter().filter_map(part).collect())
    }

    fn open_object(&self, location: Path) -> io::Result<Object> {
        Object::open(Arc::clone(&self.driver), Arc::clone(&self.store), location)
    }

    /// Reads the current index, and remembers it.
    fn look(&self) -> Result<Seen, Error> {
        let seen = match self.open_object(self.location.clone()) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => Seen::default(),
            Err(error) => return Err(Error::io("open", &self.place(), error)),
            Ok(object) => {
                let size = object.size().unwrap_or_default();
                // A file that is not a state, or of a newer build, names no known parts.
                let header = read_header(&object, &self.place(), size);
                let save = match header.map(|(header, ..)| header.role) {
                    Ok(Role::Merged(merged)) if merged.directory == self.directory() => {
                        Some(SaveId(merged.save))
                    }
                    Err(error @ Error::Io { .. }) => return Err(error),
                    _ => None,
                };
                Seen { version: Some(object.version()), save }
            }
        };
        *self.seen.lock().unwrap_or_else(PoisonError::into_inner) = Some(seen.clone());
        Ok(seen)
    }

    fn seen(&self) -> Option<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Starts an object beside or at the location.
    fn upload(&self, location: Path, place: PathBuf) -> Result<(UploadSink, UploadCommit), Error> {
        let begun = Upload::begin(Arc::clone(&self.driver), Arc::clone(&self.store), location);
        let (sink, upload) = begun.map_err(|error| Error::io("create", &place, error))?;
        Ok((sink, UploadCommit { upload, place }))
    }

    /// Starts a state of one object that replaces the existing one.
    pub(crate) fn put_whole(&self) -> Result<PendingPart, Error> {
        let (sink, commit) = self.upload(self.location.clone(), self.place.clone())?;
        let commit = WholeObject { commit, parts: self.clone() };
        Ok(PendingPart { sink: Box::new(sink), commit: Box::new(commit) })
    }

    /// Removes the state before its parts, so that no state with missing parts can be opened.
    pub fn remove_state(&self) -> Result<(), Error> {
        let failed = |error| Error::io("remove", &self.place, error);
        let there = self.look()?.version.is_some();
        if there {
            let (store, location) = (Arc::clone(&self.store), self.location.clone());
            self.driver.run(async move { store.delete(&location).await }).map_err(failed)?;
        }
        // Also removes the parts of a partially removed state.
        self.clean(&[]);
        if there { Ok(()) } else { Err(failed(io::ErrorKind::NotFound.into())) }
    }

    /// Removes the parts of a save that failed; see [`discard`](crate::discard).
    pub fn discard(&self, save: SaveId) {
        // If the state cannot be read, it may need the parts.
        let Ok(now) = self.look() else { return };
        let Ok(parts) = self.list() else { return };
        if now.save != Some(save) {
            let of_it = parts.into_iter().filter(|(part, _)| part.save() == save);
            self.remove(of_it.map(|(_, meta)| meta.location));
        }
    }

    /// Removes objects, several at a time; objects that cannot be removed stay.
    fn remove(&self, locations: impl Iterator<Item = Path>) {
        let mut under_way = VecDeque::new();
        for location in locations {
            if under_way.len() == REMOVALS {
                under_way.pop_front().map(|outcome| self.driver.wait(&outcome));
            }
            let store = Arc::clone(&self.store);
            under_way.push_back(self.driver.start(async move { store.delete(&location).await }));
        }
        for outcome in under_way {
            let _ = self.driver.wait(&outcome);
        }
    }
}

/// Returns a place for messages.
fn place_of(store: &dyn ObjectStore, location: &Path) -> PathBuf {
    PathBuf::from(format!("{store}/{location}"))
}

/// A state of one object that replaces a state, including one of several parts.
struct WholeObject {
    commit: UploadCommit,
    parts: ObjectParts,
}

impl Commit for WholeObject {
    fn commit(self: Box<Self>, durability: Durability) -> Result<Duration, Error> {
        // Failing to find its superfluous parts does not affect the save.
        let _ = self.parts.look();
        let time = Box::new(self.commit).commit(durability)?;
        self.parts.clean(&[]);
        Ok(time)
    }
}

impl PartStore for ObjectParts {
    fn place(&self) -> PathBuf {
        self.place.clone()
    }

    fn directory(&self) -> String {
        format!("{}.parts", self.name)
    }

    fn put_part(&self, part: Part) -> Result<PendingPart, Error> {
        let prefix = self.prefix(&self.directory());
        let prefix = prefix.map_err(|error| Error::io("create", &self.place(), error))?;
        let place = self.place.with_file_name(self.directory()).join(part.name());
        let (sink, commit) = self.upload(prefix.join(part.name()), place)?;
        Ok(PendingPart { sink: Box::new(sink), commit: Box::new(commit) })
    }

    fn list_parts(&self) -> Result<Vec<Part>, Error> {
        // Read the index before the parts: a later replacement may remove listed parts.
        self.look()?;
        let found = self.list().map_err(|error| {
            Error::io("list", &self.place().with_file_name(self.directory()), error)
        })?;
        Ok(found.into_iter().map(|(part, _)| part).collect())
    }

    fn open_part(&self, directory: &str, part: Part) -> Result<Box<dyn ReadAt>, Error> {
        let opened =
            self.prefix(directory).and_then(|prefix| self.open_object(prefix.join(part.name())));
        let place = || self.place().with_file_name(directory).join(part.name());
        opened
            .map(|object| Box::new(object) as Box<dyn ReadAt>)
            .map_err(|error| Error::io("open", &place(), error))
    }

    fn open_index(&self) -> Result<Box<dyn ReadAt>, Error> {
        let object = self.open_object(self.location.clone());
        let object = object.map_err(|error| Error::io("open", &self.place(), error))?;
        Ok(Box::new(object))
    }

    fn commit_index(&self, bytes: &[u8], _: Durability) -> Result<Duration, Error> {
        let begin = Instant::now();
        let mode = match self.seen() {
            Some(Seen { version: None, .. }) => PutMode::Create,
            Some(Seen { version: Some(version), .. }) if version.e_tag.is_some() => {
                PutMode::Update(version)
            }
            _ => PutMode::Overwrite,
        };
        let expected = bytes;
        let bytes = PutPayload::from(bytes.to_vec());
        let put = |mode: PutMode| {
            let (store, location) = (Arc::clone(&self.store), self.location.clone());
            let (bytes, options) = (bytes.clone(), PutOptions::from(mode));
            self.driver.run(async move {
                // The kind of the error decides how to continue.
                Ok(store.put_opts(&location, bytes, options).await)
            })
        };
        let failed = |error| Error::io("write", &self.place(), error);
        let mut outcome = put(mode).map_err(failed)?;
        if let Err(StoreError::NotImplemented { .. } | StoreError::NotSupported { .. }) = outcome {
            outcome = put(PutMode::Overwrite).map_err(failed)?;
        }
        match outcome {
            Ok(_) => Ok(begin.elapsed()),
            Err(StoreError::Precondition { .. } | StoreError::AlreadyExists { .. }) => {
                // Another process merged the same save, or our own request was repeated.
                let ours = self.open_object(self.location.clone()).ok().and_then(|object| {
                    let mut there = vec![0; expected.len()];
                    let same_size = object.size().ok()? == expected.len() as u64;
                    object.read_exact_at(&mut there, 0).ok()?;
                    Some(same_size && there == expected)
                });
                if ours == Some(true) {
                    return Ok(begin.elapsed());
                }
                Err(failed(io::Error::other(
                    "another save replaced the state meanwhile; save again if this one should follow it",
                )))
            }
            Err(error) => Err(failed(system_error(error))),
        }
    }

    fn clean(&self, keep: &[SaveId]) {
        // The previous save, if a merge read it, and the current one.
        let before = self.seen().and_then(|seen| seen.save);
        let Ok(now) = self.look() else { return };
        let Ok(parts) = self.list() else { return };
        let old = |meta: &ObjectMeta| {
            let age = SystemTime::now().duration_since(SystemTime::from(meta.last_modified));
            // The clocks of this machine and the store may differ.
            age.unwrap_or_default() >= self.leftover_age
        };
        let left = parts.into_iter().filter(|(part, meta)| {
            let save = Some(part.save());
            !keep.contains(&part.save()) && save != now.save && (save == before || old(meta))
        });
        self.remove(left.map(|(_, meta)| meta.location));
    }
}
