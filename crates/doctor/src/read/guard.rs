//! Confines reads to files below a root, follows no link out of it, and limits their size.

use std::{
    fs::{self, File},
    io::Read as _,
    path::{Component, Path, PathBuf},
};

/// Maximum size of a metadata file in bytes.
pub(super) const METADATA_LIMIT: u64 = 1 << 20;
/// Maximum number of entries of a folder.
const ENTRIES: usize = 200_000;

/// A folder to which reads are confined.
#[derive(Clone, Debug)]
pub(super) struct Guard {
    /// Path of the folder without links.
    base: PathBuf,
}

impl Guard {
    /// Creates a guard for a folder.
    pub(super) fn new(base: &Path) -> Option<Self> {
        Some(Self { base: fs::canonicalize(base).ok()? })
    }

    /// Resolves the links of a path; `None` if it is not below the folder.
    pub(super) fn inside(&self, path: &Path) -> Option<PathBuf> {
        fs::canonicalize(path).ok().filter(|path| path.starts_with(&self.base))
    }

    /// Resolves the links of a regular file below the folder; other kinds are excluded, because
    /// opening a pipe blocks.
    pub(super) fn file(&self, path: &Path) -> Option<PathBuf> {
        self.inside(path).filter(|path| path.is_file())
    }

    /// Reads the text of a regular file of at most `limit` bytes; invalid UTF-8 is replaced.
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

    /// Returns the number of folders between the root and a folder below it.
    pub(super) fn depth(&self, folder: &Path) -> usize {
        let inside = self.inside(folder);
        let inside = inside.as_deref().and_then(|path| path.strip_prefix(&self.base).ok());
        inside.map_or(0, |inside| inside.components().count())
    }
}

/// Returns true if a relative path leaves at most `depth` folders upwards, by its text.
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
