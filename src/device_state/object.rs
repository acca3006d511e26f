//! States in object storage: written by a multipart upload that is completed last, read by ranges.
//!
//! Stores speak async, states do not: a small runtime of our own carries the requests, and callers
//! wait for them on a channel, so that it does not matter whether they have a runtime themselves.

use std::{
    collections::VecDeque,
    io::{self, Write},
    path::PathBuf,
    sync::{
        Arc,
        mpsc::{Receiver, sync_channel},
    },
};

use object_store::{
    Error as StoreError, GetOptions, GetRange, MultipartUpload, ObjectStore, ObjectStoreExt,
    PutPayload, path::Path,
};
use tokio::runtime::{Builder, Runtime};

use super::{Error, Reader, WriteOptions, Writer};
use crate::read_at::ReadAt;

/// Bytes of one part of an upload; S3 takes at least 5 MiB.
const PART_BYTES: usize = 12 << 20;
/// Parts on their way at a time, beside the one that is being filled.
const PARTS_UNDER_WAY: usize = 2;
/// Parts of one object, as S3 allows.
const MOST_PARTS: usize = 10_000;

impl WriteOptions {
    /// Begins a state that becomes the object at `location` of `store` when it is finished; until
    /// then, and if the writer is dropped, what was there stays.
    ///
    /// At most three parts of 12 MiB are held in memory. A process that is killed may leave an
    /// upload that was never completed; it is no object, and a rule of the store's life cycle
    /// should remove such uploads. How durable the object is, is the store's affair:
    /// [`with_sync`](Self::with_sync) changes nothing.
    ///
    /// # Errors
    /// If the store does not take an upload.
    pub fn create_object(
        self,
        store: Arc<dyn ObjectStore>,
        location: &Path,
    ) -> Result<Writer, Error> {
        let name = object_name(&*store, location);
        let upload = Upload::begin(store, location.clone())
            .map_err(|error| Error::io("create", &name, error))?;
        Writer::new(self, Box::new(upload), name, None)
    }
}

impl Reader {
    /// Opens the state that is the object at `location` of `store`: reads its header and its end.
    /// What is asked of it later is read by ranges, and nothing else is. An object that is
    /// replaced meanwhile is an error, not a mixture, where the store has entity tags.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_object(store: Arc<dyn ObjectStore>, location: &Path) -> Result<Self, Error> {
        let name = object_name(&*store, location);
        let object = Object::open(store, location.clone())
            .map_err(|error| Error::io("open", &name, error))?;
        Self::from_source(object, name)
    }
}

/// For messages.
fn object_name(store: &dyn ObjectStore, location: &Path) -> PathBuf {
    PathBuf::from(format!("{location} of {store}"))
}

/// Where requests run.
struct Driver(Option<Runtime>);

impl Driver {
    fn new() -> io::Result<Self> {
        Builder::new_multi_thread().worker_threads(1).enable_all().build().map(|r| Self(Some(r)))
    }

    /// Starts a request; its outcome comes out of the channel.
    fn start<T: Send + 'static>(
        &self,
        request: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> Receiver<Result<T, StoreError>> {
        let (send, outcome) = sync_channel(1);
        if let Some(runtime) = &self.0 {
            runtime.spawn(async move {
                // Nobody waits for a request that was given up.
                let _ = send.send(request.await);
            });
        }
        outcome
    }

