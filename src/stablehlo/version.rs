//! The version of a program.

use std::{fmt, str::FromStr};

use super::StableHloError;

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
    pub const OLDEST_TARGET: Self = Self::new(1, 13, 0);

    /// The newest version of which it is known what it brought.
    pub const NEWEST_KNOWN: Self = Self::new(1, 22, 0);

    /// The version of these three numbers.
    pub const fn new(major: u32, minor: u32, patch: u32) -> Self {
        Self { major, minor, patch }
    }

    /// The version without its patch: that is all on which the contents of a program depend.
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

/// Three decimal numbers with points between them.
impl FromStr for StableHloVersion {
    type Err = StableHloError;

    fn from_str(text: &str) -> Result<Self, StableHloError> {
        let invalid = || StableHloError::NoVersion { found: text.chars().take(40).collect() };
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_three_numbers() {
        let version: StableHloVersion = "1.13.7".parse().unwrap();
        assert_eq!(version, StableHloVersion::new(1, 13, 7));
        assert_eq!((version.to_string(), version.release().patch), ("1.13.7".to_owned(), 0));
        for wrong in ["1.2", "1.2.3.4", "1.+2.3", "a.b.c", "", "1.2.99999999999"] {
            assert!(wrong.parse::<StableHloVersion>().is_err(), "{wrong}");
        }
    }
}
