//! The exit status of the command. This module must never know who ends with it.

use serdes_check::Outcome;

/// The exit status of the command: the worst of its inputs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Status {
    /// Acceptable, or done.
    Yes = 0,
    /// The answer is no.
    No = 1,
    /// Could not tell, or could not do it.
    Failed = 2,
}

impl Status {
    /// The status of that number.
    pub(crate) fn from_number(number: u8) -> Option<Self> {
        [Self::Yes, Self::No, Self::Failed].into_iter().find(|status| *status as u8 == number)
    }

    /// The worse of two.
    pub(crate) fn worst(self, other: Self) -> Self {
        self.max(other)
    }

    /// Exit status of a verdict.
    pub(crate) fn of(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Acceptable => Self::Yes,
            Outcome::Unacceptable => Self::No,
            Outcome::Unreadable => Self::Failed,
        }
    }
}
