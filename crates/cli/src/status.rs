//! Exit statuses of the command. Does not depend on the commands that return them.

use serdes_check::Outcome;

/// The exit status of the command: the worst of all inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ExitStatus {
    /// Acceptable, or successful.
    Success = 0,
    /// A negative answer.
    Negative = 1,
    /// An error.
    Error = 2,
}

impl ExitStatus {
    /// Returns the status with this number.
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        [Self::Success, Self::Negative, Self::Error]
            .into_iter()
            .find(|status| *status as u8 == number)
    }

    /// Returns the worse of two statuses.
    pub(crate) fn worst(self, other: Self) -> Self {
        self.max(other)
    }

    /// Returns the exit status for a verdict.
    pub(crate) fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Acceptable => Self::Success,
            Outcome::Unacceptable => Self::Negative,
            Outcome::Unreadable => Self::Error,
        }
    }
}
