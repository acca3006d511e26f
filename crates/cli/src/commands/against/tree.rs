//! The earlier state of paths: a folder, or a revision that is copied to a temporary one.

use std::{
    env, fs,
    fs::File,
    io::{self, Write},
    path::{Component, Path, PathBuf},
};

use tempfile::TempDir;

use super::{
    git::{Blobs, Revision},
    listing::{Entry, EntryKind, belongs, entries},
};
use crate::{
    failure::Failure,
    terminal::{count, shown, shown_path},
};

/// Maximum size in bytes, and number, of a revision's files in the temporary folder.
const MOST_BYTES: u64 = 64 << 30;
const MOST_FILES: u64 = 1 << 20;
/// Maximum size in bytes of a Git LFS pointer.
const POINTER: u64 = 1024;

/// The earlier state.
pub(super) struct Earlier {
    /// Path of each earlier state; `None` if there was none.
    pub(super) places: Vec<Option<PathBuf>>,
    /// Notes for the user.
    pub(super) notes: Vec<String>,
    /// Temporary folder, removed on drop.
    _folder: Option<TempDir>,
}

impl Earlier {
    /// Returns the state of these paths in a revision or a folder.
    pub(super) fn of(against: &str, paths: &[PathBuf]) -> Result<Self, Failure> {
        let directory = env::current_dir().map_err(Failure::of)?;
        let is_path = against.starts_with(['.', '/']) || against.ends_with('/');
        if !is_path && let Some(revision) = Revision::named(against, &directory)? {
            return Self::of_revision(&revision, paths, &directory);
        }
        let folder = Path::new(against);
        if folder.is_dir() {
            return Ok(Self::of_folder(folder, paths));
        }
        let found = shown(against).to_string();
        Err(Failure::new(format_args!(
            "--against {found}: neither a revision of git here nor a folder; expected one of them, as in --against origin/main"
        )))
    }

    /// Returns a folder that replaces the working directory or the only path.
    fn of_folder(folder: &Path, paths: &[PathBuf]) -> Self {
        let inside = |path: &PathBuf| {
            let place = folder.join(path);
            (path.is_relative() && place.exists()).then_some(place)
        };
        let mut places: Vec<_> = paths.iter().map(inside).collect();
        if let [place @ None] = &mut places[..] {
            *place = Some(folder.to_owned());
        }
        Self { places, notes: Vec::new(), _folder: None }
    }

    fn of_revision(
        revision: &Revision,
        paths: &[PathBuf],
        directory: &Path,
    ) -> Result<Self, Failure> {
        let wanted: Vec<PathBuf> = paths
            .iter()
            .map(|path| from_top(path, revision, directory))
            .collect::<Result<_, _>>()?;
        let listing = revision.list()?;
        let is_directory: Vec<bool> = wanted
            .iter()
            .map(|path| {
                path.as_os_str().is_empty()
                    || entries(&listing).any(|one| one.path != *path && one.path.starts_with(path))
            })
            .collect();
        let folder =
            tempfile::Builder::new().prefix("serdes-against-").tempdir().map_err(|error| {
                Failure::new(format_args!("cannot make a temporary folder: {error}"))
            })?;
        let mut copy = Copy::new(revision, folder.path())?;
        for entry in entries(&listing) {
            let is_wanted = wanted
                .iter()
                .zip(&is_directory)
                .any(|(path, is_directory)| belongs(&entry.path, path, *is_directory));
            if is_wanted {
                copy.take(&entry)?;
            }
        }
        let places = wanted.iter().zip(&is_directory).map(|(path, is_directory)| {
            let place = folder.path().join(path);
            let is_there = *is_directory && place.is_dir();
            // The prefix of a checkpoint is not a file itself.
            let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
            let is_prefix = || {
                let beside = place.parent().and_then(|folder| fs::read_dir(folder).ok());
                let beginning = format!("{}.", name.unwrap_or_default());
                beside
                    .into_iter()
                    .flatten()
                    .flatten()
                    .any(|entry| entry.file_name().to_string_lossy().starts_with(&beginning))
            };
            (is_there || place.is_file() || is_prefix()).then_some(place)
        });
        Ok(Self { places: places.collect(), notes: copy.notes(), _folder: Some(folder) })
    }
}

/// Returns a path relative to the root of the work tree.
fn from_top(path: &Path, revision: &Revision, directory: &Path) -> Result<PathBuf, Failure> {
    let whole = directory.join(path);
    let whole = whole.canonicalize().unwrap_or_else(|_| lexically(&whole));
    let top = revision.top.canonicalize().unwrap_or_else(|_| revision.top.clone());
    let below = whole.strip_prefix(&top).map(Path::to_owned);
    below.map_err(|_| {
        Failure::new(format_args!(
            "{} is not in the work tree {}; --against a revision is about what is in it",
            shown_path(path),
            shown_path(&top)
        ))
    })
}

