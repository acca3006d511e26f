//! Files that appear whole or not at all.
//!
//! The bytes go into a partial file beside the target; only [`Replacement::finish`] gives it the
//! target's name. The owner of a partial file holds a lock on it for as long as it lives, so that
//! the next save can tell those of dead owners from those of live ones. This part must never know
//! what the bytes mean.

use std::{
    fs::{self, File, OpenOptions, TryLockError},
    hash::{BuildHasher, RandomState},
    io,
    path::{Path, PathBuf},
    sync::atomic::Ordering,
    time::{Duration, Instant},
};

use super::{
    Error,
    direct::{DirectSink, StillDirect},
    output::Sink,
    sink::FileSink,
};

const SUFFIX: &str = ".partial";

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

/// A file that is being written under a partial name and replaces its target at the end.
#[derive(Debug)]
pub(crate) struct Replacement {
    file: File,
    partial: PathBuf,
    target: PathBuf,
    /// Set by a sink that goes past the system's cache.
    still_direct: Option<StillDirect>,
    finished: bool,
}

impl Replacement {
    /// Removes what dead savers of `target` left, then opens a partial file for it.
    pub(crate) fn create(target: &Path) -> Result<Self, Error> {
        if target.file_name().is_none() {
            return Err(Error::io("create", target, io::ErrorKind::InvalidFilename.into()));
        }
        if let Ok(found) = fs::metadata(target) {
            // A rename over a directory would fail only after all the work; one over a device or a
            // pipe would take it away from all who use it.
            if found.is_dir() {
                return Err(Error::io("create", target, io::ErrorKind::IsADirectory.into()));
            }
            if !found.is_file() {
                let reason = "it is a pipe or a device; expected a file or a new name";
                let error = io::Error::new(io::ErrorKind::InvalidInput, reason);
                return Err(Error::io("replace", target, error));
            }
        }
        let target = resolve(target).map_err(|error| Error::io("create", target, error))?;
        let Some(name) = target.file_name().and_then(|name| name.to_str()) else {
            return Err(Error::io("create", &target, io::ErrorKind::InvalidFilename.into()));
        };
        remove_leftovers(&directory(&target), name);
        loop {
            let random = RandomState::new().hash_one(std::process::id());
            let partial =
                target.with_file_name(format!(".{}.{random:016x}{SUFFIX}", file_name(&target)));
            let opened = OpenOptions::new().read(true).write(true).create_new(true).open(&partial);
            let file = match opened {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(Error::io("create", &partial, error)),
            };
            // Between the two steps another saver may have taken the file for a leftover.
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => continue,
                // A file system without locks: then leftovers stay, and nothing else changes.
                Ok(()) | Err(TryLockError::Error(_)) => {}
            }
            if partial.exists() {
                return Ok(Self { file, partial, target, still_direct: None, finished: false });
            }
        }
    }

    /// The open file.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }

    /// The one way of its bytes into the file, front to back; past the system's cache if `direct`
    /// says so and the file system can.
    pub(super) fn sink(&mut self, sync: Sync, direct: bool) -> Result<Sink, Error> {
        let file = self.file.try_clone();
        let file = file.map_err(|error| Error::io("create", &self.target, error))?;
        let cached = FileSink::new(file, sync);
        if !direct {
            return Ok(Box::new(cached));
        }
        Ok(match DirectSink::open(&self.file, &self.partial, cached) {
            Ok((sink, still_direct)) => {
                self.still_direct = Some(still_direct);
                Box::new(sink)
            }
            Err(cached) => Box::new(cached),
        })
    }

    /// Whether the sink went past the system's cache, up to here.
    pub(super) fn is_direct(&self) -> bool {
        self.still_direct.as_ref().is_some_and(|direct| direct.load(Ordering::Relaxed))
    }

    /// Takes the bytes to the disk as `sync` says and gives them the target's name; answers how
    /// long that took.
    pub(crate) fn finish(mut self, sync: Sync) -> Result<Duration, Error> {
        let begin = Instant::now();
        if sync == Sync::Data {
            self.file.sync_data().map_err(|error| Error::io("sync", &self.partial, error))?;
        }
        if let Ok(old) = fs::metadata(&self.target) {
            // The successor is as readable as the file it replaces.
            let _ = self.file.set_permissions(old.permissions());
        }
        fs::rename(&self.partial, &self.target)
            .map_err(|error| Error::io("rename", &self.target, error))?;
        self.finished = true;
        if sync == Sync::Data {
            sync_directory(&directory(&self.target))?;
        }
        Ok(begin.elapsed())
    }
}

impl Drop for Replacement {
    fn drop(&mut self) {
        if !self.finished {
            // Nothing can be reported from here; the next save tries again.
            let _ = fs::remove_file(&self.partial);
        }
    }
}

/// Links that are followed before they count as a loop, as on Linux.
const MOST_LINKS: usize = 40;

