//! The version of a program.

use std::fmt;

/// A version of StableHLO: `1.16.3`.
///
/// Operations, types and attributes come with minor versions; the patch says when it was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct StableHloVersion {
    /// Changes when old programs cannot be read any more.
    pub major: u32,
    /// Changes with the operations.
    pub minor: u32,
    /// Changes with each build.
    pub patch: u32,
}

impl StableHloVersion {
    /// The oldest version for which programs are written here.
    pub const OLDEST_TARGET: Self = Self::new(1, 0, 0);

    /// The newest version of which it is known what it brought.
    pub const NEWEST_KNOWN: Self = Self::new(1, 22, 0);

    /// Creates the version of these three numbers.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }

    /// Returns the version without its patch: that is all on which the contents of a program
    /// depend.
    #[must_use]
    pub const fn release(self) -> Self {
        Self { patch: 0, ..self }
    }
}

impl fmt::Display for StableHloVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}
