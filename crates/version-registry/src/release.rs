//! Numbers of releases, and the kinds of releases with the changes that they allow.

use std::{fmt, str::FromStr};

/// The number of a release, `MAJOR.MINOR.PATCH`.
///
/// ```
/// use serdes_version_registry::ReleaseNumber;
///
/// let release: ReleaseNumber = "1.4.10".parse()?;
/// assert!(release > ReleaseNumber::new(1, 4, 9));
/// assert_eq!(release.to_string(), "1.4.10");
/// assert!("1.5.0-rc.1".parse::<ReleaseNumber>().is_err());
/// # Ok::<(), serdes_version_registry::ReleaseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ReleaseNumber {
    major: u64,
    minor: u64,
    patch: u64,
}

impl ReleaseNumber {
    /// Creates the number `major.minor.patch`.
    pub const fn new(major: u64, minor: u64, patch: u64) -> Self {
        Self { major, minor, patch }
    }

    /// Returns MAJOR.
    pub const fn major(self) -> u64 {
        self.major
    }

    /// Returns MINOR.
    pub const fn minor(self) -> u64 {
        self.minor
    }

    /// Returns PATCH.
    pub const fn patch(self) -> u64 {
        self.patch
    }

    /// Returns `true` if both are patches of the same MAJOR.MINOR.
    pub const fn is_of_minor_of(self, other: Self) -> bool {
        self.major == other.major && self.minor == other.minor
    }

    /// Returns the first number after this one whose release is of this kind; `None` if MAJOR,
    /// MINOR or PATCH would exceed 64 bits.
    ///
    /// ```
    /// use serdes_version_registry::{ReleaseKind, ReleaseNumber};
    ///
    /// let next = ReleaseNumber::new(1, 4, 2).next(ReleaseKind::Minor);
    /// assert_eq!(next, Some(ReleaseNumber::new(1, 5, 0)));
    /// ```
    pub const fn next(self, kind: ReleaseKind) -> Option<Self> {
        let Self { major, minor, patch } = self;
        let (next, place) = match kind {
            ReleaseKind::Major => (major.checked_add(1), 0),
            ReleaseKind::Minor => (minor.checked_add(1), 1),
            ReleaseKind::Patch => (patch.checked_add(1), 2),
        };
        match (next, place) {
            (Some(next), 0) => Some(Self::new(next, 0, 0)),
            (Some(next), 1) => Some(Self::new(major, next, 0)),
            (Some(next), _) => Some(Self::new(major, minor, next)),
            (None, _) => None,
        }
    }
}

impl fmt::Display for ReleaseNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}.{}", self.major, self.minor, self.patch)
    }
}

impl FromStr for ReleaseNumber {
    type Err = ReleaseError;

    fn from_str(text: &str) -> Result<Self, ReleaseError> {
        let not = || ReleaseError::NotARelease { found: text.chars().take(40).collect() };
        let mut parts = text.split('.').map(number);
        let mut next = || parts.next().flatten().ok_or_else(not);
        let release = Self { major: next()?, minor: next()?, patch: next()? };
        if parts.next().is_some() { Err(not()) } else { Ok(release) }
    }
}

/// Parses a number in decimal digits; `u64::from_str` alone also accepts a sign.
fn number(part: &str) -> Option<u64> {
    part.bytes().all(|byte| byte.is_ascii_digit()).then(|| part.parse().ok()).flatten()
}

/// The kind of a release, which decides the changes of a data format that its number allows.
///
/// Within a MAJOR all data stays readable, and within a MAJOR.MINOR the patches read each other's
/// data in both directions (TensorFlow's data versioning, "Backward and partial forward
/// compatibility"). Kinds are ordered: a greater one allows everything that a smaller one allows.
///
/// ```
/// use serdes_version_registry::ReleaseKind;
///
/// assert_eq!(ReleaseKind::between("2.20.1", "2.20.2")?, ReleaseKind::Patch);
/// assert_eq!(ReleaseKind::between("2.20.1", "2.21.0")?, ReleaseKind::Minor);
/// assert_eq!(ReleaseKind::between("2.20.1", "3.0.0")?, ReleaseKind::Major);
/// assert!(ReleaseKind::Patch < ReleaseKind::Major);
/// # Ok::<(), serdes_version_registry::ReleaseError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ReleaseKind {
    /// PATCH increases: the release writes only data that the previous patch reads, and accepts all
    /// data that it accepts.
    Patch,
    /// MINOR increases: producers may write new data; nothing that worked may be removed.
    Minor,
    /// MAJOR increases: banned or replaced features may be removed.
    Major,
}

