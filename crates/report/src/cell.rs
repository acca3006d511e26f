//! The cell of a matrix of artifacts by releases.

use std::fmt;

/// The answer of a release on an artifact. Cells are ordered, the worst is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cell {
    /// The release accepts it.
    Yes,
    /// The release accepts it and computes something else than was saved. Counted separately, never
    /// as a yes.
    Differs,
    /// The release refuses it.
    No,
    /// The artifact cannot be read, so that the answer is unknown.
    Unknown,
}

impl Cell {
    /// All cells, best first.
    pub const ALL: &'static [Self] = &[Self::Yes, Self::Differs, Self::No, Self::Unknown];

    /// Returns the identifier for programs.
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
