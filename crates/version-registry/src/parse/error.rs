//! The errors of a versions.toml.

use std::fmt;

use crate::Date;

/// One broken rule and its position.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RegistryError {
    /// The name of the file, as given.
    pub file: String,
    /// The row in the file, counted from 1; 0 if the file could not be read.
    pub row: usize,
    /// The line of versions, the product or the layouts concerned.
    pub line: Option<String>,
    /// The entry, release or layout concerned.
    pub entry: Option<String>,
    /// The broken rule.
    pub defect: Defect,
}

impl fmt::Display for RegistryError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.file)?;
        if self.row > 0 {
            write!(f, ":{}", self.row)?;
        }
        if let Some(line) = &self.line {
            write!(f, ": {line}")?;
        }
        if let Some(entry) = &self.entry {
            write!(f, ", {entry}")?;
        }
        write!(f, ": {}", self.defect)
    }
}

impl std::error::Error for RegistryError {}

/// Every broken rule of a file, in the order of the file; at least one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RegistryErrors(pub(crate) Vec<RegistryError>);

impl RegistryErrors {
    /// Returns the errors.
    pub fn iter(&self) -> std::slice::Iter<'_, RegistryError> {
        self.0.iter()
    }
}

impl fmt::Display for RegistryErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, error) in self.0.iter().enumerate() {
            if at > 0 {
                f.write_str("\n")?;
            }
            write!(f, "{error}")?;
        }
        Ok(())
    }
}

impl std::error::Error for RegistryErrors {}