impl ReleaseKind {
    /// Returns the kind of the release `later` after `earlier`, both `MAJOR.MINOR.PATCH`.
    ///
    /// # Errors
    /// [`ReleaseError::NotARelease`], and [`ReleaseError::GoesBack`] if `later` is not later than
    /// `earlier`.
    pub fn between(earlier: &str, later: &str) -> Result<Self, ReleaseError> {
        Self::of_step(earlier.parse()?, later.parse()?)
    }

    /// Returns the kind of the release `later` after `earlier`.
    ///
    /// # Errors
    /// [`ReleaseError::GoesBack`] if `later` is not later than `earlier`.
    pub fn of_step(earlier: ReleaseNumber, later: ReleaseNumber) -> Result<Self, ReleaseError> {
        if later <= earlier {
            return Err(ReleaseError::GoesBack { found: later, previous: earlier });
        }
        Ok(match (later.major > earlier.major, later.minor > earlier.minor) {
            (true, _) => Self::Major,
            (false, true) => Self::Minor,
            (false, false) => Self::Patch,
        })
    }
}

impl fmt::Display for ReleaseKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Major => "major",
            Self::Minor => "minor",
            Self::Patch => "patch",
        })
    }
}

/// An error about numbers of releases.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ReleaseError {
    /// A text is not a release number.
    #[error("{found:?} is no release; write MAJOR.MINOR.PATCH, for example 2.21.0")]
    NotARelease {
        /// The text found, truncated to 40 characters.
        found: String,
    },
    /// A release is not later than the one before.
    #[error("{found} does not come after {previous}; releases only go up")]
    GoesBack {
        /// The release.
        found: ReleaseNumber,
        /// The release before it.
        previous: ReleaseNumber,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn release_kind_follows_from_the_step_of_the_numbers() {
        for (earlier, later, kind) in [
            ("1.4.2", "1.4.3", ReleaseKind::Patch),
            ("1.4.9", "1.4.10", ReleaseKind::Patch),
            ("1.4.2", "1.5.0", ReleaseKind::Minor),
            ("1.9.2", "1.10.0", ReleaseKind::Minor),
            ("1.4.2", "2.0.0", ReleaseKind::Major),
            ("1.4.2", "2.4.2", ReleaseKind::Major),
        ] {
            assert_eq!(ReleaseKind::between(earlier, later), Ok(kind), "{earlier} {later}");
        }
        for (earlier, later) in [("1.4.2", "1.4.2"), ("1.4.2", "1.4.1"), ("2.0.0", "1.9.9")] {
            let error = ReleaseKind::between(earlier, later).unwrap_err();
            assert!(matches!(error, ReleaseError::GoesBack { .. }), "{error}");
        }
    }

    #[test]
    fn release_number_is_three_decimal_numbers() {
        for wrong in [
            "",
            "1",
            "1.2",
            "1.2.3.4",
            "1.2.x",
            "+1.2.3",
            "v1.2.3",
            "1.2.-3",
            "1..3",
            "1.2.3-rc.1",
            "1.2.99999999999999999999",
        ] {
            let error = wrong.parse::<ReleaseNumber>().unwrap_err();
            assert!(matches!(error, ReleaseError::NotARelease { .. }), "{wrong}: {error}");
        }
        assert!("9".repeat(1 << 20).parse::<ReleaseNumber>().unwrap_err().to_string().len() < 200);
    }

    #[test]
    fn next_release_of_a_kind_is_of_that_kind() {
        let release = ReleaseNumber::new(1, 4, 2);
        for kind in [ReleaseKind::Patch, ReleaseKind::Minor, ReleaseKind::Major] {
            let next = release.next(kind).unwrap();
            assert_eq!(ReleaseKind::of_step(release, next), Ok(kind), "{next}");
        }
        assert_eq!(ReleaseNumber::new(u64::MAX, 0, 0).next(ReleaseKind::Major), None);
    }
}
