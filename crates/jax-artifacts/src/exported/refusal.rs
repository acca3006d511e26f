//! Reasons for which `jax.export.deserialize` refuses a file.

use super::flatbuffer::ReadError;
use crate::{excerpt::excerpt, rule::Rule};

/// Limit on the length of found text in messages, in bytes.
const LONGEST: usize = 512;

pub(super) type Result<T> = std::result::Result<T, Box<Refusal>>;

/// The reason why a file is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) rule: Rule,
    pub(crate) found: String,
    pub(crate) expected: String,
    pub(crate) message: String,
    pub(crate) place: String,
}

impl Refusal {
    pub(super) fn new(
        rule: Rule,
        found: impl Into<String>,
        expected: impl Into<String>,
        message: String,
        place: &str,
    ) -> Box<Self> {
        let found = excerpt(&found.into(), LONGEST).to_owned();
        let message = excerpt(&message, 2 * LONGEST).to_owned();
        Box::new(Self { rule, found, expected: expected.into(), message, place: place.to_owned() })
    }

    /// Converts an error of reading a place to a refusal.
    pub(super) fn at<T>(read: std::result::Result<T, ReadError>, place: &str) -> Result<T> {
        read.map_err(|error| Self::unreadable(error, place))
    }

    pub(super) fn unreadable(error: ReadError, place: &str) -> Box<Self> {
        let (found, expected) = match error {
            ReadError::PastEnd { at } => {
                (format!("an offset to byte {at}"), "a place inside the file")
            }
            ReadError::Absent => ("nothing".to_owned(), "the field"),
            ReadError::NotText { at } => (format!("bytes that are no text at byte {at}"), "UTF-8"),
            ReadError::TooMuch => {
                let found = "offsets to the same place, over and over".to_owned();
                (found, "as much as a file of this size holds")
            }
        };
        let message = format!("{place}: there is {found}, expected {expected}");
        Self::new(Rule::Corrupt, found, expected, message, place)
    }

    pub(super) fn serialization(version: u16) -> Box<Self> {
        let rule = if version > 3 { Rule::TooNew } else { Rule::TooOld };
        let message = format!(
            "the file says serialization version {version}, and this release takes 2 and 3"
        );
        Self::new(rule, version.to_string(), "2..3", message, "serialization version")
    }

    pub(super) fn expired(found: &str) -> Box<Self> {
        let message = format!(
            "the file has {found}, which this release no longer reads: it is older than six months"
        );
        Self::new(Rule::TooOld, found, "a file of jax 0.9.0 or later", message, "")
    }

    pub(super) fn leaves(found: usize, expected: usize, values: &str) -> Box<Self> {
        let message = format!("the tree has {found} leaves, and there are {expected} {values}");
        Self::new(Rule::Corrupt, found.to_string(), expected.to_string(), message, values)
    }

    pub(super) fn index(place: &str, table: &str) -> Box<Self> {
        let message = format!("{place} refer to {table} that are not in the table of {table}");
        Self::new(Rule::Corrupt, "an index", format!("one of the table of {table}"), message, place)
    }

    pub(super) fn shardings(found: usize, at: u32, place: &str) -> Box<Self> {
        let message = format!("there are {found} shardings, and number {at} of {place} has none");
        let expected = format!("more than {at}");
        Self::new(Rule::Corrupt, found.to_string(), expected, message, place)
    }

    pub(super) fn rank(found: usize, expected: usize, place: &str) -> Box<Self> {
        let message = format!("a sharding of {place} partitions {expected} dimensions of {found}");
        Self::new(Rule::Corrupt, found.to_string(), format!("at least {expected}"), message, place)
    }
}
