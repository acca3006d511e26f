//! The lock file beside a state: its name, and how it is opened.

use std::{
    ffi::OsString,
    fs::{File, OpenOptions},
    io,
    path::{Path, PathBuf},
};

use super::identity::FileIdentity;
use crate::server::digest::{hash, hexadecimal};

/// Opens the lock file of a state, and returns its path.
pub(super) fn at_lock_path(
    place: &Path,
    open: impl Fn(&Path) -> io::Result<File>,
) -> io::Result<(File, PathBuf)> {
    let name = place.file_name().unwrap_or_default();
    let mut usual = OsString::from(".");
    usual.push(name);
    usual.push(".lock");
    let path = place.with_file_name(usual);
    match open(&path) {
        // The state's name may already have the maximum length.
        Err(error) if error.kind() == io::ErrorKind::InvalidFilename => {
            let sum = hexadecimal(&hash(name.as_encoded_bytes()), 32);
            let path = place.with_file_name(format!(".{sum}.lock"));
            Ok((open(&path)?, path))
        }
        opened => Ok((opened?, path)),
    }
}

/// Opens a file for writing, and creates it if it is missing.
pub(super) fn open_or_make(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false);
    open_file(options, path)
}

/// Opens an existing file for reading.
pub(super) fn open_there(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true);
    open_file(options, path)
}

/// Opens a file without following links or blocking on pipes: others may be able to write to the
/// directory.
fn open_file(mut options: OpenOptions, path: &Path) -> io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::unix::fs::OpenOptionsExt as _;

        use rustix::fs::OFlags;

        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        options.mode(0o600).custom_flags(flags.bits().cast_signed());
    }
    let file = options.open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other(format!("`{}` is no file", path.display()))),
    }
}

/// Returns true if `path` names the open file.
pub(super) fn is_at(file: &File, path: &Path) -> bool {
    file.metadata().is_ok_and(|own| FileIdentity::names(&own, path))
}
