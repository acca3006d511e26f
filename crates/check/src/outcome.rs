//! The outcome of a verdict.

use std::fmt;

/// The outcome of a verdict. Ordered: the worst is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Outcome {
    /// The artifact may be loaded.
    Acceptable,
    /// The artifact may not be loaded, for a known reason.
    Unacceptable,
    /// The artifact cannot be read, so the answer is unknown.
    Unreadable,
}

impl Outcome {
    /// Returns the id of the outcome, for programs.
    #[must_use]
    pub const fn id(self) -> &'static str {
        match self {
            Self::Acceptable => "acceptable",
            Self::Unacceptable => "unacceptable",
            Self::Unreadable => "unreadable",
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.id())
    }
}
