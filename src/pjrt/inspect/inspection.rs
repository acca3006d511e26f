//! What is read of a library, and what it is.

use std::path::Path;

use super::{
    ENTRY,
    version::{self, VersionInFile},
};
use crate::{pjrt::error::PjrtError, stream_executor::elf};

/// What a shared library says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// What its ELF tables say.
    pub elf: elf::Inspection,
    /// The version that it puts into its table, where that could be read: a hint, because it is
    /// recognised by a pattern. `None` where no pattern is there, where there are several versions,
    /// or the file is neither for x86-64 nor for 64-bit Arm.
    pub version: Option<VersionInFile>,
}

impl Inspection {
    /// Whether it exports the function `GetPjrtApi`.
    #[must_use]
    pub fn is_plugin(&self) -> bool {
        self.elf.exports.iter().any(|name| name == ENTRY)
    }
}

/// Reads the file at `path`. The version is looked for in plug-ins alone.
///
/// # Errors
/// [`PjrtError::NotLoadable`] if it cannot be read, is no ELF file, or is damaged.
pub fn inspect(path: impl AsRef<Path>) -> Result<Inspection, PjrtError> {
    let path = path.as_ref();
    let elf = elf::inspect(path).map_err(|error| PjrtError::of_elf(path, error))?;
    let mut inspection = Inspection { elf, version: None };
    if inspection.is_plugin() {
        let found = version::version(path, &inspection.elf.architecture);
        inspection.version = found.map_err(|error| PjrtError::NotLoadable {
            path: path.to_owned(),
            reason: format!("{error}; check the path"),
        })?;
    }
    Ok(inspection)
}
