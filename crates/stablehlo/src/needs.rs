//! Features of a program that came after the oldest version for which programs are written.

use std::fmt;

use super::StableHloVersion;

/// Something in a program that not every version knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    pub(super) feature: String,
    pub(super) since: Option<StableHloVersion>,
    /// The oldest version that expresses the same in another way.
    pub(super) otherwise: Option<StableHloVersion>,
}

impl Need {
    /// Returns the name of the feature: `operation vhlo.composite_v2`.
    pub fn feature(&self) -> &str {
        &self.feature
    }

    /// Returns the first version that knows it; `None` if that is not known here.
    pub fn since(&self) -> Option<StableHloVersion> {
        self.since
    }

    /// Returns true if an older version expresses the same in another way, which is known here.
    pub fn is_rewritable(&self) -> bool {
        self.otherwise.is_some()
    }

    /// Returns the oldest version that can say it, in this way or another; `None` if that is not
    /// known here.
    pub(super) fn oldest(&self) -> Option<StableHloVersion> {
        self.otherwise.or(self.since)
    }

    /// Returns true if a reader of that version knows it.
    pub(super) fn is_known_to(&self, version: StableHloVersion) -> bool {
        self.since.is_some_and(|since| since <= version)
    }
}

impl fmt::Display for Need {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.since {
            Some(since) => write!(f, "{} (since {since})", self.feature),
            None => write!(f, "{} (unknown here)", self.feature),
        }
    }
}
