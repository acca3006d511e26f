//! The result of a check: acceptable, unacceptable or unreadable, with reasons and warnings as
//! data.

use std::fmt;

use serdes::{
    ErrorKind,
    version::{Consumer, VersionDef},
};

use super::{Kind, Loaders, Outcome, Reason, Warning};

/// The versions that an artifact records.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Versions {
    /// The version of the producer.
    pub producer: i32,
    /// The oldest consumer that may load it.
    pub min_consumer: i32,
    /// Consumers that must not load it.
    pub bad_consumers: Vec<i32>,
}

impl From<&VersionDef> for Versions {
    fn from(versions: &VersionDef) -> Self {
        Self {
            producer: versions.producer,
            min_consumer: versions.min_consumer,
            bad_consumers: versions.bad_consumers.clone(),
        }
    }
}

/// The consumer for which an artifact was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ConsumerVersion {
    /// The line that decides about artifacts of this kind.
    pub line: String,
    /// The consumer's version.
    pub version: i32,
    /// The oldest producer whose data it accepts.
    pub min_producer: i32,
}

impl From<&Consumer> for ConsumerVersion {
    fn from(consumer: &Consumer) -> Self {
        Self {
            line: consumer.line.to_string(),
            version: consumer.version,
            min_producer: consumer.min_producer,
        }
    }
}

/// The error for work that was stopped before there was a verdict.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cancelled while {path} was verified; nothing is known of it")]
pub struct Cancelled {
    /// The path of the artifact, as it was given.
    pub path: String,
}

impl Cancelled {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        ErrorKind::Cancelled
    }
}

/// The findings of a kind's reader, before they are assigned to an artifact.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Findings {
    /// The versions in the artifact, if it could be read that far.
    pub(super) versions: Option<Versions>,
    reasons: Vec<Reason>,
    warnings: Vec<Warning>,
    /// The outcome of each loader, for a SavedModel.
    pub(super) loaders: Option<Loaders>,
}

impl Findings {
    /// Creates findings with versions only.
    pub(super) fn of_versions(versions: impl Into<Versions>) -> Self {
        Self { versions: Some(versions.into()), ..Self::default() }
    }

    /// Adds a reason. The first one decides between unacceptable and unreadable: an artifact that
    /// was refused for its content had been read.
    pub(super) fn refuse(&mut self, reason: impl Into<Reason>) {
        self.reasons.push(reason.into());
    }

    pub(super) fn warn(&mut self, warning: impl Into<Warning>) {
        self.warnings.push(warning.into());
    }

    /// Adds a reason.
    pub(super) fn refused(mut self, reason: impl Into<Reason>) -> Self {
        self.refuse(reason);
        self
    }

    /// Adds the findings in a part of the artifact, except its versions.
    pub(super) fn add(&mut self, part: Self) {
        self.reasons.extend(part.reasons);
        self.warnings.extend(part.warnings);
    }

    /// Adds the findings in a part, except those about a tensor or file for which the artifact is
    /// refused already.
    pub(super) fn add_new(&mut self, part: Self) {
        let known = |place: &Option<String>, message: &str| {
            let is_about = |own: &Reason| place.is_some() && own.place == *place;
            self.reasons.iter().any(|own| own.message == message || is_about(own))
        };
        let Self { reasons, warnings, .. } = part;
        let is_new = |one: &Reason| !known(&one.place, &one.message);
        let reasons: Vec<Reason> = reasons.into_iter().filter(is_new).collect();
        let is_new = |one: &Warning| !known(&one.place, &one.message);
        let warnings: Vec<Warning> = warnings.into_iter().filter(is_new).collect();
        self.reasons.extend(reasons);
        self.warnings.extend(warnings);
    }

    pub(super) fn reasons(&self) -> &[Reason] {
        &self.reasons
    }

    #[cfg(test)]
    pub(super) fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    pub(super) fn first_reason_mut(&mut self) -> Option<&mut Reason> {
        self.reasons.first_mut()
    }

    /// Returns the outcome, if nothing else is found.
    pub(super) fn outcome(&self) -> Outcome {
        self.reasons.first().map_or(Outcome::Acceptable, |reason| reason.rule.outcome())
    }
}

/// Converts a reason that is the only finding about an artifact.
impl From<Box<Reason>> for Findings {
    fn from(reason: Box<Reason>) -> Self {
        Self::default().refused(*reason)
    }
}

