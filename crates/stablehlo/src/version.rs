//! The version of a program.

use std::fmt;

/// A version of StableHLO: `1.16.3`.
///
/// Minor versions add operations, types and attributes; the patch identifies the build.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct StableHloVersion {
    /// Changes when old programs can no longer be read.
    pub major: u32,
    /// Changes with the operations.
    pub minor: u32,
    /// Changes with each build.
    pub patch: u32,
}

impl StableHloVersion {
    /// The oldest version for which this crate writes programs.
    pub const OLDEST_TARGET: Self = Self::new(1, 0, 0);

    /// The newest version whose additions are known.
    pub const NEWEST_KNOWN: Self = Self::new(1, 22, 0);

    /// Creates a version from its three numbers.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }

    /// Returns the version without its patch, which does not affect the contents of programs.
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
