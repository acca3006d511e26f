//! Copies of parts of this repository, for tests that build crates outside of the workspace.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// The root of the repository.
pub(crate) fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

/// Copies a directory and what is in it, but for what cargo built there.
pub(crate) fn copy_directory(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.path().is_file() {
            fs::copy(entry.path(), target).unwrap();
        } else if entry.file_name() != "target" {
            copy_directory(&entry.path(), &target);
        }
    }
}