/// Removes `.` and `..` from a path.
fn lexically(path: &Path) -> PathBuf {
    let mut found = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                found.pop();
            }
            other => found.push(other),
        }
    }
    found
}

/// Copies files of a revision to a folder.
struct Copy<'r> {
    revision: &'r Revision,
    folder: &'r Path,
    blobs: Blobs,
    bytes: u64,
    files: u64,
    links: u64,
    submodules: u64,
    /// Git LFS pointers whose contents are not in the repository.
    pointers: Vec<PathBuf>,
}

impl<'r> Copy<'r> {
    fn new(revision: &'r Revision, folder: &'r Path) -> Result<Self, Failure> {
        let blobs = revision.reader()?;
        let pointers = Vec::new();
        Ok(Self { revision, folder, blobs, bytes: 0, files: 0, links: 0, submodules: 0, pointers })
    }

    fn take(&mut self, entry: &Entry) -> Result<(), Failure> {
        match entry.kind {
            EntryKind::Link => self.links += 1,
            EntryKind::Submodule => self.submodules += 1,
            EntryKind::File => {
                self.files += 1;
                self.bytes = self.bytes.saturating_add(entry.size);
                if self.files > MOST_FILES || self.bytes > MOST_BYTES {
                    return Err(Failure::new(
                        "the revision has more than 64 GiB or 1,048,576 files at these paths; name fewer of them",
                    ));
                }
                self.copy(entry).map_err(|error| {
                    Failure::new(format_args!(
                        "cannot take {} out of the revision: {error}",
                        shown_path(&entry.path)
                    ))
                })?;
            }
        }
        Ok(())
    }

    fn copy(&mut self, entry: &Entry) -> io::Result<()> {
        let place = self.folder.join(&entry.path);
        if let Some(folder) = place.parent() {
            fs::create_dir_all(folder)?;
        }
        if entry.size >= POINTER {
            let mut file = File::create_new(&place)?;
            return self.blobs.copy(&entry.identifier, entry.size, &mut file);
        }
        let mut bytes = Vec::new();
        self.blobs.copy(&entry.identifier, entry.size, &mut bytes)?;
        if let Some((identifier, size)) = pointer(&bytes) {
            match self.object(&identifier, size) {
                Some(object) => {
                    self.bytes = self.bytes.saturating_add(size);
                    return fs::hard_link(&object, &place)
                        .or_else(|_| fs::copy(&object, &place).map(|_| ()));
                }
                None => self.pointers.push(entry.path.clone()),
            }
        }
        File::create_new(&place)?.write_all(&bytes)
    }

    /// Returns the contents for a pointer, if the repository has them.
    fn object(&self, identifier: &str, size: u64) -> Option<PathBuf> {
        let (first, second) = (identifier.get(..2)?, identifier.get(2..4)?);
        let place = self.revision.objects.join("lfs/objects").join(first).join(second);
        let place = place.join(identifier);
        let found = fs::metadata(&place).ok()?;
        (found.is_file() && found.len() == size).then_some(place)
    }

    fn notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        if let Some(first) = self.pointers.first() {
            let files = count(self.pointers.len() as u64, "pointer");
            notes.push(format!(
                "{files} of Git LFS in the revision without content here, {} among them; `git lfs fetch` brings it",
                shown_path(first)
            ));
        }
        if self.links > 0 {
            notes.push(format!("left out of the revision: {}", count(self.links, "link")));
        }
        if self.submodules > 0 {
            notes
                .push(format!("left out of the revision: {}", count(self.submodules, "submodule")));
        }
        notes
    }
}

/// Parses the identifier and size in a Git LFS pointer.
fn pointer(bytes: &[u8]) -> Option<(String, u64)> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines = text.lines();
    lines.next().filter(|line| *line == "version https://git-lfs.github.com/spec/v1")?;
    let mut found = (None, None);
    for line in lines {
        match line.split_once(' ') {
            Some(("oid", identifier)) => found.0 = identifier.strip_prefix("sha256:"),
            Some(("size", size)) => found.1 = size.parse().ok(),
            _ => {}
        }
    }
    let identifier = found
        .0
        .filter(|one| one.len() == 64 && one.bytes().all(|byte| byte.is_ascii_hexdigit()))?;
    Some((identifier.to_owned(), found.1?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_of_git_lfs_is_told_by_its_lines() {
        let identifier = "a".repeat(64);
        let text = format!(
            "version https://git-lfs.github.com/spec/v1\noid sha256:{identifier}\nsize 12\n"
        );
        assert_eq!(pointer(text.as_bytes()), Some((identifier, 12)));
        for other in [
            "",
            "version 1\nsize 12\n",
            "version https://git-lfs.github.com/spec/v1\noid sha256:../x\nsize 1\n",
        ] {
            assert_eq!(pointer(other.as_bytes()), None, "{other}");
        }
    }

    #[test]
    fn a_path_is_taken_without_dots() {
        assert_eq!(lexically(Path::new("/a/./b/../c")), Path::new("/a/c"));
    }
}