/// The result of checking an artifact.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Verdict {
    /// The path as it was given; `-` for standard input.
    pub path: String,
    /// The kind, unless nothing identifies it.
    pub kind: Option<Kind>,
    #[cfg_attr(feature = "serde", serde(rename = "verdict"))]
    outcome: Outcome,
    /// The versions in the artifact, if it could be read that far.
    pub versions: Option<Versions>,
    /// The consumer for which it was checked.
    pub consumer: Option<ConsumerVersion>,
    /// The release that the consumer is, if it is one: `MAJOR.MINOR` of TensorFlow, and the full
    /// version of jaxlib.
    pub release: Option<String>,
    /// The outcome of each loader of a SavedModel; `None` for other kinds.
    pub loaders: Option<Loaders>,
    reasons: Vec<Reason>,
    warnings: Vec<Warning>,
}

impl Verdict {
    /// Creates the verdict on the artifact at a path; `strict` turns warnings into reasons.
    pub(super) fn new(
        path: String,
        kind: Kind,
        consumer: &super::Consumer,
        mut findings: Findings,
        strict: bool,
    ) -> Self {
        if strict {
            let warnings = findings.warnings.drain(..);
            findings.reasons.extend(warnings.map(Warning::into_reason));
        }
        let outcome = findings.outcome();
        let Findings { versions, reasons, warnings, loaders } = findings;
        Self {
            path,
            kind: Some(kind),
            outcome,
            versions,
            consumer: kind.line().map(|line| (&consumer.line(line)).into()),
            release: consumer.release_for(kind).map(str::to_owned),
            loaders,
            reasons,
            warnings,
        }
    }

    /// Creates the verdict for a consumer on a path without an artifact.
    pub(super) fn without_artifact(
        path: String,
        consumer: &super::Consumer,
        reason: Reason,
    ) -> Self {
        Self {
            path,
            kind: None,
            outcome: reason.rule.outcome(),
            versions: None,
            consumer: None,
            release: consumer.release().map(str::to_owned),
            loaders: None,
            reasons: vec![reason],
            warnings: Vec::new(),
        }
    }

    /// Returns the outcome of the verdict.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Returns true if the artifact may be loaded.
    #[must_use]
    pub fn is_acceptable(&self) -> bool {
        self.outcome == Outcome::Acceptable
    }

    /// Returns the reasons against the artifact; the first is the one that TensorFlow would give.
    /// Empty if it is acceptable.
    #[must_use]
    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }

    /// Returns the warnings, which do not change the outcome.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.path, self.outcome)?;
        if let Some(kind) = self.kind {
            write!(f, " ({kind})")?;
        }
        for reason in &self.reasons {
            write!(f, "\n  {reason}")?;
        }
        for warning in &self.warnings {
            write!(f, "\n  warning: {warning}")?;
        }
        Ok(())
    }
}

/// The verdicts of several consumers on one artifact, in their order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Verdicts {
    /// The path as it was given; `-` for standard input.
    pub path: String,
    verdicts: Vec<Verdict>,
}

impl Verdicts {
    pub(super) const fn new(path: String, verdicts: Vec<Verdict>) -> Self {
        Self { path, verdicts }
    }

    /// Returns the verdicts, in the order of the consumers.
    pub fn iter(&self) -> std::slice::Iter<'_, Verdict> {
        self.verdicts.iter()
    }

    /// Returns the worst outcome of all; [`Outcome::Acceptable`] if there are no verdicts.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        self.iter().map(Verdict::outcome).max().unwrap_or(Outcome::Acceptable)
    }

    /// Returns the release of the first consumer that accepts the artifact; if the consumers are
    /// sorted by release, this is the oldest.
    #[must_use]
    pub fn oldest(&self) -> Option<&str> {
        self.iter().find(|verdict| verdict.is_acceptable())?.release.as_deref()
    }

    /// Returns the release of the last consumer that accepts the artifact.
    #[must_use]
    pub fn newest(&self) -> Option<&str> {
        self.iter().rfind(|verdict| verdict.is_acceptable())?.release.as_deref()
    }
}

impl IntoIterator for Verdicts {
    type Item = Verdict;
    type IntoIter = std::vec::IntoIter<Verdict>;

    fn into_iter(self) -> Self::IntoIter {
        self.verdicts.into_iter()
    }
}

impl<'v> IntoIterator for &'v Verdicts {
    type Item = &'v Verdict;
    type IntoIter = std::slice::Iter<'v, Verdict>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
