//! A finding: a violation of a rule by an artifact.

use crate::{Cell, Fingerprint, Level};

/// The meaning of a finding for its release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The release refuses the artifact. It counts at any level of its rule.
    Refusal,
    /// The release accepts the artifact and computes something else than was saved.
    Differs,
    /// Information for users; the release accepts the artifact.
    #[default]
    Warning,
}

/// A violation of a rule by an artifact, for a release.
///
/// The artifact, its kind and the release are set when the finding is added to an
/// [`Artifact`](crate::Artifact).
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// Path of the artifact for readers of reports.
    pub artifact: String,
    /// Kind of the artifact, if it is known.
    pub kind: Option<String>,
    /// The release; `None` for findings that do not depend on one.
    pub release: Option<String>,
    /// The loader that was used, for artifacts with several.
    pub loader: Option<String>,
    /// Name of the rule.
    pub rule: String,
    /// The meaning of the finding for the release.
    pub class: Class,
    /// The level, set by [`Levels`](crate::Levels); a refusal always has [`Level::Deny`].
    pub level: Level,
    /// The place in the artifact: a node, a tensor, a meta graph.
    #[serde(rename = "where")]
    pub place: Option<String>,
    /// The found item.
    pub found: Option<String>,
    /// The accepted item.
    pub expected: Option<String>,
    /// Message for users.
    pub message: String,
    /// The remedy for users.
    pub remedy: Option<String>,
    /// True if it makes the artifact unreadable: the answer is then unknown instead of no.
    pub is_unreadable: bool,
    /// The reason in its entry of the baseline, which may be empty: the finding is shown as known
    /// and does not count. `None` if it is not in the baseline.
    pub known: Option<String>,
}

impl Finding {
    /// Creates a warning about the whole artifact.
    pub fn new(rule: impl Into<String>, message: impl Into<String>) -> Self {
        Self { rule: rule.into(), message: message.into(), ..Self::default() }
    }

    /// Sets the class.
    #[must_use]
    pub fn of_class(self, class: Class) -> Self {
        let level = if class == Class::Refusal { Level::Deny } else { self.level };
        Self { class, level, ..self }
    }

    /// Marks the artifact as unreadable because of the finding.
    #[must_use]
    pub fn unreadable(self) -> Self {
        Self { is_unreadable: true, ..self }
    }

    /// Sets the place in the artifact.
    #[must_use]
    pub fn at(self, place: impl Into<String>) -> Self {
        Self { place: Some(place.into()), ..self }
    }

    /// Sets the found and the expected value.
    #[must_use]
    pub fn with_values(self, found: Option<String>, expected: Option<String>) -> Self {
        Self { found, expected, ..self }
    }

    /// Sets the remedy.
    #[must_use]
    pub fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    /// Sets the loader.
    #[must_use]
    pub fn with_loader(self, loader: impl Into<String>) -> Self {
        Self { loader: Some(loader.into()), ..self }
    }

    /// Returns the identity of the finding, from its artifact, rule and place only.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.artifact, &self.rule, self.place.as_deref())
    }

    /// Returns true if it makes the artifact unacceptable: it is denied, and not known.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.level == Level::Deny && self.known.is_none()
    }

    /// Returns true if reports show it: its rule is not allowed.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        self.level != Level::Allow
    }

    /// Returns the cell of its release, even if the finding is known.
    #[must_use]
    pub fn cell(&self) -> Cell {
        match (self.level, self.class) {
            (Level::Deny, _) if self.is_unreadable => Cell::Unknown,
            (Level::Deny, _) => Cell::No,
            (_, Class::Differs) => Cell::Differs,
            _ => Cell::Yes,
        }
    }
}
