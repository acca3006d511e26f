//! Failures of commands.
//!
//! Convention: the text of a library error includes its cause, so that the command prints only the
//! text. Remedies by the command's options are hints of the command.

use std::{error::Error, fmt, io};

use crate::status::ExitStatus;

/// Kind of a failure, which determines the exit status, and if a message is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FailureKind {
    /// A negative answer.
    Answer,
    /// The work could not be done.
    Failed,
    /// Standard output was closed by its reader, which is not an error and needs no message.
    OutputClosed,
}

/// A failure of a command, with hints for its user.
#[derive(Debug)]
pub(crate) struct Failure {
    kind: FailureKind,
    error: Box<dyn Error + Send + Sync>,
    hints: Vec<String>,
}

impl Failure {
    /// Creates a failure of the command: status 2.
    pub(crate) fn new(message: impl fmt::Display) -> Self {
        Self::of(message.to_string())
    }

    /// Creates a negative answer: status 1.
    pub(crate) fn no(message: impl fmt::Display) -> Self {
        Self { kind: FailureKind::Answer, ..Self::new(message) }
    }

    /// Converts an error of the library or the system: status 2.
    pub(crate) fn of(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        Self { kind: FailureKind::Failed, error: error.into(), hints: Vec::new() }
    }

    /// Adds a hint: the name of an option, another command.
    #[must_use]
    pub(crate) fn with_hint(mut self, hint: impl fmt::Display) -> Self {
        self.hints.push(hint.to_string());
        self
    }

    /// Sets the input, one of several, that the failure concerns.
    #[must_use]
    pub(crate) fn about(mut self, thing: impl fmt::Display) -> Self {
        self.error = format!("{thing}: {}", self.error).into();
        self
    }

    /// Returns the exit status.
    pub(crate) fn status(&self) -> ExitStatus {
        match self.kind {
            FailureKind::Answer => ExitStatus::Negative,
            FailureKind::Failed | FailureKind::OutputClosed => ExitStatus::Error,
        }
    }

    /// Returns true if the reader of standard output is gone.
    pub(crate) fn is_of_closed_output(&self) -> bool {
        self.kind == FailureKind::OutputClosed
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.error)?;
        self.hints.iter().try_for_each(|hint| write!(f, "; {hint}"))
    }
}

/// Converts an error of standard output.
impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self { kind: FailureKind::OutputClosed, ..Self::of(error) };
        }
        Self::new(format_args!("cannot write to standard output: {error}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_output_is_told_by_its_kind_and_never_by_its_words() {
        let closed = Failure::from(io::Error::from(io::ErrorKind::BrokenPipe));
        assert!(closed.is_of_closed_output());
        assert_eq!(closed.status(), ExitStatus::Error);
        assert!(!Failure::new(&closed).is_of_closed_output());
    }

    #[test]
    fn hints_stand_behind_the_error_and_change_no_status() {
        let failure = Failure::no("refused").with_hint("name a layout").with_hint("or two");
        assert_eq!(failure.to_string(), "refused; name a layout; or two");
        assert_eq!(failure.status(), ExitStatus::Negative);
        assert_eq!(Failure::of("broken").status(), ExitStatus::Error);
    }
}
