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
    /// The release refuses the file, which is intact.
    Unacceptable,
    /// No release reads it.
    Unreadable,
}

/// The reason why a release refuses a file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Reason {
    /// The rule that the file breaks.
    pub rule: Rule,
    /// The value found.
    pub found: String,
    /// The values that the release accepts.
    pub expected: String,
    /// A sentence for people.
    pub message: String,
    /// The remedy, for people.
    pub remedy: String,
    /// The place in the file; empty for the whole file.
    pub place: String,
}

impl Display for Reason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.rule, self.message, self.remedy)
    }
}

/// A problem that arises after loading, with a file that a release reads.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Warning {
    /// The rule of the warning.
    pub rule: Rule,
    /// A sentence for people.
    pub message: String,
}

impl Display for Warning {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.message)
    }
}

/// A release's verdict, with reasons and warnings.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Judgement {
    /// The release.
    pub release: &'static Release,
    /// The verdict.
    pub verdict: Verdict,
    /// The reasons why the release refuses the file; empty if it does not.
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
    /// Creates options without settings or registered types.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds pytree node types that the program registers before it deserializes, by their
    /// serialized names.
    #[must_use]
    pub fn with_custom_nodes(mut self, names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.custom_nodes.extend(names.into_iter().map(Into::into));
        self
    }

    /// Turns `jax_export_deserialize_expired_versions` on.
    #[must_use]
    pub fn with_expired_versions(mut self) -> Self {
        self.takes_expired = true;
        self
    }

    /// Sets the platform on which the program calls the function: `cpu`, `cuda`, `rocm` or `tpu`. A
    /// function for other platforms gets a warning.
    #[must_use]
    pub fn with_platform(mut self, platform: impl Into<String>) -> Self {
        self.platform = Some(platform.into());
        self
    }
}
