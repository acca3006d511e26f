//! Patterns of file names, which can name the files of a V1 checkpoint.

use std::path::{Path, PathBuf};

use serdes_files::Tree;

/// Returns true if a path is a pattern of file names, as used for the shards of a V1 checkpoint. A
/// bracket that is not closed does not make a pattern.
pub fn is_pattern(path: &Path) -> bool {
    let text = path.as_os_str().to_string_lossy();
    text.contains(['*', '?', '[']) && glob::Pattern::new(&text).is_ok()
}

/// Returns the paths that a pattern matches, sorted by name.
pub fn matching(tree: &dyn Tree, pattern: &Path) -> Option<Vec<PathBuf>> {
    if tree.is_of_system(pattern) {
        return Some(glob::glob(pattern.to_str()?).ok()?.flatten().collect());
    }
    // Prefixes in a store are not matched: there may be very many keys below them.
    let name = glob::Pattern::new(pattern.file_name()?.to_str()?).ok()?;
    let mut found = tree.list(pattern.parent()?).unwrap_or_default();
    found.retain(|path| {
        path.file_name().and_then(|name| name.to_str()).is_some_and(|text| name.matches(text))
    });
    found.sort_unstable();
    Some(found)
}
