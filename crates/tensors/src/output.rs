//! Destination of a target's bytes: a file that appears whole, or a stream.

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

/// The bytes of a target, front to back.
pub(super) struct Output {
    path: PathBuf,
    out: BufWriter<Box<dyn Write + Send>>,
    ending: Ending,
}

/// Commit that makes a file appear.
enum Ending {
    /// Nothing: it is a stream.
    Stream,
    File(Replacement, Durability),
    Pending(Box<dyn Commit>, Durability),
}

impl Output {
    /// Creates a file that appears when it is finished.
    pub(super) fn create(path: &Path, durability: Durability) -> Result<Self, Error> {
        Self::file(Replacement::create(path)?, path, durability)
    }

    /// Returns a file that was begun, and is called so in messages.
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

    /// Returns a file somewhere that is begun already, and called so in messages.
    pub(super) fn pending(pending: PendingPart, path: PathBuf, durability: Durability) -> Self {
        let PendingPart { sink, commit } = pending;
        let out = BufWriter::with_capacity(1 << 20, sink);
        Self { path, out, ending: Ending::Pending(commit, durability) }
    }

    /// Returns a stream; what was written before an error stays written.
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

    /// Hands the rest to the system and gives a file its name; answers how long syncing and
    /// renaming took: no time, for a stream.
    pub(super) fn finish(self) -> Result<Duration, Error> {
        match self.end()? {
            Ending::File(replacement, durability) => Ok(replacement.finish(durability)?),
            Ending::Pending(commit, durability) => Ok(commit.commit(durability)?),
            Ending::Stream => Ok(Duration::ZERO),
        }
    }

    /// Hands the rest to the system; what gives a file of the file system its name.
    pub(super) fn seal(self) -> Result<Option<(Replacement, Durability)>, Error> {
        Ok(match self.end()? {
            Ending::File(replacement, durability) => Some((replacement, durability)),
            Ending::Pending(..) | Ending::Stream => None,
        })
    }

    /// Hands the rest to the system, and closes what it went through: what appears must not be
    /// written any more.
    fn end(mut self) -> Result<Ending, Error> {
        self.out.flush().map_err(|error| Error::io("write", &self.path, error))?;
        Ok(self.ending)
    }
}
