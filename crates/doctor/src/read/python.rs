//! The prefix of an interpreter, by its path, its links and the files above it.

use std::{
    fs,
    path::{Path, PathBuf},
    str::FromStr as _,
};

use pep440_rs::Version;

/// A Python version, from the name of a folder or an interpreter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Python {
    /// MAJOR.MINOR.
    pub(super) version: Version,
    /// True if it is a build without the global interpreter lock.
    pub(super) free_threaded: bool,
}

impl Python {
    /// Parses a name such as `python3.12`, `python3.13t` or `python3.13t.exe`; `None` if it has no
    /// MAJOR.MINOR.
    pub(super) fn named(name: &str) -> Option<Self> {
        let name = name.strip_suffix(".exe").unwrap_or(name).strip_prefix("python")?;
        let number = name.strip_suffix('t');
        let version = Version::from_str(number.unwrap_or(name)).ok()?;
        let free_threaded = number.is_some();
        (version.release().len() == 2).then_some(Self { version, free_threaded })
    }
}

/// Maximum number of links of an interpreter that are followed.
const LINKS: usize = 16;

/// Returns the prefix whose packages an interpreter would import, and its Python version if its
/// name or that of a link target has one.
pub(super) fn prefix(executable: &Path) -> Option<(PathBuf, Option<Python>)> {
    let mut python = None;
    let mut at = std::path::absolute(executable).ok()?;
    for _ in 0..LINKS {
        python = python.or_else(|| Python::named(at.file_name()?.to_str()?));
        let folder = at.parent()?;
        let above = folder.parent()?;
        for candidate in [folder, above] {
            if candidate.join("pyvenv.cfg").is_file() || candidate.join("conda-meta").is_dir() {
                return Some((candidate.to_owned(), None));
            }
        }
        match fs::read_link(&at) {
            Ok(target) => at = folder.join(target),
            Err(_) => return at.is_file().then(|| (above.to_owned(), python)),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_free_threaded_pythons() {
        let of = |name| Python::named(name).map(|one| (one.version.to_string(), one.free_threaded));
        assert_eq!(of("python3.13"), Some(("3.13".to_owned(), false)));
        assert_eq!(of("python3.13t"), Some(("3.13".to_owned(), true)));
        assert_eq!(of("python3.14t.exe"), Some(("3.14".to_owned(), true)));
        for name in ["python3", "python", "python3t", "pythont", "python3.13d", "pypy3.11"] {
            assert_eq!(of(name), None, "{name}");
        }
    }
}
