//! Excludes other servers from a state: with a lock on a file beside it, `.NAME.lock`, and one on
//! the state itself.
//!
//! Every save replaces the state by another file, so that a lock on it would be lost; the file
//! beside it stays. Links are resolved first, even dangling ones, so that a place has one lock
//! under all names that servers use. The lock on the state itself, which moves to each new file, is
//! for files with names in several places: hard links and bind mounts.
//!
//! The lock file is removed when the server stops. One that a killed server left behind blocks no
//! other server: the lock belongs to the system, and ended with the process.

use std::{
    fs::{self, File, TryLockError},
    io::Write as _,
    path::{Path, PathBuf},
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use super::{
    holder::StateHolder,
    lock_file::{at_lock_path, is_at, open_or_make, open_there},
};
use crate::ProxyError;

/// Time for which a held lock is retried: another server releases it while it stops, and a query
/// for the holder of a state takes it for a moment.
const PATIENCE: Duration = Duration::from_millis(200);
const PAUSE: Duration = Duration::from_millis(5);

/// The exclusive right to write a state, released on drop.
#[derive(Debug)]
pub(crate) struct Lock {
    /// `None` if the system has no locks.
    held: Option<(File, PathBuf)>,
    /// Lock on the state itself, if it exists.
    state: Mutex<Option<File>>,
}

impl Lock {
    /// Locks the state at `path`, whether it exists or not, and the places of its `previous` older
    /// states.
    ///
    /// # Errors
    /// [`ProxyError::Configuration`] if another server uses one of them, or no file can be created
    /// beside it.
    pub(crate) fn take(path: &Path, previous: u32) -> Result<Self, ProxyError> {
        let refuse = |reason: String| {
            ProxyError::configuration("the place of the state", path.display().to_string(), reason)
        };
        let place = &serdes_files::resolve(path);
        let until = Instant::now() + PATIENCE;
        let held = take_place(place, until, previous).map_err(&refuse)?;
        // Dropped if another server uses a place beside it.
        let lock = Self { held, state: Mutex::default() };
        let state = take_state(place, until).map_err(&refuse)?;
        *lock.state() = state;
        if let Some(holder) = StateHolder::of_places_beside(place, previous) {
            return Err(refuse(format!(
                "{holder} keeps its own states in one of the places of this one; stop that one, or give this server another file"
            )));
        }
        Ok(lock)
    }

    /// Locks the file with which a save has replaced the state, instead of the previous one.
    pub(crate) fn follow(&self, path: &Path) {
        let mut state = self.state();
        if state.as_ref().is_some_and(|file| is_at(file, path)) {
            return;
        }
        *state = None;
        match take_state(path, Instant::now() + PATIENCE) {
            Ok(file) => *state = file,
            Err(reason) => {
                tracing::debug!(reason, path = %path.display(), "the state has no lock of its own until the next save");
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, Option<File>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Lock {
    fn drop(&mut self) {
        // Remove the file while it is locked, so that no other server has locked it yet.
        if let Some((file, path)) = self.held.take()
            && is_at(&file, &path)
            && let Err(error) = fs::remove_file(&path)
        {
            tracing::debug!(%error, path = %path.display(), "the lock of the state stays; it keeps no server from the state");
        }
    }
}

/// Locks the file beside the state, and writes the holder to it; returns `None` if the system has
/// no locks. An error is a reason for messages.
fn take_place(
    place: &Path,
    until: Instant,
    previous: u32,
) -> Result<Option<(File, PathBuf)>, String> {
    loop {
        let (file, path) = at_lock_path(place, open_or_make).map_err(|error| {
            format!(
                "no lock can be made beside it: {error}; name a file in a folder that the server may write to"
            )
        })?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(PAUSE);
                continue;
            }
            Err(TryLockError::WouldBlock) => {
                let holder = StateHolder::read(file);
                return Err(format!(
                    "{holder} has it; stop that one, or give this server another file"
                ));
            }
            Err(TryLockError::Error(error)) => {
                tracing::warn!(%error, path = %path.display(), "the system gives no locks here; nothing keeps two servers from this state");
                drop(fs::remove_file(&path));
                return Ok(None);
            }
            Ok(()) => {}
        }
        // The previous holder may have removed the file between the two steps.
        if is_at(&file, &path) {
            let text = StateHolder::text(previous);
            // Other servers lack the holder if it cannot be written; the lock still holds.
            let _ = file.set_len(0).and_then(|()| (&file).write_all(text.as_bytes()));
            return Ok(Some((file, path)));
        }
        if Instant::now() >= until {
            return Err("other servers start and stop on it all the time".to_owned());
        }
    }
}

/// Locks the state itself, if it exists and the system has locks. An error is a reason for
/// messages.
fn take_state(place: &Path, until: Instant) -> Result<Option<File>, String> {
    loop {
        let Ok(file) = open_there(place) else { return Ok(None) };
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::Error(_)) => return Ok(None),
            Err(TryLockError::WouldBlock) if Instant::now() < until => std::thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => {
                return Err(
                    "another server has the same file by another name (a hard link, or a mount); stop that one, or give this server a copy of the file"
                        .to_owned(),
                );
            }
        }
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
        let first = Lock::take(&path, 0).unwrap();
        let said = Lock::take(&path, 0).unwrap_err().to_string();
        assert!(said.contains(&format!("process {}", std::process::id())), "{said}");
        let other = Lock::take(&folder.path().join("y.sds"), 0).unwrap();
        drop((first, other));
        assert_eq!(files(folder.path()), 0);
        drop(Lock::take(&path, 0).unwrap());
    }

    #[test]
    fn lock_of_a_killed_server_keeps_no_server_out() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.sds");
        fs::write(folder.path().join(".x.sds.lock"), "4194304999999999999999").unwrap();
        drop(Lock::take(&path, 0).unwrap());
        assert_eq!(files(folder.path()), 0);
    }

    #[test]
    fn replaced_lock_is_not_removed_from_its_new_holder() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.sds");
        let first = Lock::take(&path, 0).unwrap();
        fs::remove_file(folder.path().join(".x.sds.lock")).unwrap();
        let second = Lock::take(&path, 0).unwrap();
        drop(first);
        assert!(Lock::take(&path, 0).is_err());
        drop(second);
        assert_eq!(files(folder.path()), 0);
    }

    #[test]
    fn names_may_be_as_long_as_names_are_and_links_are_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x".repeat(255));
        let first = Lock::take(&path, 0).unwrap();
        assert!(Lock::take(&path, 0).is_err());
        drop(first);
        assert_eq!(files(folder.path()), 0);
        let path = folder.path().join("x.sds");
        std::os::unix::fs::symlink("elsewhere", folder.path().join(".x.sds.lock")).unwrap();
        assert!(Lock::take(&path, 0).is_err());
        assert_eq!(files(folder.path()), 1);
    }
}
