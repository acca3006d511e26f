//! Mutual exclusion for savers of files that belong together in a directory.

use std::{
    fs::{File, TryLockError},
    io,
    path::Path,
    thread,
    time::{Duration, Instant},
};

/// Longest wait for the lock: a living holder needs less time.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The exclusive right to switch sets of files in a directory. It is a lock on the directory
/// itself, which the system releases with the process.
#[derive(Debug)]
pub struct Turn {
    /// `None` where the file system has no locks.
    _lock: Option<File>,
}

impl Turn {
    /// Waits for the lock of the directory.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] if others hold the lock for too long, or the system's error.
    pub fn take(directory: &Path) -> io::Result<Self> {
        if !cfg!(unix) {
            return Ok(Self { _lock: None });
        }
        let file = File::open(directory)?;
        let begin = Instant::now();
        loop {
            match file.try_lock() {
                Ok(()) => return Ok(Self { _lock: Some(file) }),
                Err(TryLockError::Error(_)) => return Ok(Self { _lock: None }),
                Err(TryLockError::WouldBlock) if begin.elapsed() > LONGEST_WAIT => {
                    let reason = "somebody else has locked the directory for too long; expected that another save is done soon";
                    return Err(io::Error::new(io::ErrorKind::TimedOut, reason));
                }
                Err(TryLockError::WouldBlock) => thread::sleep(Duration::from_millis(10)),
            }
        }
    }
}