    fn run<T: Send + 'static>(
        &self,
        request: impl Future<Output = Result<T, StoreError>> + Send + 'static,
    ) -> io::Result<T> {
        wait(&self.start(request))
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        // A plain drop waits, which the threads of another runtime must not.
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

fn wait<T>(outcome: &Receiver<Result<T, StoreError>>) -> io::Result<T> {
    match outcome.recv() {
        Ok(outcome) => outcome.map_err(system_error),
        Err(_) => Err(io::Error::other("the request to the store ended without an answer")),
    }
}

/// An error of a store as one of the system, with the kind that messages and exit statuses need.
fn system_error(error: StoreError) -> io::Error {
    let kind = match &error {
        StoreError::NotFound { .. } => io::ErrorKind::NotFound,
        StoreError::PermissionDenied { .. } | StoreError::Unauthenticated { .. } => {
            io::ErrorKind::PermissionDenied
        }
        StoreError::NotSupported { .. } | StoreError::NotImplemented { .. } => {
            io::ErrorKind::Unsupported
        }
        StoreError::InvalidPath { .. } => io::ErrorKind::InvalidInput,
        StoreError::Precondition { .. } | StoreError::NotModified { .. } => {
            return io::Error::other(format!(
                "the object was replaced while it was read; open it again ({error})"
            ));
        }
        _ => io::ErrorKind::Other,
    };
    io::Error::new(kind, error)
}

/// A multipart upload; what is flushed is complete, what is dropped before is aborted.
struct Upload {
    driver: Driver,
    /// `None` once it is over.
    upload: Option<Box<dyn MultipartUpload>>,
    part: Vec<u8>,
    under_way: VecDeque<Receiver<Result<(), StoreError>>>,
    parts: usize,
}

impl Upload {
    fn begin(store: Arc<dyn ObjectStore>, location: Path) -> io::Result<Self> {
        let driver = Driver::new()?;
        let upload = driver.run(async move { store.put_multipart(&location).await })?;
        Ok(Self {
            driver,
            upload: Some(upload),
            part: Vec::new(),
            under_way: VecDeque::new(),
            parts: 0,
        })
    }

    /// Sends what was gathered, once there are few enough parts under way.
    fn send(&mut self) -> io::Result<()> {
        self.wait_until(PARTS_UNDER_WAY - 1)?;
        let Some(upload) = &mut self.upload else { return Err(io::ErrorKind::BrokenPipe.into()) };
        if self.parts == MOST_PARTS {
            return Err(io::Error::new(
                io::ErrorKind::FileTooLarge,
                format!(
                    "an object has at most {MOST_PARTS} parts of {PART_BYTES} bytes; split the state"
                ),
            ));
        }
        self.parts += 1;
        let request = upload.put_part(PutPayload::from(std::mem::take(&mut self.part)));
        self.under_way.push_back(self.driver.start(request));
        Ok(())
    }

    fn wait_until(&mut self, left: usize) -> io::Result<()> {
        while self.under_way.len() > left {
            if let Some(outcome) = self.under_way.pop_front() {
                wait(&outcome)?;
            }
        }
        Ok(())
    }
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.part.len() == PART_BYTES {
            self.send()?;
        }
        if self.part.is_empty() {
            self.part.reserve_exact(PART_BYTES);
        }
        let (now, _) = bytes.split_at(bytes.len().min(PART_BYTES - self.part.len()));
        self.part.extend_from_slice(now);
        Ok(now.len())
    }

    /// Makes the object appear. A state is flushed once, when all of it was written.
    fn flush(&mut self) -> io::Result<()> {
        if self.upload.is_some() && !self.part.is_empty() {
            self.send()?;
        }
        self.wait_until(0)?;
        let Some(mut upload) = self.upload.take() else { return Ok(()) };
        self.driver.run(async move { upload.complete().await }).map(drop)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        // Parts that still arrive would outlive the abort.
        for outcome in self.under_way.drain(..) {
            let _ = wait(&outcome);
        }
        if let Some(mut upload) = self.upload.take() {
            // Nothing can be reported from here; the store's rules remove what stays.
            let _ = self.driver.run(async move { upload.abort().await });
        }
    }
}

/// An object that is read by ranges.
struct Object {
    driver: Driver,
    store: Arc<dyn ObjectStore>,
    location: Path,
    bytes: u64,
    tag: Option<String>,
}

impl Object {
    fn open(store: Arc<dyn ObjectStore>, location: Path) -> io::Result<Self> {
        let driver = Driver::new()?;
        let (asked, place) = (Arc::clone(&store), location.clone());
        let meta = driver.run(async move { asked.head(&place).await })?;
        Ok(Self { driver, store, location, bytes: meta.size, tag: meta.e_tag })
    }
}

