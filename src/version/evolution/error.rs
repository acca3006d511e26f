//! The errors of steps that are refused.

use serdes_abi::ErrorKind;

use super::{Date, ReleaseError};

/// The error of a step that would leave readers behind, or of numbers that contradict each other.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EvolutionError {
    /// A bound is above the build's own version, so that the build could not read what it writes.
    #[error("{bound} {found} is above the build's own version {version}; raise the version first")]
    BoundAboveVersion {
        /// `min_consumer` or `min_producer`.
        bound: &'static str,
        /// The number found.
        found: i32,
        /// The build's version.
        version: i32,
    },
    /// A bound would go back.
    #[error("{bound} {found} is below the present {present}; bounds only go up")]
    BoundGoesBack {
        /// `min_consumer` or `min_producer`.
        bound: &'static str,
        /// The number found.
        found: i32,
        /// The present number.
        present: i32,
    },
    /// Functionality may be removed in a major release only.
    #[error("{operation} can only be removed with a major release; until then it stays banned")]
    NotAMajorRelease {
        /// The operation.
        operation: String,
    },
    /// A patch release may not do anything that the previous patch cannot follow.
    #[error(
        "{step} is not for a patch release: the patches of a minor release read each other's data, in \
         both directions; do it in the next minor release"
    )]
    NotInAPatchRelease {
        /// The step.
        step: &'static str,
    },
    /// Producers would emit an operation that consumers within the window do not know yet.
    #[error(
        "producers may not emit {operation} on {day}: consumers have it since {added} only, and those \
         of the {window} days before do not; emit it from {first} on"
    )]
    TooEarlyToEmit {
        /// The operation.
        operation: String,
        /// The day on which consumers got it.
        added: Date,
        /// The requested day.
        day: Date,
        /// The days for which new data is promised to older consumers.
        window: i64,
        /// The first day on which producers may emit the operation.
        first: Date,
    },
    /// A consumer is banned that does not exist yet.
    #[error("consumer {found} is newer than the build's own version {version}; nothing to ban")]
    ConsumerNotOut {
        /// The consumer.
        found: i32,
        /// The build's version.
        version: i32,
    },
    /// A build would refuse its own data.
    #[error(
        "consumer {version} is this build itself: it would refuse what it writes; mend it under a new \
         version, and let that one ban it"
    )]
    BansItself {
        /// The build's version.
        version: i32,
    },
    /// There is no number left.
    #[error("version {version} is the last one that an int32 holds; start a new line")]
    OutOfNumbers {
        /// The build's version.
        version: i32,
    },
    /// The number of a day is taken already.
    #[error(
        "{line} counts days, and {number}, which stands for {day}, is not above the last number {last}; \
         take a later day"
    )]
    NumberOfDayTaken {
        /// The line.
        line: String,
        /// The day of the step.
        day: Date,
        /// The number that stands for it.
        number: i32,
        /// The newest number of the line.
        last: i32,
    },
    /// A step is dated before the newest entry of the line.
    #[error("the day {found} is before {last}, that of the step before; steps only go forward")]
    DayGoesBack {
        /// The day of the step.
        found: Date,
        /// The day of the newest entry, or of the step before.
        last: Date,
    },
    /// A line has no version on the day.
    #[error("{line} has no version on {day}; the first step of a line is its first entry")]
    NoVersionYet {
        /// The line.
        line: String,
        /// The day.
        day: Date,
    },
    /// A text is not a release, or releases are not in ascending order.
    #[error(transparent)]
    Release(#[from] ReleaseError),
}

impl EvolutionError {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::OutOfNumbers { .. } => ErrorKind::Limit,
            _ => ErrorKind::InvalidInput,
        }
    }
}
