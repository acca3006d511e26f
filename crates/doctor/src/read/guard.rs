//! Files below a root: no link is followed out of it, and none is read beyond a limit.

use std::{
    fs::{self, File},
    io::Read as _,
    path::{Component, Path, PathBuf},
};

/// Bytes of one file of metadata.
pub(super) const METADATA_LIMIT: u64 = 1 << 20;
/// Entries of one folder.
const ENTRIES: usize = 200_000;

/// A folder, and everything below it.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    /// The folder, by its path without links.
    base: PathBuf,
}

impl Guard {
    /// Guards a folder.
    pub(super) fn new(base: &Path) -> Option<Self> {
        Some(Self { base: fs::canonicalize(base).ok()? })
    }

    /// Returns the path without links, if it is below the folder.
    pub(super) fn inside(&self, path: &Path) -> Option<PathBuf> {
        fs::canonicalize(path).ok().filter(|path| path.starts_with(&self.base))
    }

    /// Returns the path without links of a regular file below the folder: opening a pipe waits for
    /// its writer.
    pub(super) fn file(&self, path: &Path) -> Option<PathBuf> {
        self.inside(path).filter(|path| path.is_file())
    }

    /// Returns the text of a regular file of at most `limit` bytes; wrong UTF-8 is replaced.
    pub(super) fn text(&self, path: &Path, limit: u64) -> Option<String> {
        let path = self.inside(path)?;
        let metadata = fs::metadata(&path).ok()?;
        if !metadata.is_file() || metadata.len() > limit {
            return None;
        }
        let mut bytes = Vec::new();
        File::open(path).ok()?.take(limit).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// Returns the names of the entries of a folder, sorted.
    pub(super) fn names(&self, folder: &Path) -> Vec<String> {
        let Some(folder) = self.inside(folder) else { return Vec::new() };
        let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
        let names = entries
            .flatten()
            .take(ENTRIES)
            .filter_map(|entry| entry.file_name().into_string().ok());
        let mut names: Vec<String> = names.collect();
        names.sort_unstable();
        names
    }

    /// Returns the folders between the guarded one and one below it.
    pub(super) fn depth(&self, folder: &Path) -> usize {
        let inside = self.inside(folder);
        let inside = inside.as_deref().and_then(|path| path.strip_prefix(&self.base).ok());
        inside.map_or(0, |inside| inside.components().count())
    }
}

/// Tells whether a relative path stays within as many folders above it, by its text.
pub(super) fn stays(mut depth: usize, relative: &str) -> bool {
    for component in Path::new(relative).components() {
        match component {
            Component::ParentDir => match depth.checked_sub(1) {
                Some(less) => depth = less,
                None => return false,
            },
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::RootDir | Component::Prefix(_) => return false,
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_that_lead_above_the_guarded_folder_do_not_stay() {
        assert!(stays(2, "../../bin/x"));
        assert!(!stays(2, "../../../bin/x"));
        assert!(!stays(2, "a/../../../../x"));
        assert!(!stays(2, "/etc/passwd"));
    }
}
