//! Features of a program that are newer than the oldest supported target version.

use std::fmt;

use super::StableHloVersion;

/// A feature of a program that not every version knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Need {
    pub(super) feature: String,
    pub(super) since: Option<StableHloVersion>,
    /// The oldest version that can express the feature in another way.
    pub(super) otherwise: Option<StableHloVersion>,
}

impl Need {
    /// Returns the name of the feature: `operation vhlo.composite_v2`.
    pub fn feature(&self) -> &str {
        &self.feature
    }

    /// Returns the first version that knows the feature; `None` if it is unknown.
    pub fn since(&self) -> Option<StableHloVersion> {
        self.since
    }

    /// Returns true if this crate knows how an older version expresses the feature.
    pub fn is_rewritable(&self) -> bool {
        self.otherwise.is_some()
    }

    /// Returns the oldest version that can express the feature in any way; `None` if it is unknown.
    pub(super) fn oldest(&self) -> Option<StableHloVersion> {
        self.otherwise.or(self.since)
    }

    /// Returns true if a reader of that version knows the feature.
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
