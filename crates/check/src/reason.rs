//! Reasons and warnings: what a rule has against an artifact, as data.

use std::fmt;

use serdes::version::Rejection;

use super::{Remedy, Rule, rule::Message};

/// Why an artifact is not acceptable.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
#[non_exhaustive]
pub struct Reason {
    /// The rule that it breaks.
    pub rule: Rule,
    /// The found item: for the rules of versions, the number.
    pub found: Option<String>,
    /// The accepted item: `<= 2474`.
    pub expected: Option<String>,
    /// A sentence for people.
    pub message: String,
    /// The remedy; [`Display`](fmt::Display) words it for people.
    pub remedy: Remedy,
    /// The place inside of the artifact: a node, a tensor, a meta graph.
    #[cfg_attr(feature = "serde", serde(rename = "where"))]
    pub place: Option<String>,
}

impl Reason {
    /// Creates a reason without numbers, and with the remedy that the rule gives in general: the
    /// message of many errors ends with a better one.
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

    /// Returns the same with what to do here.
    #[must_use]
    pub fn with_remedy(self, remedy: Remedy) -> Self {
        Self { remedy, ..self }
    }

    /// Returns the same with what was found and what would have been accepted.
    #[must_use]
    pub fn with_numbers(mut self, found: impl fmt::Display, expected: impl fmt::Display) -> Self {
        self.found = Some(found.to_string());
        self.expected = Some(expected.to_string());
        self
    }

    /// Returns the same at a place inside of the artifact.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }

    /// Returns the same at a place, where one is known.
    pub(super) fn at_any(self, place: Option<&str>) -> Self {
        match place {
            Some(place) => self.at(place),
            None => self,
        }
    }

    /// Returns the answer of the VersionDef rule as a reason.
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
            // The rule's own remedy is general; the message says what helps here.
            Remedy::General(_) => Ok(()),
            remedy => write!(f, "; {remedy}"),
        }
    }
}

impl std::error::Error for Reason {}

/// Something that a user should know, although the artifact is judged without it.
#[derive(Clone, Debug, PartialEq, Eq)]
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
    /// Creates a warning about the whole artifact.
    pub fn new(rule: Rule, message: impl Into<String>) -> Self {
        Self { rule, message: message.into(), place: None }
    }

    /// Returns the same at a place inside of the artifact.
    #[must_use]
    pub fn at(mut self, place: impl Into<String>) -> Self {
        self.place = Some(place.into());
        self
    }

    /// Returns the same at a place, where one is known.
    pub(super) fn at_any(self, place: Option<&str>) -> Self {
        match place {
            Some(place) => self.at(place),
            None => self,
        }
    }

    /// Returns the warning as a reason, for callers who take none.
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
