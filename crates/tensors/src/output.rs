//! Destination of a target's bytes: a file that appears complete, or a stream.

use std::{
    io::{BufWriter, Write},
    path::{Path, PathBuf},
    time::Duration,
};

use serdes_device_state::{Commit, PendingPart};
use serdes_files::{Durability, Replacement};

use super::Error;

/// Name of a stream in messages.
const STREAM: &str = "the output stream";

/// Sequential writer for the bytes of a target.
pub(super) struct Output {
    path: PathBuf,
    out: BufWriter<Box<dyn Write + Send>>,
    ending: Ending,
}

/// The commit that makes a file appear.
enum Ending {
    /// None: a stream.
    Stream,
    File(Replacement, Durability),
    Pending(Box<dyn Commit>, Durability),
}

impl Output {
    /// Creates a file that appears when it is finished.
    pub(super) fn create(path: &Path, durability: Durability) -> Result<Self, Error> {
        Self::file(Replacement::create(path)?, path, durability)
    }

    /// Wraps a started file; `path` is for messages.
    pub(super) fn file(
        replacement: Replacement,
        path: &Path,
        durability: Durability,
    ) -> Result<Self, Error> {
        let file =
            replacement.file().try_clone().map_err(|error| Error::io("create", path, error))?;
        Ok(Self {
            path: path.to_path_buf(),
            out: BufWriter::with_capacity(1 << 20, Box::new(file)),
            ending: Ending::File(replacement, durability),
        })
    }

    /// Wraps a started file of any storage; `path` is for messages.
    pub(super) fn pending(pending: PendingPart, path: PathBuf, durability: Durability) -> Self {
        let PendingPart { sink, commit } = pending;
        let out = BufWriter::with_capacity(1 << 20, sink);
        Self { path, out, ending: Ending::Pending(commit, durability) }
    }

    /// Wraps a stream; bytes written before an error stay written.
    pub(super) fn stream(sink: Box<dyn Write + Send>) -> Self {
        let out = BufWriter::with_capacity(1 << 20, sink);
        Self { path: PathBuf::from(STREAM), out, ending: Ending::Stream }
    }

    /// Returns the name of the output in messages.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Writes all of `bytes`.
    pub(super) fn put(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.out.write_all(bytes).map_err(|error| Error::io("write", &self.path, error))
    }

    /// Flushes the remaining bytes and renames the file; returns how long syncing and renaming
    /// took, which is zero for a stream.
    pub(super) fn finish(self) -> Result<Duration, Error> {
        match self.end()? {
            Ending::File(replacement, durability) => Ok(replacement.finish(durability)?),
            Ending::Pending(commit, durability) => Ok(commit.commit(durability)?),
            Ending::Stream => Ok(Duration::ZERO),
        }
    }

    /// Flushes the remaining bytes; returns the replacement that renames a file of the file system.
    pub(super) fn seal(self) -> Result<Option<(Replacement, Durability)>, Error> {
        Ok(match self.end()? {
            Ending::File(replacement, durability) => Some((replacement, durability)),
            Ending::Pending(..) | Ending::Stream => None,
        })
    }

    /// Flushes the remaining bytes and closes the writer, so that nothing is written after the file
    /// appears.
    fn end(mut self) -> Result<Ending, Error> {
        self.out.flush().map_err(|error| Error::io("write", &self.path, error))?;
        Ok(self.ending)
    }
}
