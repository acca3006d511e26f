//! Verdicts, with their reasons.

use std::{
    collections::BTreeSet,
    fmt::{self, Display, Formatter},
};

use crate::{release::Release, rule::Rule};

/// The verdict of a release on a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Verdict {
    /// The release reads it.
    Acceptable,
    /// The release refuses it, and the file is whole.
    Unacceptable,
    /// No release reads it.
    Unreadable,
}

/// Why a release refuses a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reason {
    /// The rule that is broken.
    pub rule: Rule,
    /// The found item.
    pub found: String,
    /// The items that the release accepts.
    pub expected: String,
    /// A sentence for people.
    pub message: String,
    /// The remedy, for people.
    pub remedy: String,
    /// The place in the file; empty for the file as a whole.
    pub place: String,
}

impl Display for Reason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.rule, self.message, self.remedy)
    }
}

/// A problem that arises later with a file that a release reads.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// The rule that it is about.
    pub rule: Rule,
    /// A sentence for people.
    pub message: String,
}

impl Display for Warning {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.message)
    }
}

/// A verdict of a release, its reasons and warnings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Judgement {
    /// Whose verdict it is.
    pub release: &'static Release,
    /// The verdict.
    pub verdict: Verdict,
    /// Why the release refuses the file; none if it does not.
    pub reasons: Vec<Reason>,
    /// The problems that arise later.
    pub warnings: Vec<Warning>,
}

impl Judgement {
    /// Returns true if the release reads the file.
    #[must_use]
    pub fn is_acceptable(&self) -> bool {
        self.verdict == Verdict::Acceptable
    }
}

/// The settings and types of the program that loads a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    pub(crate) custom_nodes: BTreeSet<String>,
    pub(crate) takes_expired: bool,
    pub(crate) platform: Option<String>,
}

impl Options {
    /// Creates a program that has nothing of its own.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns a program that registers these types of nodes before it deserializes, by the names
    /// under which they are serialized.
    #[must_use]
    pub fn with_custom_nodes(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.custom_nodes.extend(names.into_iter().map(Into::into));
        self
    }

    /// Returns a program with `jax_export_deserialize_expired_versions` on.
    #[must_use]
    pub fn with_expired_versions(mut self) -> Self {
        self.takes_expired = true;
        self
    }

    /// Returns a program that calls the function on this platform: `cpu`, `cuda`, `rocm` or `tpu`.
    /// A function for other platforms is warned about.
    #[must_use]
    pub fn with_platform(mut self, platform: impl Into<String>) -> Self {
        self.platform = Some(platform.into());
        self
    }
}
