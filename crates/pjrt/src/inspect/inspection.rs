//! The inspection of a library file, without loading it.

use std::path::Path;

use serdes_abi::pjrt::{Minor, OLDEST_FRAMEWORK_SYMBOL};
use serdes_library_file::elf;

use super::{recognised::VersionInFile, version};
use crate::{PluginVersion, SizeRule, error::PjrtError};

/// The function by which a plug-in hands out its table.
pub(crate) const ENTRY: &str = "GetPjrtApi";

/// Facts about a shared library, from its file alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inspection {
    /// Facts from its ELF tables.
    pub elf: elf::Inspection,
    /// The version that it puts into its table, where that could be read: a hint, because it is
    /// recognised by a pattern. `None` where no pattern is there, where there are several versions,
    /// or the file is neither for x86-64 nor for 64-bit Arm.
    pub version: Option<VersionInFile>,
}

impl Inspection {
    /// Returns true if it exports the function `GetPjrtApi`.
    #[must_use]
    pub fn is_plugin(&self) -> bool {
        self.elf.exports.iter().any(|name| name == ENTRY)
    }

    /// Returns the minor from which on the plug-in takes the arguments of frameworks, where it says
    /// so by the name of a symbol, as plug-ins of this project's SDK do. One that does not say it
    /// demands its own sizes, as upstream's do, as far as its file tells.
    #[must_use]
    pub fn oldest_framework(&self) -> Option<Minor> {
        let mut symbols = self.elf.exports.iter();
        let number = symbols.find_map(|name| name.strip_prefix(OLDEST_FRAMEWORK_SYMBOL))?;
        let all_digits = number.bytes().all(|byte| byte.is_ascii_digit());
        number.parse().ok().filter(|_| all_digits).map(Minor::new)
    }

    /// Returns the plug-in's version as [`Framework::fit`](crate::Framework::fit) takes it; `None`
    /// where the file shows no version that plug-ins have. Facts that only a loaded plug-in shows,
    /// such as its missing functions, are assumed to be those that its version should have.
    #[must_use]
    pub fn plugin_version(&self) -> Option<PluginVersion> {
        let version = self.version.filter(VersionInFile::is_consistent)?;
        let rule = self.oldest_framework().map_or(SizeRule::AtLeast, SizeRule::Since);
        Some(PluginVersion::new(version.minor).with_size_rule(rule))
    }
}

/// Reads the file at `path`. The version is looked for in plug-ins alone.
///
/// # Errors
/// [`PjrtError::NotLoadable`] if it cannot be read, is no ELF file, or is damaged.
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
