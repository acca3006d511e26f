//! One server for one state: a lock on a file beside it, `.NAME.lock`.
//!
//! The state itself is replaced by another file at every save, so that a lock on it would be lost.
//! The lock file goes when the server stops. One that a killed server left behind locks nobody out:
//! the lock is the system's, and ended with the process.

use std::{
    ffi::OsString,
    fs::{self, File, OpenOptions, TryLockError},
    io::{self, Read as _, Seek as _, Write as _},
    path::{Path, PathBuf},
};

use super::identity::FileIdentity;
use crate::proxy::{
    ProxyError,
    server::digest::{hash, hexadecimal},
};

/// How often a lock is tried that another server takes away while it stops.
const TRIES: usize = 100;

/// The right to write a state, until it is dropped.
#[derive(Debug)]
pub(crate) struct Lock {
    /// `None` where the system has no locks.
    held: Option<(File, PathBuf)>,
}

impl Lock {
    /// Locks the state at `path`, whether it is there or not.
    ///
    /// # Errors
    /// [`ProxyError::Configuration`] if another server has it, or no file can be made beside it.
    pub(crate) fn take(path: &Path) -> Result<Self, ProxyError> {
        let refuse = |reason: String| {
            ProxyError::configuration("the place of the state", path.display().to_string(), reason)
        };
        // Links may give a state more than one name.
        let path = &fs::canonicalize(path).unwrap_or_else(|_| path.to_owned());
        for _ in 0..TRIES {
            let (mut file, lock_path) = open(path).map_err(|error| {
                refuse(format!("no lock can be made beside it: {error}; name a file in a folder that the server may write to"))
            })?;
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => {
                    return Err(refuse(format!(
                        "{} has it; stop that one, or give this server another file",
                        holder(&mut file)
                    )));
                }
                Err(TryLockError::Error(error)) => {
                    tracing::warn!(%error, path = %lock_path.display(), "the system gives no locks here; nothing keeps two servers from this state");
                    drop(fs::remove_file(&lock_path));
                    return Ok(Self { held: None });
                }
                Ok(()) => {}
            }
            // Who had it before may have removed the file between the two steps.
            if is_at(&file, &lock_path) {
                // For people; nothing depends on it.
                let _ = file.set_len(0).and_then(|()| writeln!(file, "{}", std::process::id()));
                return Ok(Self { held: Some((file, lock_path)) });
            }
        }
        Err(refuse("other servers start and stop on it all the time".to_owned()))
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While it is locked, so that nobody has it by then.
        if let Some((file, path)) = self.held.take()
            && is_at(&file, &path)
            && let Err(error) = fs::remove_file(&path)
        {
            tracing::debug!(%error, path = %path.display(), "the lock of the state stays; it locks nobody out");
        }
    }
}

/// The lock file of a state.
fn open(path: &Path) -> io::Result<(File, PathBuf)> {
    let name = path.file_name().unwrap_or_default();
    let mut usual = OsString::from(".");
    usual.push(name);
    usual.push(".lock");
    let lock_path = path.with_file_name(usual);
    match open_or_make(&lock_path) {
        // The name of the state may be as long as names are at all.
        Err(error) if error.kind() == io::ErrorKind::InvalidFilename => {
            let sum = hexadecimal(&hash(name.as_encoded_bytes()), 32);
            let lock_path = path.with_file_name(format!(".{sum}.lock"));
            Ok((open_or_make(&lock_path)?, lock_path))
        }
        opened => Ok((opened?, lock_path)),
    }
}

/// Follows no link, and waits for no pipe: others may be able to write into the folder.
#[cfg(unix)]
fn open_or_make(path: &Path) -> io::Result<File> {
    use std::os::unix::fs::OpenOptionsExt as _;

    use rustix::fs::OFlags;

    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let file = options.custom_flags(flags.bits().cast_signed()).open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::Error::other(format!("`{}` is no file", path.display()))),
    }
}

#[cfg(not(unix))]
fn open_or_make(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)
}

/// Whether the file is the one behind that name.
fn is_at(file: &File, path: &Path) -> bool {
    file.metadata().is_ok_and(|own| FileIdentity::names(&own, path))
}

/// Who has locked the file, in words.
fn holder(file: &mut File) -> String {
    let mut text = String::new();
    // A process has few digits.
    let read = file.rewind().and_then(|()| file.take(20).read_to_string(&mut text));
    match read.ok().and_then(|_| text.trim().parse::<u32>().ok()) {
        Some(process) => format!("another server (process {process})"),
        None => "another server".to_owned(),
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn files(folder: &Path) -> usize {
        fs::read_dir(folder).unwrap().count()
    }

    #[test]
    fn the_second_server_is_told_who_the_first_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.sds");
        let first = Lock::take(&path).unwrap();
        let said = Lock::take(&path).unwrap_err().to_string();
        assert!(said.contains(&format!("process {}", std::process::id())), "{said}");
        let other = Lock::take(&folder.path().join("y.sds")).unwrap();
        drop((first, other));
        assert_eq!(files(folder.path()), 0);
        drop(Lock::take(&path).unwrap());
    }

    #[test]
    fn what_a_killed_server_left_behind_locks_nobody_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.sds");
        fs::write(folder.path().join(".x.sds.lock"), "4194304999999999999999").unwrap();
        drop(Lock::take(&path).unwrap());
        assert_eq!(files(folder.path()), 0);
    }

    #[test]
    fn a_lock_that_somebody_replaced_is_not_taken_away_from_who_has_it_now() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.sds");
        let first = Lock::take(&path).unwrap();
        fs::remove_file(folder.path().join(".x.sds.lock")).unwrap();
        let second = Lock::take(&path).unwrap();
        drop(first);
        assert!(Lock::take(&path).is_err());
        drop(second);
        assert_eq!(files(folder.path()), 0);
    }

    #[test]
    fn names_may_be_as_long_as_names_are_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x".repeat(255));
        let first = Lock::take(&path).unwrap();
        assert!(Lock::take(&path).is_err());
        drop(first);
        assert_eq!(files(folder.path()), 0);
        let path = folder.path().join("x.sds");
        std::os::unix::fs::symlink("elsewhere", folder.path().join(".x.sds.lock")).unwrap();
        assert!(Lock::take(&path).is_err());
        assert_eq!(files(folder.path()), 1);
    }
}
