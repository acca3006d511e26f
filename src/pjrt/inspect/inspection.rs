//! What is read of a library, and what it is.

use std::path::Path;

use serdes_abi::pjrt::{Minor, OLDEST_FRAMEWORK_SYMBOL};

use super::{recognised::VersionInFile, version};
use crate::{
    pjrt::{PluginVersion, SizeRule, error::PjrtError},
    stream_executor::elf,
};

/// The function by which a plug-in hands out its table.
pub(in crate::pjrt) const ENTRY: &str = "GetPjrtApi";

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

    /// The minor from which on the plug-in takes the arguments of frameworks, where it says so by
    /// the name of a symbol, as plug-ins of this project's SDK do. One that does not say it demands
    /// its own sizes, as upstream's do, as far as its file tells.
    #[must_use]
    pub fn oldest_framework(&self) -> Option<Minor> {
        let mut symbols = self.elf.exports.iter();
        let number = symbols.find_map(|name| name.strip_prefix(OLDEST_FRAMEWORK_SYMBOL))?;
        let all_digits = number.bytes().all(|byte| byte.is_ascii_digit());
        number.parse().ok().filter(|_| all_digits).map(Minor::new)
    }

    /// What the file alone tells of the plug-in for the question whether a framework could load it;
    /// `None` where it does not tell a version that plug-ins have. What a plug-in fills in when it
    /// is loaded, such as which of its functions are there, is taken for what its version should
    /// have.
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
