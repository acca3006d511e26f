//! The verdict in one word.

use std::fmt;

/// The verdict in one word. The worst of several is the greatest.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Outcome {
    /// It may be loaded.
    Acceptable,
    /// It may not, and it is known why.
    Unacceptable,
    /// It cannot be read, so that the answer is unknown.
    Unreadable,
}

impl Outcome {
    /// Returns the word that programs compare.
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
