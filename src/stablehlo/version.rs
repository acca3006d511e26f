//! The version of a program.

use std::{fmt, str::FromStr};

use super::StablehloError;

/// A version of StableHLO: `1.16.3`.
///
/// Operations, types and attributes come with minor versions; the patch says when it was built.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StablehloVersion {
    major: u32,
    minor: u32,
    patch: u32,
}

impl StablehloVersion {
    /// The oldest version for which programs are written here.
    pub const OLDEST_TARGET: Self = Self::new(1, 13, 0);

    /// The newest version of which it is known what it brought.
    pub const NEWEST_KNOWN: Self = Self::new(1, 22, 0);

    /// The version of these three numbers.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }

    /// Major, minor and patch.
    pub const fn numbers(self) -> [u32; 3] {
        [self.major, self.minor, self.patch]
    }

    /// The version without its patch: that is all on which the contents of a program depend.
    #[must_use]
    pub const fn release(self) -> Self {
        Self { patch: 0, ..self }
    }
}

impl fmt::Display for StablehloVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

/// Three decimal numbers with points between them.
impl FromStr for StablehloVersion {
    type Err = StablehloError;

    fn from_str(text: &str) -> Result<Self, StablehloError> {
        let invalid = || StablehloError::NoVersion { found: text.chars().take(40).collect() };
        let mut numbers = text.split('.').map(|part| {
            let is_number = !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_digit());
            is_number.then(|| part.parse().ok()).flatten()
        });
        let mut next = || numbers.next().flatten();
        let (Some(major), Some(minor), Some(patch)) = (next(), next(), next()) else {
            return Err(invalid());
        };
        if numbers.next().is_some() {
            return Err(invalid());
        }
        Ok(Self { major, minor, patch })
    }
}
