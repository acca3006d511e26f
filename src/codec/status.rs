//! Errors that travel between builds: a code and a message.

use super::ErrorKind;

pub use serdes_abi::StatusCode;

/// A code with a message, the form in which errors travel between builds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Status {
    code: StatusCode,
    message: String,
}

impl Status {
    /// Creates a status of this code.
    pub fn new(code: StatusCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// Returns the code.
    pub const fn code(&self) -> StatusCode {
        self.code
    }

    /// Returns the kind of the error, as its code determines it.
    pub const fn kind(&self) -> ErrorKind {
        ErrorKind::of_code(self.code)
    }

    /// Returns the message, without the code.
    pub fn message(&self) -> &str {
        &self.message
    }
}
