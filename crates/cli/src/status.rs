//! The exit status of the command. This module must never know who ends with it.

use serdes_check::Outcome;

/// The exit status of the command: the worst of its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ExitStatus {
    /// Acceptable, or done.
    Success = 0,
    /// The answer is no.
    Negative = 1,
    /// Could not tell, or could not do it.
    Error = 2,
}

impl ExitStatus {
    /// Returns the status of that number.
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        [Self::Success, Self::Negative, Self::Error]
            .into_iter()
            .find(|status| *status as u8 == number)
    }

    /// Returns the worse of two.
    pub(crate) fn worst(self, other: Self) -> Self {
        self.max(other)
    }

    /// Exit status of a verdict.
    pub(crate) fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Acceptable => Self::Success,
            Outcome::Unacceptable => Self::Negative,
            Outcome::Unreadable => Self::Error,
        }
    }
}
