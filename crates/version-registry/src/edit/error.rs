//! The errors of steps that are refused.

use std::io;

use crate::{Date, RegistryErrors};

/// An error of changing a versions.toml.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EditError {
    /// The file cannot be read.
    #[error(
        "{file}: cannot be read: {source}{}",
        if source.kind() == io::ErrorKind::NotFound { "; `serdes versions init` makes the first one" } else { "" }
    )]
    Read {
        /// The name of the file, as given.
        file: String,
        /// The cause.
        source: io::Error,
    },
    /// The file cannot be written; its previous content is unchanged.
    #[error("{file}: cannot be written, and is as it was: {source}")]
    Write {
        /// The name of the file, as given.
        file: String,
        /// The cause.
        source: io::Error,
    },
    /// The file exists already, and is not overwritten.
    #[error("{file}: there is one already; `serdes versions add` adds to it")]
    Exists {
        /// The name of the file, as given.
        file: String,
    },
    /// The file cannot be created.
    #[error("{file}: cannot be made: {source}")]
    NotCreated {
        /// The name of the file, as given.
        file: String,
        /// The cause.
        source: io::Error,
    },
    /// The file already breaks a rule.
    #[error("the file breaks a rule before anything is changed; mend that first:\n{0}")]
    Invalid(RegistryErrors),
    /// The file would break a rule.
    #[error("nothing is changed, since the result would break a rule:\n{0}")]
    Refused(RegistryErrors),
    /// There is no line with this name.
    #[error("there is no line {found:?}; the lines are {known}")]
    UnknownLine {
        /// The name, truncated to 60 characters.
        found: String,
        /// The existing lines.
        known: String,
    },
    /// An entry has neither formats nor a summary.
    #[error("an entry needs a summary or formats: say what is new with it")]
    NothingSaid,
    /// The line has no number left, or none for the day.
    #[error("{line} has no number for {day}: the last one is {last}; start a new line")]
    OutOfNumbers {
        /// The line.
        line: String,
        /// The day of the entry.
        day: Date,
        /// The newest number.
        last: i32,
    },
    /// The day of the registry would go back.
    #[error("as_of is {as_of}, and {found} is before it; a registry's day only goes forward")]
    AsOfGoesBack {
        /// The requested day.
        found: Date,
        /// The day of the registry.
        as_of: Date,
    },
    /// The file is written in a form that cannot take another entry.
    #[error(
        "{file}:{row}: the entries of {line} are written as an inline array; write them as \
         [[line.entry]] tables, so that one can be added"
    )]
    InlineEntries {
        /// The name of the file, as given.
        file: String,
        /// The row of the last entry.
        row: usize,
        /// The line.
        line: String,
    },
}
