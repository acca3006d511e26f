//! The minor version, which increases with every change of the interface.

use core::fmt;

/// A version of the PJRT C API: the minor number. The major number is 0 in every revision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Minor(u32);

impl Minor {
    /// The first version that declares its number (June 2023).
    pub const OLDEST: Self = Self(1);
    /// The oldest version that a host can call: before it, functions moved to other slots. It is
    /// also the oldest that upstream's own frameworks accept.
    pub const OLDEST_SUPPORTED: Self = Self(29);
    /// The version since which nothing has moved (one revision of 0.56 had 31 slots elsewhere).
    pub const APPEND_ONLY: Self = Self(57);
    /// The first version whose extensions declare their size.
    pub const SIZED_EXTENSIONS: Self = Self(45);
    /// The newest version whose structs are known (October 2026).
    pub const NEWEST: Self = Self(117);

    /// Creates the version 0.`number`.
    #[must_use]
    pub const fn new(number: u32) -> Self {
        Self(number)
    }

    /// Returns the number after the dot.
    #[must_use]
    pub const fn number(self) -> u32 {
        self.0
    }

    /// Returns `true` if the structs of the version are known: it is between [`Self::OLDEST`] and
    /// [`Self::NEWEST`].
    #[must_use]
    pub const fn is_known(self) -> bool {
        Self::OLDEST.0 <= self.0 && self.0 <= Self::NEWEST.0
    }

    /// Returns `true` if a host can call a plug-in of this version.
    #[must_use]
    pub const fn is_supported(self) -> bool {
        Self::OLDEST_SUPPORTED.0 <= self.0
    }

    /// Returns the version, capped at the newest known one.
    #[must_use]
    pub const fn or_newest(self) -> Self {
        if self.0 > Self::NEWEST.0 { Self::NEWEST } else { self }
    }

    /// Parses a version such as `0.54`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix("0.")?;
        let is_number = !digits.is_empty() && digits.bytes().all(|digit| digit.is_ascii_digit());
        let written = is_number && (digits == "0" || !digits.starts_with('0'));
        if written { digits.parse().ok().map(Self) } else { None }
    }
}

impl fmt::Display for Minor {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "0.{}", self.0)
    }
}
