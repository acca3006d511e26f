//! Finds `serdes.toml`.

use std::{
    env,
    path::{Path, PathBuf},
};

/// The name of the file.
pub(super) const NAME: &str = "serdes.toml";

/// Returns the file in the working directory or the nearest one above it, as a path relative to the
/// working directory.
pub(super) fn nearest() -> Option<PathBuf> {
    above(&env::current_dir().ok()?)
}

fn above(directory: &Path) -> Option<PathBuf> {
    let mut relative = PathBuf::new();
    for folder in directory.ancestors() {
        if folder.join(NAME).is_file() {
            return Some(relative.join(NAME));
        }
        relative.push("..");
    }
    None
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn the_nearest_file_above_is_found() {
        let top = tempfile::tempdir().unwrap();
        let deep = top.path().join("a/b");
        fs::create_dir_all(&deep).unwrap();
        fs::write(top.path().join(NAME), "").unwrap();
        assert_eq!(above(&deep), Some(PathBuf::from("../../serdes.toml")));
        fs::write(deep.join(NAME), "").unwrap();
        assert_eq!(above(&deep), Some(PathBuf::from(NAME)));
    }
}
