//! Partial files: their names, their creation, and the removal of leftovers of dead processes.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File, OpenOptions, TryLockError},
    hash::{BuildHasher, RandomState},
    io,
    path::{Path, PathBuf},
};

use super::{Error, crc32c, place::TargetPlace};

const SUFFIX: &str = ".partial";
/// Attempts to create a file, after which creation fails: names have 64 random bits, so only
/// another process that removes every new file gets this far.
const MOST_ATTEMPTS: usize = 100;

/// A partial file, open and locked.
#[derive(Debug)]
pub(super) struct Partial {
    pub(super) file: File,
    pub(super) path: PathBuf,
}

impl Partial {
    /// Creates a partial file for a place, readable by its owner only; `target` is for messages.
    pub(super) fn create(place: &TargetPlace, target: &Path) -> Result<Self, Error> {
        for _ in 0..MOST_ATTEMPTS {
            let path = new_path(place);
            let file = match create_new(&path, 0o600) {
                Ok(file) => file,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(Error::new("create", target, error)),
            };
            // Another saver may have taken the file for a leftover before it was locked.
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => continue,
                // Without locks in the file system leftovers stay; nothing else changes.
                Ok(()) | Err(TryLockError::Error(_)) => {}
            }
            if path.exists() {
                return Ok(Self { file, path });
            }
        }
        let reason = "others take away every file that is made for it";
        Err(Error::new("create", target, io::Error::other(reason)))
    }

    /// Returns the mode that a new file of this name gets from the umask and the directory: creates
    /// a file, reads its mode and removes it, since a process cannot read its umask without
    /// changing it.
    #[cfg(unix)]
    pub(super) fn default_mode(place: &TargetPlace, target: &Path) -> Result<u32, Error> {
        use std::os::unix::fs::PermissionsExt;

        let failed = |error| Error::new("create", target, error);
        let path = new_path(place);
        let file = create_new(&path, 0o666).map_err(failed)?;
        let mode = file.metadata().map(|metadata| metadata.permissions().mode());
        let removed = fs::remove_file(&path);
        let mode = mode.map_err(failed)?;
        match removed {
            // Another saver may have removed the file as a leftover.
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(failed(error)),
            _ => Ok(mode & 0o777),
        }
    }
}

/// Returns an unused name for a partial file of the target.
pub(super) fn new_path(place: &TargetPlace) -> PathBuf {
    let random = RandomState::new().hash_one(std::process::id());
    let mut path = PathBuf::new();
    // The target's name may already have the maximum length.
    for known_as in names_in_partials(&place.name) {
        let mut name = OsString::from(".");
        name.push(known_as);
        name.push(format!(".{random:016x}{SUFFIX}"));
        path = place.directory.join(name);
        if fs::symlink_metadata(&path)
            .is_err_and(|error| error.kind() == io::ErrorKind::InvalidFilename)
        {
            continue;
        }
        break;
    }
    path
}

/// Returns the prefixes for the names of a target's partial files: the target's name, and its
/// checksum for use where the name would be too long.
fn names_in_partials(name: &OsStr) -> [OsString; 2] {
    let sum = crc32c(name.as_encoded_bytes());
    [name.to_owned(), format!("long-{sum:08x}").into()]
}

/// Creates a file; fails if the path exists, even as a dangling link.
fn create_new(path: &Path, mode: u32) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, mode);
    #[cfg(not(unix))]
    let _ = mode;
    options.open(path)
}

/// Removes the target's partial files whose owner is dead. Failures do not affect the save.
pub(super) fn remove_leftovers(place: &TargetPlace) {
    dead_partials(&place.directory, &place.name).for_each(DeadPartial::remove);
}

/// Removes the partial files that dead savers of `target` left beside it, and those of its other
/// files, whose names begin with the target's name. Partial files of live savers stay. Failures are
/// ignored: the next save of the target tries again.
///
/// The notes of a set of shards stay: with them the next save of the set finds the complete files
/// that a dead saver left.
pub fn remove_leftovers_of(target: &Path) {
    let Ok(place) = TargetPlace::of(target) else { return };
    remove_leftovers(&place);
    let stem = Path::new(&place.name).file_stem().unwrap_or(&place.name).as_encoded_bytes();
    let Ok(entries) = fs::read_dir(&place.directory) else { return };
    for entry in entries.flatten() {
        let found = entry.file_name();
        let of = named_in(found.as_encoded_bytes());
        if of.is_some_and(|of| of.starts_with(stem) && !of.ends_with(b".index.json")) {
            remove_if_dead(&entry.path());
        }
    }
}

/// A partial file whose owner is dead, locked for the life of this value.
#[derive(Debug)]
pub struct DeadPartial {
    /// The open file.
    pub file: File,
    path: PathBuf,
}

impl DeadPartial {
    /// Opens a partial file if its owner is dead. Returns `None` for a path that is not a regular
    /// file: no saver created it.
    fn at(path: PathBuf) -> Option<Self> {
        let file = open_existing(&path).ok()?;
        file.try_lock().is_ok().then_some(Self { file, path })
    }

    /// Removes the file. It stays locked until it is gone: its owner may be about to lock it, and
    /// would take it for its own.
    pub fn remove(self) {
        let Self { file, path } = self;
        // Failures do not affect the save.
        let _ = fs::remove_file(path);
        drop(file);
    }
}

/// Returns the partial files of the named target in a directory whose owners are dead, one open at
/// a time. A directory that cannot be listed yields none.
pub fn dead_partials(
    directory: &Path,
    target: &OsStr,
) -> impl Iterator<Item = DeadPartial> + use<> {
    let names = names_in_partials(target);
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.filter_map(move |entry| {
        let found = entry.file_name();
        let of = named_in(found.as_encoded_bytes())?;
        let is_of_target = names.iter().any(|name| name.as_encoded_bytes() == of);
        if is_of_target { DeadPartial::at(entry.path()) } else { None }
    })
}

/// Returns the target's name for the name of a partial file; `None` for other names.
pub fn target_of(partial: &str) -> Option<&str> {
    named_in(partial.as_bytes()).and_then(|name| str::from_utf8(name).ok())
}

fn named_in(partial: &[u8]) -> Option<&[u8]> {
    let rest = partial.strip_prefix(b".")?.strip_suffix(SUFFIX.as_bytes())?;
    let (rest, random) = rest.split_at_checked(rest.len().checked_sub(16)?)?;
    let plain = random.iter().all(u8::is_ascii_hexdigit);
    rest.strip_suffix(b".").filter(|_| plain)
}

/// Removes a partial file whose owner is dead; returns true if the owner was dead. A path that is
/// not a regular file stays: no saver created it.
pub fn remove_if_dead(partial: &Path) -> bool {
    let dead = DeadPartial::at(partial.to_owned());
    let is_dead = dead.is_some();
    dead.into_iter().for_each(DeadPartial::remove);
    is_dead
}

/// Opens a file of any owner, without following a link and without blocking.
fn open_existing(path: &Path) -> io::Result<File> {
    // Opening a device may have effects; a swap after this check is caught below.
    if !fs::symlink_metadata(path)?.is_file() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    let mut options = OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    {
        use rustix::fs::OFlags;
        use std::os::unix::fs::OpenOptionsExt;

        options.custom_flags((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed());
    }
    let file = options.open(path)?;
    match file.metadata()?.is_file() {
        true => Ok(file),
        false => Err(io::ErrorKind::InvalidInput.into()),
    }
}
