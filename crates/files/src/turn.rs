//! Savers of files that belong together take turns in a directory.

use std::{
    fs::{File, TryLockError},
    io,
    path::Path,
    thread,
    time::{Duration, Instant},
};

/// Longest wait for the turn: a living holder needs less.
const LONGEST_WAIT: Duration = Duration::from_secs(10);

/// The right to switch sets of files in a directory, one saver at a time. It is a lock on the
/// directory itself, which goes with its owner, however that ends.
#[derive(Debug)]
pub struct Turn {
    /// `None` where the file system has no locks.
    _lock: Option<File>,
}

impl Turn {
    /// Waits until it is the caller's turn.
    ///
    /// # Errors
    /// [`io::ErrorKind::TimedOut`] if others hold the directory for too long, or what the system
    /// says.
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