/// A broken rule of versions.toml.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Defect {
    /// The file cannot be read.
    #[error("the file cannot be read: {0}")]
    Unreadable(String),
    /// The file is not TOML.
    #[error("not valid TOML: {0}")]
    Syntax(String),
    /// A required key is missing.
    #[error("the key `{key}` is missing; add it")]
    MissingKey {
        /// The key.
        key: &'static str,
    },
    /// A key is unknown here.
    #[error("the key `{key}` is unknown here; known are {}", known.join(", "))]
    UnknownKey {
        /// The key found.
        key: String,
        /// The known keys.
        known: &'static [&'static str],
    },
    /// A value has the wrong type.
    #[error("`{key}` is {found}; it must be {expected}")]
    WrongType {
        /// The key.
        key: String,
        /// The type found.
        found: &'static str,
        /// The expected type.
        expected: &'static str,
    },
    /// A required text is empty.
    #[error("`{key}` is empty; say something")]
    Empty {
        /// The key.
        key: &'static str,
    },
    /// A name has an invalid form.
    #[error("`{key}` is {found:?}; it must be {expected}")]
    BadName {
        /// The key.
        key: String,
        /// The name found.
        found: String,
        /// The form of such names.
        expected: &'static str,
    },
    /// Two items of the same kind have the same name.
    #[error("`{key}` {found:?} is used twice; names are unique")]
    Duplicate {
        /// The key.
        key: &'static str,
        /// The name found.
        found: String,
    },
    /// A number is outside the range that the wire format carries.
    #[error("`{key}` is {found}; it must lie in {expected}")]
    OutOfRange {
        /// The key.
        key: String,
        /// The number found.
        found: String,
        /// The range.
        expected: &'static str,
    },
    /// A line has no versions.
    #[error("there is no entry; add `[[line.entry]]`")]
    NoEntries,
    /// Numbers are not in ascending order.
    #[error("the number {found} follows {previous}; numbers only go up, add entries at the end")]
    NumberGoesBackwards {
        /// The number found.
        found: i32,
        /// The number before it.
        previous: i32,
    },
    /// Days go back.
    #[error("introduced on {found}, but the entry before it on {previous}; days never go back")]
    DateGoesBackwards {
        /// The day found.
        found: Date,
        /// The day of the entry before.
        previous: Date,
    },
    /// A day is after the day of the registry.
    #[error("the day {found} is after as_of = {as_of}; move as_of forward or correct the day")]
    DateAfterAsOf {
        /// The day found.
        found: Date,
        /// The day of the registry.
        as_of: Date,
    },
    /// A number that counts days does not fit its day.
    #[error("introduced on {found}, but the number counts days and stands for {expected}")]
    DateDoesNotFitNumber {
        /// The day found.
        found: Date,
        /// The day that the number stands for.
        expected: Date,
    },
    /// The minimum is not the number of an entry.
    #[error("the minimum {minimum} is not the number of an entry; name one of the entries")]
    MinimumIsNotAnEntry {
        /// The minimum.
        minimum: i32,
    },
    /// The minimum was withdrawn.
    #[error("the minimum {minimum} is withdrawn; name an entry that is in use")]
    MinimumIsWithdrawn {
        /// The minimum.
        minimum: i32,
    },
    /// The minimum is too new for builds as old as the line's window.
    #[error(
        "the minimum {minimum} is {age} days old on {as_of}; a minimum that is not the first entry \
         must be at least {window_days} days old (`window_days`), or what builds of {window_days} days \
         ago write can be read no more"
    )]
    MinimumIsTooYoung {
        /// The minimum.
        minimum: i32,
        /// Its age in days.
        age: i64,
        /// The day of the registry.
        as_of: Date,
        /// The line's window in days.
        window_days: i64,
    },
    /// A format is listed as removed that did not change with the entry.
    #[error("`removed` names {format:?}, which is not among the formats of this entry")]
    RemovedIsNotAFormat {
        /// The format.
        format: String,
    },
    /// A format is removed that the selection for older builds still writes.
    #[error(
        "the format {format} is removed, but it is written up to number {last} and the version of \
         {window_days} days ago is {week_4_old}; keep the format until that version is above {last}"
    )]
    RemovedWhileSelected {
        /// The format.
        format: String,
        /// The last number that writes it.
        last: i32,
        /// The number selected for builds as old as the window.
        week_4_old: i32,
        /// The line's window in days.
        window_days: i64,
    },
    /// A format is removed that data within the supported range uses.
    #[error(
        "the format {format} is removed, but it is read up to number {last} and the minimum is \
         {minimum}; raise the minimum above {last} first"
    )]
    RemovedAboveMinimum {
        /// The format.
        format: String,
        /// The last number that uses it.
        last: i32,
        /// The minimum.
        minimum: i32,
    },
    /// The minimum excludes a format whose code is not listed as removed.
    #[error(
        "the format {format} is read up to number {last}, which is below the minimum {minimum}: nothing \
         can use it any more; name it in `removed` of this entry and delete its code, or lower the minimum"
    )]
    KeptBelowMinimum {
        /// The format.
        format: String,
        /// The last number that uses it.
        last: i32,
        /// The minimum.
        minimum: i32,
    },
    /// A banned consumer is not an entry of the line.
    #[error("{key} names {found}, which is not the number of an entry")]
    BadConsumerIsNotAnEntry {
        /// The key.
        key: &'static str,
        /// The number found.
        found: i32,
    },
    /// A build would refuse its own data.
    #[error(
        "{key} names {current}, the current number: a build would refuse what it writes itself; add an \
         entry for the build that is mended, or take the current number back (`withdrawn`)"
    )]
    BadConsumerIsCurrent {
        /// The key.
        key: &'static str,
        /// The current number.
        current: i32,
    },
    /// A build would refuse every producer, including its own data.
    #[error(
        "min_producer {min_producer} is above the current number {current}: a build would refuse what it \
         writes itself; add an entry of that number first, or lower min_producer"
    )]
    MinProducerAboveCurrent {
        /// The oldest producer named.
        min_producer: i32,
        /// The current number.
        current: i32,
    },
    /// `recorded_as` names a type that gets no format with the entry.
    #[error("`recorded_as` names {format:?}, which is not among the formats of this entry")]
    RecordedAsIsNotAFormat {
        /// The type.
        format: String,
    },
    /// A recorded number is not the number of an earlier entry.
    #[error(
        "`recorded_as` says that {format} records {recorded}; that must be the number of an entry \
         before {number}"
    )]
    RecordedAsIsNotEarlier {
        /// The type.
        format: String,
        /// The number that data would record.
        recorded: i32,
        /// The number of the entry.
        number: i32,
    },
    /// `also_read` names a type that has no earlier format, or gets a new one.
    #[error(
        "`also_read` names {format:?}, which has no format before this entry, or a new one with it"
    )]
    AlsoReadIsNotAFormat {
        /// The type.
        format: String,
    },
    /// A feature belongs to a type that does not exist yet.
    #[error("`features` names {format:?}, which no entry up to this one names under `formats`")]
    FeatureOfUnknownFormat {
        /// The type.
        format: String,
    },
    /// A line embeds itself.
    #[error("`embeds` names the line itself; its own values follow the requested version")]
    EmbedsItself,
    /// An embedded version does not exist.
    #[error(
        "`embeds` says {number} of {embedded}, which is not the number of an entry of that line"
    )]
    EmbeddedIsNotAnEntry {
        /// The line.
        embedded: String,
        /// The number.
        number: i32,
    },
    /// An embedded version is older than before.
    #[error(
        "`embeds` says {number} of {embedded} after {previous}; embedded versions never go back"
    )]
    EmbeddedGoesBack {
        /// The line.
        embedded: String,
        /// The number.
        number: i32,
        /// The number of an earlier entry.
        previous: i32,
    },
    /// The producer could not read its own data.
    #[error("min_consumer {min_consumer} is above the entry's own number {number}")]
    MinConsumerAboveNumber {
        /// The oldest consumer named.
        min_consumer: i32,
        /// The number of the entry.
        number: i32,
    },
    /// Releases are not in ascending order.
    #[error("the release {found} follows {previous}; releases only go up")]
    ReleaseGoesBackwards {
        /// The release found.
        found: String,
        /// The release before it.
        previous: String,
    },
    /// A release has a number in a line that does not exist.
    #[error("there is no line {line:?}")]
    ReleaseOfUnknownLine {
        /// The name found.
        line: String,
    },
    /// A release has a number that is not an entry of its line.
    #[error("{number} is not the number of an entry of the line {line}")]
    ReleaseNumberIsNotAnEntry {
        /// The line.
        line: String,
        /// The number found.
        number: i32,
    },
}