impl ReadAt for Object {
    fn size(&self) -> io::Result<u64> {
        Ok(self.bytes)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let end = offset.saturating_add(buffer.len() as u64).min(self.bytes);
        if end <= offset {
            return Ok(0);
        }
        let options = GetOptions {
            range: Some(GetRange::Bounded(offset..end)),
            if_match: self.tag.clone(),
            ..GetOptions::default()
        };
        let (store, location) = (Arc::clone(&self.store), self.location.clone());
        let bytes = self
            .driver
            .run(async move { store.get_opts(&location, options).await?.bytes().await })?;
        let count = bytes.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), bytes.get(..count)) {
            to.copy_from_slice(from);
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use object_store::{local::LocalFileSystem, memory::InMemory};

    use super::*;
    use crate::{
        device_state::{Watch, tests::noise},
        ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding},
        stream_executor::Plugin,
        version::SerDesVersion,
    };

    const LOCATION: &str = "runs/7/step.sds";

    fn spec(bytes: usize) -> ArraySpec {
        let shape = Shape::new([bytes as i64]).unwrap();
        ArraySpec::new(DType::U8, shape, SingleDeviceSharding::new(DeviceId(0)))
    }

    fn begin(store: &Arc<dyn ObjectStore>) -> Writer {
        let options = WriteOptions::new(SerDesVersion::current());
        options.create_object(Arc::clone(store), &Path::from(LOCATION)).unwrap()
    }

    fn open(store: &Arc<dyn ObjectStore>) -> Result<Reader, Error> {
        Reader::open_object(Arc::clone(store), &Path::from(LOCATION))
    }

    fn stores() -> (tempfile::TempDir, [Arc<dyn ObjectStore>; 2]) {
        let directory = tempfile::tempdir().unwrap();
        let local = LocalFileSystem::new_with_prefix(directory.path()).unwrap();
        (directory, [Arc::new(InMemory::new()), Arc::new(local)])
    }

    #[test]
    fn a_state_of_several_parts_makes_the_trip() {
        let (_directory, stores) = stores();
        let device = Plugin::host().device(0).unwrap();
        let large = noise(2 * PART_BYTES + 77, 3);
        for store in &stores {
            let mut writer = begin(store);
            writer.add_bytes("small", &spec(3), &[1, 2, 3]).unwrap();
            let memory = device.upload(&large).unwrap();
            writer.add("large", &spec(large.len()), &memory).unwrap();
            assert!(open(store).is_err(), "it appears when it is finished");
            writer.finish().unwrap();

            let state = open(store).unwrap();
            assert!(state.verify(&Watch::new()).unwrap().is_empty());
            for (name, expected) in [("small", &[1, 2, 3][..]), ("large", &large)] {
                let memory = state.tensor(name).unwrap().restore(&device).unwrap();
                let mut bytes = vec![0; expected.len()];
                device.copy_to_host(&memory, 0, &mut bytes).unwrap();
                assert!(bytes == expected, "{name}");
            }
        }
    }

    #[test]
    fn a_writer_that_is_dropped_leaves_the_old_state_and_no_parts() {
        let (directory, stores) = stores();
        for store in &stores {
            let mut writer = begin(store);
            writer.add_bytes("old", &spec(1), &[1]).unwrap();
            writer.finish().unwrap();
            let mut writer = begin(store);
            writer.add_bytes("new", &spec(PART_BYTES + 1), &noise(PART_BYTES + 1, 1)).unwrap();
            drop(writer);
            let names: Vec<_> = open(store).unwrap().names().map(str::to_owned).collect();
            assert_eq!(names, ["old"]);
        }
        let files = fs::read_dir(directory.path().join("runs/7")).unwrap().count();
        assert_eq!(files, 1);
    }

    #[test]
    fn no_object_is_a_missing_file() {
        for store in &stores().1 {
            let error = open(store).unwrap_err();
            let Error::Io { source, .. } = &error else { panic!("{error}") };
            assert_eq!(source.kind(), io::ErrorKind::NotFound);
            assert!(error.to_string().contains(LOCATION), "{error}");
        }
    }

    #[test]
    fn an_object_that_is_replaced_while_it_is_read_is_an_error() {
        let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
        let save = |byte| {
            let mut writer = begin(&store);
            writer.add_bytes("a", &spec(100), &[byte; 100]).unwrap();
            writer.finish().unwrap();
        };
        save(1);
        let state = open(&store).unwrap();
        save(2);
        let error = state.verify(&Watch::new()).unwrap_err().to_string();
        assert!(error.contains("open it again"), "{error}");
    }

    #[test]
    fn callers_may_have_a_runtime_of_their_own() {
        let runtime = Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
            let mut writer = begin(&store);
            writer.add_bytes("a", &spec(1), &[9]).unwrap();
            writer.finish().unwrap();
            assert_eq!(open(&store).unwrap().len(), 1);
        });
    }
}
