//! The prefix of an interpreter, by its path, its links and the files above it.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Links of an interpreter that are followed.
const LINKS: usize = 16;

/// The folder whose packages an interpreter would import.
pub(super) fn prefix(executable: &Path) -> Option<PathBuf> {
    let mut at = std::path::absolute(executable).ok()?;
    for _ in 0..LINKS {
        let folder = at.parent()?;
        let above = folder.parent()?;
        for candidate in [folder, above] {
            if candidate.join("pyvenv.cfg").is_file() || candidate.join("conda-meta").is_dir() {
                return Some(candidate.to_owned());
            }
        }
        match fs::read_link(&at) {
            Ok(target) => at = folder.join(target),
            Err(_) => return at.is_file().then(|| above.to_owned()),
        }
    }
    None
}
