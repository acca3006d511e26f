//! The prefix of an interpreter, by its path, its links and the files above it.

use std::{
    fs,
    path::{Path, PathBuf},
    str::FromStr as _,
};

use pep440_rs::Version;

/// Links of an interpreter that are followed.
const LINKS: usize = 16;

/// The folder whose packages an interpreter would import, and its MAJOR.MINOR where its name or that
/// of a link target tells it.
pub(super) fn prefix(executable: &Path) -> Option<(PathBuf, Option<Version>)> {
    let mut version = None;
    let mut at = std::path::absolute(executable).ok()?;
    for _ in 0..LINKS {
        version = version.or_else(|| number(&at));
        let folder = at.parent()?;
        let above = folder.parent()?;
        for candidate in [folder, above] {
            if candidate.join("pyvenv.cfg").is_file() || candidate.join("conda-meta").is_dir() {
                return Some((candidate.to_owned(), None));
            }
        }
        match fs::read_link(&at) {
            Ok(target) => at = folder.join(target),
            Err(_) => return at.is_file().then(|| (above.to_owned(), version)),
        }
    }
    None
}

/// The version in a name such as `python3.12`.
fn number(executable: &Path) -> Option<Version> {
    let number = executable.file_name()?.to_str()?.strip_prefix("python")?;
    Version::from_str(number).ok().filter(|version| version.release().len() == 2)
}
