//! Finds the server that uses a state, from its lock file.

use std::{
    fmt,
    fs::{File, TryLockError},
    io::{Read as _, Seek as _},
    path::Path,
};

use super::lock_file::{at_lock_path, open_there};

/// A running server that uses a state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StateHolder {
    process: Option<u32>,
    /// Number of older states that the server keeps.
    previous: u32,
}

impl StateHolder {
    /// Returns the server that uses the state at `path`, or keeps one of its older states there;
    /// `None` if there is none, or the system has no locks.
    ///
    /// Links are followed, even dangling ones. A file that is written there while a server uses it
    /// is replaced by the server's next save.
    #[must_use]
    pub fn of(path: &Path) -> Option<Self> {
        let place = serdes_files::resolve(path);
        Self::at(&place).or_else(|| Self::of_places_beside(&place, 0))
    }

    /// Returns the process id, if it is known.
    #[must_use]
    pub fn process(&self) -> Option<u32> {
        self.process
    }

    /// Returns the server whose current state is at `place`.
    fn at(place: &Path) -> Option<Self> {
        let (file, _) = at_lock_path(place, open_there).ok()?;
        // Released at once if it was not held.
        let is_held = matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock));
        is_held.then(|| Self::read(file))
    }

    /// Returns the server that keeps an older state at `place`, or whose current state is at a
    /// place where the state at `place` keeps one of its `previous` older ones.
    pub(super) fn of_places_beside(place: &Path, previous: u32) -> Option<Self> {
        let older = (1..=previous).find_map(|number| {
            let mut older = place.as_os_str().to_owned();
            older.push(format!(".{number}"));
            Self::at(Path::new(&older))
        });
        older.or_else(|| {
            let number: u32 = place.extension()?.to_str()?.parse().ok()?;
            let holder = Self::at(&place.with_extension(""))?;
            (1..=holder.previous).contains(&number).then_some(holder)
        })
    }

    /// Formats the contents of a server's lock file.
    pub(super) fn text(previous: u32) -> String {
        format!("{}\n{previous}\n", std::process::id())
    }

    /// Parses [`text`](Self::text); other contents give an unknown holder.
    pub(super) fn read(mut file: File) -> Self {
        let mut text = String::new();
        // The text has two numbers of at most ten digits.
        let read = file.rewind().and_then(|()| file.take(24).read_to_string(&mut text));
        if read.is_err() {
            return Self::default();
        }
        let mut lines = text.lines();
        let process = lines.next().and_then(|line| line.trim().parse().ok());
        let previous = lines.next().and_then(|line| line.trim().parse().ok()).unwrap_or(0);
        Self { process, previous }
    }
}

impl fmt::Display for StateHolder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.process {
            Some(process) => write!(f, "another server (process {process})"),
            None => f.write_str("another server"),
        }
    }
}
