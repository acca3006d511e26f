//! What the file of a plug-in says, read without loading it.
//!
//! This folder must never run anything of the file.

mod machine_code;

use std::path::Path;

pub use machine_code::VersionInCode;

use super::error::PjrtError;
use crate::stream_executor::elf;

/// The function by which a plug-in hands out its table.
pub(super) const ENTRY: &str = "GetPjrtApi";

/// What a shared library says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// What its ELF tables say.
    pub elf: elf::Inspection,
    /// The version that its code writes into the table, where that could be read: a hint, because
    /// it is recognised by a pattern. `None` where the pattern is not there, where there are
    /// several versions, or the code is not for x86-64.
    pub version: Option<VersionInCode>,
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
    if inspection.is_plugin() && inspection.elf.architecture == "x86_64" {
        inspection.version =
            machine_code::version(path).map_err(|error| PjrtError::NotLoadable {
                path: path.to_owned(),
                reason: format!("{error}; check the path"),
            })?;
    }
    Ok(inspection)
}
