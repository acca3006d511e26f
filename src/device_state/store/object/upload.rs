//! Multipart uploads: sent while they are written, completed when they are committed.

use std::{
    collections::VecDeque,
    io::{self, Write},
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc::Receiver},
    time::{Duration, Instant},
};

use object_store::{
    Error as StoreError, MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload, path::Path,
};

use super::driver::{Driver, system_error, wait};
use crate::{
    device_state::{Commit, Error},
    files::Durability,
};

/// Bytes of one part of an upload; S3 takes at least 5 MiB.
pub(super) const PART_BYTES: usize = 12 << 20;
/// Parts on their way at a time, beside the one that is being filled.
const PARTS_UNDER_WAY: usize = 2;
/// Parts of one object, as S3 allows.
const MOST_PARTS: usize = 10_000;

/// An upload that is not complete; aborted when the last of its owners drops it.
struct Upload {
    driver: Arc<Driver>,
    /// `None` once it is over.
    upload: Option<Box<dyn MultipartUpload>>,
    part: Vec<u8>,
    under_way: VecDeque<Receiver<Result<(), StoreError>>>,
    parts: usize,
}

/// The writing end of an upload.
pub(super) struct UploadSink(Arc<Mutex<Upload>>);

/// The end of an upload that makes the object appear.
pub(super) struct UploadCommit {
    upload: Arc<Mutex<Upload>>,
    /// For messages.
    place: PathBuf,
}

/// Begins an upload that becomes the object at `location`.
pub(super) fn begin(
    driver: Arc<Driver>,
    store: Arc<dyn ObjectStore>,
    location: Path,
    place: PathBuf,
) -> Result<(UploadSink, UploadCommit), Error> {
    let upload = driver
        .run(async move { store.put_multipart(&location).await })
        .map_err(|error| Error::io("create", &place, error))?;
    let upload = Arc::new(Mutex::new(Upload {
        driver,
        upload: Some(upload),
        part: Vec::new(),
        under_way: VecDeque::new(),
        parts: 0,
    }));
    Ok((UploadSink(Arc::clone(&upload)), UploadCommit { upload, place }))
}

fn lock(upload: &Mutex<Upload>) -> MutexGuard<'_, Upload> {
    upload.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Upload {
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

    fn complete(&mut self) -> io::Result<()> {
        self.wait_until(0)?;
        if !self.part.is_empty() {
            return Err(io::Error::other("the upload was not flushed"));
        }
        // It goes along with the request and comes back, for an abort if it failed.
        let Some(mut upload) = self.upload.take() else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let (outcome, upload) = self.driver.run(async move {
            let outcome = upload.complete().await;
            Ok((outcome, upload))
        })?;
        outcome.map(drop).map_err(|error| {
            self.upload = Some(upload);
            system_error(error)
        })
    }
}

impl Write for UploadSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut upload = lock(&self.0);
        if upload.part.len() == PART_BYTES {
            upload.send()?;
        }
        if upload.part.is_empty() {
            upload.part.reserve_exact(PART_BYTES);
        }
        let (now, _) = bytes.split_at(bytes.len().min(PART_BYTES - upload.part.len()));
        upload.part.extend_from_slice(now);
        Ok(now.len())
    }

    /// Sends what there is. A state is flushed once, when all of it was written: parts but the last
    /// have a least length.
    fn flush(&mut self) -> io::Result<()> {
        let mut upload = lock(&self.0);
        if !upload.part.is_empty() {
            upload.send()?;
        }
        upload.wait_until(0)
    }
}

impl Commit for UploadCommit {
    fn commit(self: Box<Self>, _: Durability) -> Result<Duration, Error> {
        let begin = Instant::now();
        let complete = lock(&self.upload).complete();
        complete.map_err(|error| Error::io("finish", &self.place, error))?;
        Ok(begin.elapsed())
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
