//! Inspects the file of a library, without loading it.

use std::path::Path;

use serdes_abi::pjrt::{Minor, OLDEST_FRAMEWORK_SYMBOL};
use serdes_library_file::elf;

use super::{recognised::VersionInFile, version};
use crate::{PluginVersion, SizeRule, error::PjrtError};

/// The function through which a plug-in returns its table.
pub(crate) const ENTRY: &str = "GetPjrtApi";

/// Facts about a shared library, from its file only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// Facts from its ELF tables.
    pub elf: elf::Inspection,
    /// The version that the plug-in stores in its table, if the file shows it. It is a hint,
    /// because it is recognised by a pattern. `None` if no pattern matches, if there are several
    /// versions, or if the file is neither for x86-64 nor for 64-bit Arm.
    pub version: Option<VersionInFile>,
}

impl Inspection {
    /// Returns true if the library exports the function `GetPjrtApi`.
    #[must_use]
    pub fn is_plugin(&self) -> bool {
        self.elf.exports.iter().any(|name| name == ENTRY)
    }

    /// Returns the oldest minor of frameworks whose arguments the plug-in accepts, if it declares
    /// it by the name of a symbol, as plug-ins of this project's SDK do. As far as the file shows,
    /// any other plug-in requires its own sizes, as upstream's do.
    #[must_use]
    pub fn oldest_framework(&self) -> Option<Minor> {
        let mut symbols = self.elf.exports.iter();
        let number = symbols.find_map(|name| name.strip_prefix(OLDEST_FRAMEWORK_SYMBOL))?;
        let all_digits = number.bytes().all(|byte| byte.is_ascii_digit());
        number.parse().ok().filter(|_| all_digits).map(Minor::new)
    }

    /// Returns the plug-in's version, for [`Framework::fit`](crate::Framework::fit); `None` if the
    /// file shows no valid version. Facts that only a loaded plug-in shows, such as its missing
    /// functions, are assumed to be those that its version should have.
    #[must_use]
    pub fn plugin_version(&self) -> Option<PluginVersion> {
        let version = self.version.filter(VersionInFile::is_consistent)?;
        let rule = self.oldest_framework().map_or(SizeRule::AtLeast, SizeRule::Since);
        Some(PluginVersion::new(version.minor).with_size_rule(rule))
    }
}

/// Inspects the file at `path`. The version is searched only in plug-ins.
///
/// # Errors
/// [`PjrtError::NotLoadable`] if it cannot be read, is not an ELF file, or is damaged.
pub fn inspect(path: impl AsRef<Path>) -> Result<Inspection, PjrtError> {
    let path = path.as_ref();
    let elf = elf::inspect(path).map_err(PjrtError::of_elf)?;
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
