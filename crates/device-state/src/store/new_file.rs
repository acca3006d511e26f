//! A state file that is being written.

use std::{fs::File, path::Path, sync::atomic::Ordering, time::Duration};

use serdes_files::{DirectSink, Durability, FileSink, Replacement, StillDirect};

use super::Commit;
use crate::{Error, save::Sink};

/// A state file that is being written, with the sink of its bytes.
#[derive(Debug)]
pub(crate) struct NewFile {
    replacement: Replacement,
    /// Set by a sink that writes past the system's cache.
    still_direct: Option<StillDirect>,
}

impl NewFile {
    /// Creates a file that replaces `target` when it is committed.
    pub(crate) fn create(target: &Path) -> Result<Self, Error> {
        Ok(Self::from(Replacement::create(target)?))
    }

    /// Sets how many replaced files are kept.
    pub(crate) fn keeping(self, states: u32) -> Self {
        Self { replacement: self.replacement.keeping(states), ..self }
    }

    /// Creates the sequential sink of the file; past the system's cache if `direct` is true and the
    /// file system supports it.
    pub(crate) fn sink(&mut self, durability: Durability, direct: bool) -> Result<Sink, Error> {
        let partial = self.replacement.partial();
        let file = self.replacement.file().try_clone();
        let file = file.map_err(|error| Error::io("create", partial, error))?;
        let cached = FileSink::new(file, durability);
        if !direct {
            return Ok(Box::new(cached));
        }
        Ok(match DirectSink::open(self.replacement.file(), partial, cached) {
            Ok((sink, still_direct)) => {
                self.still_direct = Some(still_direct);
                Box::new(sink)
            }
            Err(cached) => Box::new(cached),
        })
    }
}

impl From<Replacement> for NewFile {
    fn from(replacement: Replacement) -> Self {
        Self { replacement, still_direct: None }
    }
}

impl Commit for NewFile {
    fn commit(self: Box<Self>, durability: Durability) -> Result<Duration, Error> {
        Ok(self.replacement.finish(durability)?)
    }

    fn file(&self) -> Option<&File> {
        // A sink past the cache does not write at the cursor.
        (!self.is_direct()).then_some(self.replacement.file())
    }

    fn is_direct(&self) -> bool {
        self.still_direct.as_ref().is_some_and(|direct| direct.load(Ordering::Relaxed))
    }
}
