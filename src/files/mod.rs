//! Files that appear whole or not at all.
//!
//! Bytes go into a partial file beside the target, which only its owner can read; at the end it gets what the target had (mode, owner, group,
//! extended attributes) and then the target's name. The owner of a partial file holds a lock on it for as long as it lives, so that the next save can
//! tell those of dead owners from those of live ones.
//!
//! This room must never know what the bytes mean, nor follow what it did not make: links, pipes and files of others that have a partial
//! file's name stay as they are.

#[cfg(unix)]
mod attributes;
#[cfg(not(unix))]
#[path = "attributes_elsewhere.rs"]
mod attributes;
mod partial;
mod place;
#[cfg(feature = "device")]
mod previous;
mod replacement;
#[cfg(test)]
mod tests;

use std::{
    fs::File,
    io,
    path::{Path, PathBuf},
};

#[cfg(feature = "device")]
pub(crate) use partial::{remove_if_dead, target_of};
pub(crate) use replacement::Replacement;

/// How far a file is taken to the disk before it gets its name.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Sync {
    /// The data, the file's length and its new name are on the disk before the save is done.
    #[default]
    Data,
    /// The system writes when it likes; a crash of the machine may lose the new file or leave it
    /// damaged. A crash of the process may not.
    None,
}

/// The system could not do something with a file.
#[derive(Debug)]
pub(crate) struct Error {
    /// What was being done: "create".
    pub(crate) action: &'static str,
    /// The file.
    pub(crate) path: PathBuf,
    /// What the system reported.
    pub(crate) source: io::Error,
}

impl Error {
    fn new(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self { action, path: path.to_path_buf(), source }
    }

    /// A target that is none, with what is expected instead.
    fn refused(action: &'static str, path: &Path, reason: &str) -> Self {
        Self::new(action, path, io::Error::new(io::ErrorKind::InvalidInput, reason.to_owned()))
    }
}

/// Where the file at `path` lies, as [`Replacement::create`] finds it, or its absolute path if it
/// could not lie there.
#[cfg(feature = "device")]
pub(crate) fn resolve(path: &Path) -> PathBuf {
    match place::Place::of(path) {
        Ok(place) => place.path(),
        Err(_) => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
    }
}

/// Makes new names in a directory last.
pub(crate) fn sync_directory(path: &Path) -> Result<(), Error> {
    if cfg!(unix) {
        File::open(path)
            .and_then(|directory| directory.sync_all())
            .map_err(|error| Error::new("sync", path, error))?;
    }
    Ok(())
}
