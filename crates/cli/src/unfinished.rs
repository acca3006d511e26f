//! Output files that appear completely or not at all.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use crate::{failure::Failure, terminal::shown_path};

/// A temporary file beside its final path, which is removed unless it is kept.
#[derive(Debug)]
pub(crate) struct Unfinished {
    partial: PathBuf,
    path: PathBuf,
}

impl Unfinished {
    /// Creates the file beside its final path.
    ///
    /// # Errors
    /// If it cannot be created.
    pub(crate) fn beside(path: &Path) -> Result<(Self, File), Failure> {
        let mut name = path.as_os_str().to_owned();
        name.push(format!(".{}.partial", std::process::id()));
        let unfinished = Self { partial: name.into(), path: path.to_owned() };
        let file = File::create(&unfinished.partial).map_err(|error| unfinished.failed(&error))?;
        Ok((unfinished, file))
    }

    fn failed(&self, error: &io::Error) -> Failure {
        Failure::new(format_args!("cannot write {}: {error}", shown_path(&self.path)))
    }

    /// Renames the file to its final path.
    ///
    /// # Errors
    /// If the file cannot be renamed.
    pub(crate) fn keep(self) -> Result<(), Failure> {
        fs::rename(&self.partial, &self.path).map_err(|error| self.failed(&error))
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // A kept file was renamed and no longer exists here.
        let _ = fs::remove_file(&self.partial);
    }
}
