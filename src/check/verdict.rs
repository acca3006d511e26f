//! The answer: acceptable, unacceptable or unreadable, with reasons and warnings as data.

use std::fmt;

use super::{Kind, Rule};
use crate::version::{Rejection, VersionDef, VersionRule};

/// The verdict in one word. The worst of several is the greatest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize), serde(rename_all = "snake_case"))]
pub enum Outcome {
    /// It may be loaded.
    Acceptable,
    /// It may not, and it is known why.
    Unacceptable,
    /// Nobody can tell: it cannot be read.
    Unreadable,
}

impl Outcome {
    /// The exit status of the command: 0, 1 or 2.
    #[must_use]
    pub const fn exit_status(self) -> u8 {
        match self {
            Self::Acceptable => 0,
            Self::Unacceptable => 1,
            Self::Unreadable => 2,
        }
    }

    /// The word that programs compare.
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

/// Why an artifact is not acceptable.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Reason {
    /// The rule that it breaks.
    pub rule: Rule,
    /// What was found: for the rules of versions, the number.
    pub found: Option<String>,
    /// What would have been accepted: `<= 2474`.
    pub expected: Option<String>,
    /// A sentence for people.
    pub message: String,
    /// What to do, for people.
    pub remedy: String,
    /// The place inside of the artifact: a node, a tensor, a meta graph.
    #[cfg_attr(feature = "serde", serde(rename = "where"))]
    pub place: Option<String>,
}

impl Reason {
    /// A reason without numbers. An empty `remedy` stands for the rule's own: the message of many errors
    /// ends with a better one.
    pub fn new(rule: Rule, message: impl Into<String>, remedy: impl Into<String>) -> Self {
        let mut remedy = remedy.into();
        if remedy.is_empty() {
            rule.explain().remedy.clone_into(&mut remedy);
        }
        Self { rule, found: None, expected: None, message: message.into(), remedy, place: None }
    }

    /// The same with what was found and what would have been accepted.
    #[must_use]
    pub fn with_numbers(mut self, found: impl fmt::Display, expected: impl fmt::Display) -> Self {
        self.found = Some(found.to_string());
        self.expected = Some(expected.to_string());
        self
    }

    /// The same at a place inside of the artifact.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }

    /// The answer of the VersionDef rule as a reason.
    #[must_use]
    pub fn of_rejection(rejection: &Rejection) -> Self {
        let rule = match rejection.rule {
            VersionRule::ProducerTooOld => Rule::ProducerTooOld,
            VersionRule::MinConsumer => Rule::MinConsumer,
            VersionRule::BadConsumer => Rule::BadConsumer,
            // A consumer that contradicts itself can judge nothing.
            _ => Rule::Unsupported,
        };
        let remedy = rejection.remedy();
        let message = rejection.to_string();
        let message = message.strip_suffix(&format!("; {remedy}")).unwrap_or(&message).to_owned();
        Self::new(rule, message, remedy).with_numbers(rejection.found(), rejection.expected())
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.message)?;
        if let Some(place) = &self.place {
            write!(f, " (at {place})")?;
        }
        // The rule's own remedy is general; the message says what helps here.
        if self.remedy != self.rule.explain().remedy {
            write!(f, "; {}", self.remedy)?;
        }
        Ok(())
    }
}

impl std::error::Error for Reason {}

/// Something that a user should know, although the artifact is judged without it.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Warning {
    /// The rule that it is about.
    pub rule: Rule,
    /// A sentence for people.
    pub message: String,
    /// The place inside of the artifact.
    #[cfg_attr(feature = "serde", serde(rename = "where"))]
    pub place: Option<String>,
}

impl Warning {
    /// A warning about the whole artifact.
    pub fn new(rule: Rule, message: impl Into<String>) -> Self {
        Self { rule, message: message.into(), place: None }
    }

    /// The same at a place inside of the artifact.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }

    /// The warning as a reason, as `--strict` takes it.
    fn into_reason(self) -> Reason {
        let Self { rule, message, place } = self;
        Reason { place, ..Reason::new(rule, message, rule.explain().remedy) }
    }
}

impl fmt::Display for Warning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.message)?;
        match &self.place {
            Some(place) => write!(f, " (at {place})"),
            None => Ok(()),
        }
    }
}

/// The versions that an artifact records.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct Versions {
    /// The version of the producer.
    pub producer: i32,
    /// The oldest consumer that may take it.
    pub min_consumer: i32,
    /// Consumers that must not take it.
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

/// The consumer that was asked about.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct ConsumerVersion {
    /// The line that decides about artifacts of this kind.
    pub line: String,
    /// The consumer's version.
    pub version: i32,
    /// The oldest producer whose data it takes.
    pub min_producer: i32,
}

impl From<&crate::version::Consumer> for ConsumerVersion {
    fn from(consumer: &crate::version::Consumer) -> Self {
        Self {
            line: consumer.line.to_string(),
            version: consumer.version,
            min_producer: consumer.min_producer,
        }
    }
}

/// What is known of an artifact after it was checked.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Verdict {
    /// The path as it was given; `-` for standard input.
    pub path: String,
    /// The kind, unless there is nothing to tell it from.
    pub kind: Option<Kind>,
    #[cfg_attr(feature = "serde", serde(rename = "verdict"))]
    outcome: Outcome,
    /// The versions that it records, if it could be read that far.
    pub versions: Option<Versions>,
    /// The consumer that was asked about.
    pub consumer: Option<ConsumerVersion>,
    reasons: Vec<Reason>,
    warnings: Vec<Warning>,
}

impl Verdict {
    /// An acceptable artifact, until a reason is added.
    pub(crate) fn new(path: String, kind: Option<Kind>) -> Self {
        Self {
            path,
            kind,
            outcome: Outcome::Acceptable,
            versions: None,
            consumer: None,
            reasons: Vec::new(),
            warnings: Vec::new(),
        }
    }

    /// The verdict in one word.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        self.outcome
    }

    /// Whether it may be loaded.
    #[must_use]
    pub fn is_acceptable(&self) -> bool {
        self.outcome == Outcome::Acceptable
    }

    /// Why not; the first is the one that TensorFlow would give. Empty if it is acceptable.
    #[must_use]
    pub fn reasons(&self) -> &[Reason] {
        &self.reasons
    }

    /// What else a user should know.
    #[must_use]
    pub fn warnings(&self) -> &[Warning] {
        &self.warnings
    }

    /// Adds a reason. The first one decides between unacceptable and unreadable: what was understood well enough to be refused
    /// was read.
    pub(crate) fn refuse(&mut self, reason: Reason) {
        if self.reasons.is_empty() {
            self.outcome = reason.rule.outcome();
        }
        self.reasons.push(reason);
    }

    pub(crate) fn warn(&mut self, warning: Warning) {
        self.warnings.push(warning);
    }

    /// Turns warnings into reasons, as `--strict` does.
    pub(crate) fn strict(&mut self) {
        for warning in std::mem::take(&mut self.warnings) {
            self.refuse(warning.into_reason());
        }
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
