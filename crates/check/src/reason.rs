//! Reasons and warnings: the objections of a rule to an artifact, as data.

use std::fmt;

use serdes::version::Rejection;

use super::{Remedy, Rule, rule::Message};

/// The reason why an artifact is not acceptable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Reason {
    /// The rule that the artifact breaks.
    pub rule: Rule,
    /// The value found: the number, for the rules of versions.
    pub found: Option<String>,
    /// The accepted values: `<= 2474`.
    pub expected: Option<String>,
    /// A sentence for people.
    pub message: String,
    /// The remedy; [`Display`](fmt::Display) formats it for people.
    pub remedy: Remedy,
    /// The place inside the artifact: a node, a tensor, a meta graph.
    #[cfg_attr(feature = "serde", serde(rename = "where"))]
    pub place: Option<String>,
}

impl Reason {
    /// Creates a reason without numbers, with the general remedy of the rule; many messages end
    /// with a more specific one.
    pub fn new(rule: Rule, message: impl Into<String>) -> Self {
        Self {
            rule,
            found: None,
            expected: None,
            message: message.into(),
            remedy: Remedy::General(rule),
            place: None,
        }
    }

    /// Sets the remedy.
    #[must_use]
    pub fn with_remedy(self, remedy: Remedy) -> Self {
        Self { remedy, ..self }
    }

    /// Sets the value found and the values that would have been accepted.
    #[must_use]
    pub fn with_numbers(mut self, found: impl fmt::Display, expected: impl fmt::Display) -> Self {
        self.found = Some(found.to_string());
        self.expected = Some(expected.to_string());
        self
    }

    /// Sets the place inside the artifact.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }

    /// Sets the place, if it is known.
    pub(super) fn at_any(self, place: Option<&str>) -> Self {
        match place {
            Some(place) => self.at(place),
            None => self,
        }
    }

    /// Converts a rejection by the VersionDef rule to a reason.
    #[must_use]
    pub fn of_rejection(rejection: &Rejection) -> Self {
        Self::new(Rule::of_versions(rejection.rule), rejection.message())
            .with_remedy(Remedy::Versions(rejection.remedy()))
            .with_numbers(rejection.found(), rejection.expected())
    }
}

impl From<Message> for Reason {
    fn from(message: Message) -> Self {
        Self::new(message.rule, message.text)
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.rule, self.message)?;
        if let Some(place) = &self.place {
            write!(f, " (at {place})")?;
        }
        match &self.remedy {
            // The rule's own remedy is general; the message has a specific one.
            Remedy::General(_) => Ok(()),
            remedy => write!(f, "; {remedy}"),
        }
    }
}

impl std::error::Error for Reason {}

/// A fact that a user should know, which does not affect the verdict.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Warning {
    /// The rule of the warning.
    pub rule: Rule,
    /// A sentence for people.
    pub message: String,
    /// The place inside the artifact.
    #[cfg_attr(feature = "serde", serde(rename = "where"))]
    pub place: Option<String>,
}

impl Warning {
    /// Creates a warning about the whole artifact.
    pub fn new(rule: Rule, message: impl Into<String>) -> Self {
        Self { rule, message: message.into(), place: None }
    }

    /// Sets the place inside the artifact.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }

    /// Sets the place, if it is known.
    pub(super) fn at_any(self, place: Option<&str>) -> Self {
        match place {
            Some(place) => self.at(place),
            None => self,
        }
    }

    /// Converts the warning to a reason, for callers that accept no warnings.
    pub(super) fn into_reason(self) -> Reason {
        let Self { rule, message, place } = self;
        Reason { place, ..Reason::new(rule, message) }
    }
}

impl From<Message> for Warning {
    fn from(message: Message) -> Self {
        Self::new(message.rule, message.text)
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
