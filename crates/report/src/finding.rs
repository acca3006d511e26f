//! A finding: what a rule has against an artifact, for a release.

use crate::{Cell, Fingerprint, Level};

/// The meaning of a finding for the release that it is about.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Class {
    /// The release refuses the artifact. It counts whatever the level of its rule.
    Refusal,
    /// The release takes the artifact and computes something else than what was saved.
    Differs,
    /// Something that a user should know; the release takes the artifact.
    #[default]
    Warning,
}

/// A violation of a rule by an artifact, for a release.
///
/// The artifact, its kind and the release are set by the [`Artifact`](crate::Artifact) that the
/// finding is added to.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Serialize)]
#[non_exhaustive]
pub struct Finding {
    /// The path of the artifact from where reports are read.
    pub artifact: String,
    /// The kind of the artifact, if there is something to tell it from.
    pub kind: Option<String>,
    /// The release that it is about; `None` where nothing was asked about one.
    pub release: Option<String>,
    /// The loader that decided, for artifacts that have several.
    pub loader: Option<String>,
    /// The rule, by its name.
    pub rule: String,
    /// The meaning of the finding for the release.
    pub class: Class,
    /// The weight; [`Levels`](crate::Levels) set it, and a refusal keeps [`Level::Deny`].
    pub level: Level,
    /// The place inside of the artifact: a node, a tensor, a meta graph.
    #[serde(rename = "where")]
    pub place: Option<String>,
    /// The found item.
    pub found: Option<String>,
    /// The accepted item.
    pub expected: Option<String>,
    /// A sentence for people.
    pub message: String,
    /// The remedy, for people.
    pub remedy: Option<String>,
    /// True if the artifact cannot be read because of it: where it counts, the answer is unknown
    /// rather than no.
    pub is_unreadable: bool,
    /// The entry of the baseline that names it: it is shown as known and does not count. The text
    /// is the entry's reason, and empty where it gives none.
    pub known: Option<String>,
}

impl Finding {
    /// Creates a warning of a rule about the whole artifact.
    pub fn new(rule: impl Into<String>, message: impl Into<String>) -> Self {
        Self { rule: rule.into(), message: message.into(), ..Self::default() }
    }

    /// Returns the same of another class.
    #[must_use]
    pub fn of_class(self, class: Class) -> Self {
        let level = if class == Class::Refusal { Level::Deny } else { self.level };
        Self { class, level, ..self }
    }

    /// Returns the same, where the artifact cannot be read because of it.
    #[must_use]
    pub fn unreadable(self) -> Self {
        Self { is_unreadable: true, ..self }
    }

    /// Returns the same at a place inside of the artifact.
    #[must_use]
    pub fn at(self, place: impl Into<String>) -> Self {
        Self { place: Some(place.into()), ..self }
    }

    /// Returns the same with what was found and what would have been accepted.
    #[must_use]
    pub fn with_values(self, found: Option<String>, expected: Option<String>) -> Self {
        Self { found, expected, ..self }
    }

    /// Returns the same with what to do.
    #[must_use]
    pub fn with_remedy(self, remedy: impl Into<String>) -> Self {
        Self { remedy: Some(remedy.into()), ..self }
    }

    /// Returns the same with the loader that decided.
    #[must_use]
    pub fn with_loader(self, loader: impl Into<String>) -> Self {
        Self { loader: Some(loader.into()), ..self }
    }

    /// Returns the identity of the finding: of its artifact, rule and place, and of nothing else.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        Fingerprint::of(&self.artifact, &self.rule, self.place.as_deref())
    }

    /// Returns true if the artifact is not acceptable because of it: it is denied, and not known.
    #[must_use]
    pub fn counts(&self) -> bool {
        self.level == Level::Deny && self.known.is_none()
    }

    /// Returns true if reports show it: its rule is not allowed.
    #[must_use]
    pub fn is_shown(&self) -> bool {
        self.level != Level::Allow
    }

    /// Returns the cell that it makes of its release. That it is known changes nothing about that.
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
