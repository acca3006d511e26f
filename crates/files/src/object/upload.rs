//! Multipart uploads: sent while they are written, completed when they are committed.

use std::{
    collections::VecDeque,
    io::{self, Write},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use object_store::{MultipartUpload, ObjectStore, ObjectStoreExt, PutPayload, path::Path};

use super::{Driver, driver::Outcome, system_error, wait};

/// Size of one part of an upload in bytes; S3 requires at least 5 MiB.
pub const PART_BYTES: usize = 12 << 20;
/// Parts in transfer at a time, beside the one that is being filled.
const PARTS_UNDER_WAY: usize = 2;
/// Maximum number of parts of an object in S3.
const MOST_PARTS: usize = 10_000;

/// Longest time for the store to assemble the parts.
const LONGEST_COMPLETION: Duration = Duration::from_secs(10 * 60);
/// Longest time that a failed or cancelled upload waits for the parts in transfer.
const LAST_PARTS: Duration = Duration::from_millis(800);
/// Longest time that it waits for the store to abort the upload.
const LONGEST_ABORT: Duration = Duration::from_secs(5);

/// The parts of an incomplete upload, which is aborted when the last owner is dropped.
struct Parts {
    driver: Arc<Driver>,
    /// `None` once the upload is complete or aborted.
    upload: Option<Box<dyn MultipartUpload>>,
    part: Vec<u8>,
    under_way: VecDeque<Outcome<()>>,
    parts: usize,
}

/// Writer of an upload.
pub struct UploadSink(Arc<Mutex<Parts>>);

/// Handle to an upload, which completes it.
pub struct Upload(Arc<Mutex<Parts>>);

impl Upload {
    /// Starts an upload to the object at `location`.
    ///
    /// # Errors
    /// The error that the store reports.
    pub fn begin(
        driver: Arc<Driver>,
        store: Arc<dyn ObjectStore>,
        location: Path,
    ) -> io::Result<(UploadSink, Self)> {
        let begun = driver.start_kept(async move { store.put_multipart(&location).await });
        let upload = driver.wait(&begun).inspect_err(|_| {
            // The wait was cancelled, but the store may have started the upload.
            if let Ok(mut upload) = wait(&begun, Instant::now() + LAST_PARTS) {
                let aborted = driver.start_kept(async move { upload.abort().await });
                let _ = wait(&aborted, Instant::now() + LONGEST_ABORT);
            }
        })?;
        let parts = Arc::new(Mutex::new(Parts {
            driver,
            upload: Some(upload),
            part: Vec::new(),
            under_way: VecDeque::new(),
            parts: 0,
        }));
        Ok((UploadSink(Arc::clone(&parts)), Self(parts)))
    }

    /// Completes the upload, which makes the object appear; returns how long that took.
    ///
    /// # Errors
    /// The error that the store reports; no object appears then.
    pub fn complete(&self) -> io::Result<Duration> {
        let begin = Instant::now();
        lock(&self.0).complete()?;
        Ok(begin.elapsed())
    }
}

fn lock(parts: &Mutex<Parts>) -> MutexGuard<'_, Parts> {
    parts.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Parts {
    /// Sends the current part, once few enough parts are in transfer.
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
            let Some(outcome) = self.under_way.pop_front() else { break };
            self.driver.wait(&outcome)?;
        }
        Ok(())
    }

    fn complete(&mut self) -> io::Result<()> {
        self.wait_until(0)?;
        if !self.part.is_empty() {
            return Err(io::Error::other("the upload was not flushed"));
        }
        // The upload moves into the request and comes back, so that it can be aborted on failure.
        // The wait is not cancelled: the result would not be known.
        let Some(mut upload) = self.upload.take() else {
            return Err(io::ErrorKind::BrokenPipe.into());
        };
        let completed = self.driver.start_kept(async move {
            let outcome = upload.complete().await;
            Ok((outcome, upload))
        });
        let (outcome, upload) = wait(&completed, Instant::now() + LONGEST_COMPLETION)?;
        outcome.map(drop).map_err(|error| {
            self.upload = Some(upload);
            system_error(error)
        })
    }
}

impl Write for UploadSink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut parts = lock(&self.0);
        if parts.part.len() == PART_BYTES {
            parts.send()?;
        }
        if parts.part.is_empty() {
            parts.part.reserve_exact(PART_BYTES);
        }
        let (now, _) = bytes.split_at(bytes.len().min(PART_BYTES - parts.part.len()));
        parts.part.extend_from_slice(now);
        Ok(now.len())
    }

    /// Sends the remaining bytes. A state is flushed once, after all data: parts other than the
    /// last have a minimum length.
    fn flush(&mut self) -> io::Result<()> {
        let mut parts = lock(&self.0);
        if !parts.part.is_empty() {
            parts.send()?;
        }
        parts.wait_until(0)
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        let deadline = Instant::now() + LAST_PARTS;
        // Parts that still arrive would outlive the abort.
        for outcome in self.under_way.drain(..) {
            let _ = wait(&outcome, deadline);
        }
        if let Some(mut upload) = self.upload.take() {
            // Errors cannot be reported from here; the store's lifecycle rules remove what remains.
            let aborted = self.driver.start_kept(async move { upload.abort().await });
            let _ = wait(&aborted, Instant::now() + LONGEST_ABORT);
        }
    }
}
