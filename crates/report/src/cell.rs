//! The cell of a matrix of artifacts by releases.

use std::fmt;

/// The answer of a release on an artifact. The worst of several is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cell {
    /// The release takes it.
    Yes,
    /// The release takes it and computes something else than what was saved. Counted apart, and
    /// never as a yes.
    Differs,
    /// The release refuses it.
    No,
    /// It cannot be read, so that the answer is unknown.
    Unknown,
}

impl Cell {
    /// All cells, the best first.
    pub const ALL: &'static [Self] = &[Self::Yes, Self::Differs, Self::No, Self::Unknown];

    /// Returns the word that programs compare.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Yes => "yes",
            Self::Differs => "differs",
            Self::No => "no",
            Self::Unknown => "unknown",
        }
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.id())
    }
}
