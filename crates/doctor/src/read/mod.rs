//! Reads environments: folders of packages and lock files. Nothing is run or imported.

mod choices;
mod conda_export;
mod conda_meta;
mod error;
mod forks;
mod guard;
mod installed;
mod library;
mod lock;
mod locked;
mod metadata;
mod plugins;
mod python;
mod requirements;
mod roots;
mod verify;

use std::path::Path;

pub use self::error::ReadError;
pub(crate) use self::metadata::version as version_in;
use crate::environment::Environment;

impl Environment {
    /// Reads the environments at a path: a folder or a lock file. A root with several Pythons, and
    /// a lock with several forks, yield several environments.
    ///
    /// # Errors
    /// [`ReadError`] if the path is not an environment, cannot be read, or is damaged.
    pub fn read(path: impl AsRef<Path>) -> Result<Vec<Self>, ReadError> {
        let path = path.as_ref();
        let system = |source| ReadError::System { path: path.to_owned(), source };
        if std::fs::metadata(path).map_err(system)?.is_dir() {
            roots::read(path)
        } else {
            lock::read(path)
        }
    }

    /// Reads the environment of an interpreter, from its path and the files beside it.
    ///
    /// # Errors
    /// As [`read`](Self::read).
    pub fn of_python(executable: impl AsRef<Path>) -> Result<Vec<Self>, ReadError> {
        let executable = executable.as_ref();
        let none = || ReadError::NoEnvironment { path: executable.to_owned() };
        let (prefix, python) = python::prefix(executable).ok_or_else(none)?;
        let mut environments = Self::read(prefix)?;
        // A prefix such as `/usr` may have several Pythons.
        if let Some(python) = python {
            let minor = crate::package::minor(&python.version);
            environments.retain(|environment| {
                let is_it = |own| {
                    crate::package::minor(own) == minor
                        && environment.free_threaded == python.free_threaded
                };
                environment.python.as_ref().is_none_or(is_it)
            });
        }
        if environments.is_empty() { Err(none()) } else { Ok(environments) }
    }

    /// Returns true if a path has the form of an environment.
    #[must_use]
    pub fn is_at(path: impl AsRef<Path>) -> bool {
        let path = path.as_ref();
        if path.is_dir() { roots::is_environment(path) } else { lock::is_lock(path) }
    }
}