/// A link is replaced where it points, not where it stands, also if nothing is there yet.
fn resolve(target: &Path) -> io::Result<PathBuf> {
    match fs::canonicalize(target) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        resolved => return resolved,
    }
    let mut target = target.to_path_buf();
    for _ in 0..MOST_LINKS {
        match fs::read_link(&target) {
            Ok(next) => target = directory(&target).join(next),
            Err(_) => return Ok(target),
        }
    }
    Err(io::Error::other("too many links lead to it"))
}

fn file_name(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn directory(path: &Path) -> PathBuf {
    match path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent.to_path_buf(),
        _ => PathBuf::from("."),
    }
}

/// A new name is safe only once its directory is on the disk.
fn sync_directory(path: &Path) -> Result<(), Error> {
    if cfg!(unix) {
        File::open(path)
            .and_then(|directory| directory.sync_all())
            .map_err(|error| Error::io("sync", path, error))?;
    }
    Ok(())
}

/// Removes partial files of `name` whose owner is dead. Failures are no concern of the save.
fn remove_leftovers(directory: &Path, name: &str) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        if entry.file_name().to_str().and_then(target_of) == Some(name) {
            remove_if_dead(&entry.path());
        }
    }
}

/// The name that a partial file is to get; `None` if the name is none of a partial file.
pub(super) fn target_of(partial: &str) -> Option<&str> {
    let rest = partial.strip_prefix('.')?.strip_suffix(SUFFIX)?;
    let (name, random) = rest.rsplit_once('.')?;
    let plain = random.len() == 16 && random.bytes().all(|byte| byte.is_ascii_hexdigit());
    plain.then_some(name)
}

/// Removes a partial file if its owner is dead; whether it is.
pub(super) fn remove_if_dead(partial: &Path) -> bool {
    let dead = File::open(partial).is_ok_and(|file| file.try_lock().is_ok());
    if dead {
        let _ = fs::remove_file(partial);
    }
    dead
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::*;

    fn names(directory: &Path) -> Vec<String> {
        let mut names: Vec<_> =
            fs::read_dir(directory).unwrap().map(|e| file_name(&e.unwrap().path())).collect();
        names.sort();
        names
    }

    #[test]
    fn the_target_appears_at_the_end_only() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a.sds");
        fs::write(&target, "old").unwrap();
        let replacement = Replacement::create(&target).unwrap();
        replacement.file().write_all(b"new").unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"old");
        replacement.finish(Sync::Data).unwrap();
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(names(directory.path()), ["a.sds"]);
    }

    #[test]
    fn a_dropped_replacement_leaves_nothing() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a.sds");
        drop(Replacement::create(&target).unwrap());
        assert!(names(directory.path()).is_empty());
    }

    #[test]
    fn leftovers_of_the_dead_go_and_those_of_the_living_stay() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("a.sds");
        let dead = directory.path().join(".a.sds.0123456789abcdef.partial");
        let foreign = directory.path().join(".a.sds.mine.partial");
        fs::write(&dead, "").unwrap();
        fs::write(&foreign, "").unwrap();
        let first = Replacement::create(&target).unwrap();
        let second = Replacement::create(&target).unwrap();
        assert!(!dead.exists());
        assert!(foreign.exists());
        assert!(first.partial.exists());
        second.finish(Sync::None).unwrap();
        first.finish(Sync::None).unwrap();
        assert_eq!(names(directory.path()), [".a.sds.mine.partial", "a.sds"]);
    }

    #[test]
    fn a_directory_is_no_target() {
        let directory = tempfile::tempdir().unwrap();
        assert!(Replacement::create(directory.path()).is_err());
    }

    #[cfg(unix)]
    #[test]
    fn what_is_no_file_is_no_target_and_stays() {
        use std::os::unix::{fs::FileTypeExt, net::UnixListener};

        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("socket");
        let _listener = UnixListener::bind(&target).unwrap();
        let error = Replacement::create(&target).unwrap_err();
        assert!(error.to_string().contains("a pipe or a device"), "{error}");
        assert!(fs::metadata(&target).unwrap().file_type().is_socket());
        assert_eq!(names(directory.path()), ["socket"]);
    }

    #[cfg(unix)]
    #[test]
    fn links_are_replaced_where_they_point() {
        use std::os::unix::fs::symlink;

        let directory = tempfile::tempdir().unwrap();
        let place = |name: &str| directory.path().join(name);
        fs::create_dir(place("deep")).unwrap();
        symlink("second", place("first")).unwrap();
        symlink("deep/a.sds", place("second")).unwrap();
        symlink("loop", place("loop")).unwrap();
        // Twice: the file is not there, and is there. What a dead saver left goes either time.
        for _ in 0..2 {
            let dead = place("deep/.a.sds.0123456789abcdef.partial");
            fs::write(&dead, "").unwrap();
            Replacement::create(&place("first")).unwrap().finish(Sync::None).unwrap();
            assert!(place("first").is_symlink() && place("second").is_symlink());
            assert_eq!(names(&place("deep")), ["a.sds"]);
        }
        assert!(Replacement::create(&place("loop")).is_err());
        assert!(place("loop").is_symlink());
        symlink("nowhere/a.sds", place("third")).unwrap();
        assert!(Replacement::create(&place("third")).is_err());
    }
}
