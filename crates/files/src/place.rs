//! Location of a target, independent of the working directory and with links resolved.

use std::{
    ffi::OsString,
    fs,
    path::{Path, PathBuf},
};

use super::Error;

/// Maximum number of links to follow, as on Linux; more count as a loop.
const MOST_LINKS: usize = 40;

/// A name in an existing directory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct TargetPlace {
    /// The directory: absolute, without links.
    pub(super) directory: PathBuf,
    /// The name in it.
    pub(super) name: OsString,
}

impl TargetPlace {
    /// Returns the place that `target` denotes. For a link it is the place that the link points to,
    /// even if no file is there yet.
    pub(super) fn of(target: &Path) -> Result<Self, Error> {
        use std::io::{
            self,
            ErrorKind::{InvalidFilename, InvalidInput, NotFound},
        };

        let failed = |error| Error::new("create", target, error);
        let mut path = target.to_owned();
        for _ in 0..MOST_LINKS {
            let place = Self::at(&path, target)?;
            match fs::read_link(place.path()) {
                Ok(next) => path = place.directory.join(next),
                // The path is not a link, or does not exist.
                Err(error) if matches!(error.kind(), InvalidInput | NotFound | InvalidFilename) => {
                    return Ok(place);
                }
                Err(error) => return Err(failed(error)),
            }
        }
        Err(failed(io::Error::other("too many links lead to it")))
    }

    /// Returns the place of `target` itself, even if it is a link.
    pub(super) fn beside(target: &Path) -> Result<Self, Error> {
        Self::at(target, target)
    }

    /// Returns the place of a path, without following a link in it; `target` is for messages.
    fn at(path: &Path, target: &Path) -> Result<Self, Error> {
        let failed = |error| Error::new("create", target, error);
        let refused = |action, reason| Err(Error::refused(action, target, reason));
        if ends_in_separator(path) {
            return refused("create", "it ends in a separator; expected the name of a file");
        }
        let path = std::path::absolute(path).map_err(failed)?;
        let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else {
            return refused("create", "expected the name of a file");
        };
        let directory = fs::canonicalize(parent).map_err(failed)?;
        if is_no_place(&directory) {
            let reason = "it stands for something that is open or for a device; expected a file or a new name";
            return refused("replace", reason);
        }
        Ok(Self { name: name.to_owned(), directory })
    }

    /// Returns the path of the file.
    pub(super) fn path(&self) -> PathBuf {
        self.directory.join(&self.name)
    }
}

/// Returns true for directories whose entries refer to open files: `/dev/stdout` may be any file,
/// which the caller did not ask to replace. Shared memory (`/dev/shm`) is an ordinary directory.
fn is_no_place(directory: &Path) -> bool {
    cfg!(unix) && (directory == Path::new("/dev") || directory.starts_with("/proc"))
}

/// Returns the path of the file that [`Replacement::create`](super::Replacement::create) would
/// write for `path`, or its absolute path if no file can be created there.
pub fn resolve(path: &Path) -> PathBuf {
    match TargetPlace::of(path) {
        Ok(place) => place.path(),
        Err(_) => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
    }
}

fn ends_in_separator(path: &Path) -> bool {
    let bytes = path.as_os_str().as_encoded_bytes();
    bytes.ends_with(b"/") || bytes.ends_with(b"/.") || (cfg!(windows) && bytes.ends_with(b"\\"))
}
