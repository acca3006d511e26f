//! Results of a plug-in's operations.

use std::{ffi::CString, fmt};

use serdes_abi::TF_Code;

/// The error of an operation: a code of the C API and a message for people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    code: TF_Code,
    message: String,
}

/// The result of an operation of a plug-in.
pub type Result<T, E = Status> = std::result::Result<T, E>;

impl Status {
    /// Creates a failure with this code. `OK` is not a failure, so it becomes `UNKNOWN`.
    #[must_use]
    pub fn new(code: TF_Code, message: impl Into<String>) -> Self {
        let code = if code == TF_Code::OK { TF_Code::UNKNOWN } else { code };
        Self { code, message: message.into() }
    }

    /// Creates the failure that the caller passed an argument that is never valid.
    #[must_use]
    pub fn invalid_argument(message: impl Into<String>) -> Self {
        Self::new(TF_Code::INVALID_ARGUMENT, message)
    }

    /// Creates the failure that the system is not in the state that the operation needs.
    #[must_use]
    pub fn failed_precondition(message: impl Into<String>) -> Self {
        Self::new(TF_Code::FAILED_PRECONDITION, message)
    }

    /// Creates the failure that a requested item does not exist.
    #[must_use]
    pub fn not_found(message: impl Into<String>) -> Self {
        Self::new(TF_Code::NOT_FOUND, message)
    }

    /// Creates the failure that memory, threads or another resource are used up.
    #[must_use]
    pub fn resource_exhausted(message: impl Into<String>) -> Self {
        Self::new(TF_Code::RESOURCE_EXHAUSTED, message)
    }

    /// Creates the failure that the plug-in does not support the operation.
    #[must_use]
    pub fn unimplemented(message: impl Into<String>) -> Self {
        Self::new(TF_Code::UNIMPLEMENTED, message)
    }

    /// Creates the failure that the plug-in broke an invariant of its own.
    #[must_use]
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(TF_Code::INTERNAL, message)
    }

    /// Returns the code; never `OK`.
    #[must_use]
    pub fn code(&self) -> TF_Code {
        self.code
    }

    /// Returns the message for people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }

    /// Adds the context of the failure before its message.
    #[must_use]
    pub fn context(self, context: impl fmt::Display) -> Self {
        Self { code: self.code, message: format!("{context}: {}", self.message) }
    }

    /// Returns the message as a C string: NUL bytes inside, which would truncate it, become the
    /// replacement character.
    pub(crate) fn c_message(&self) -> CString {
        CString::new(self.message.as_str()).unwrap_or_else(|_| {
            CString::new(self.message.replace('\0', "\u{fffd}")).unwrap_or_default()
        })
    }
}

impl fmt::Display for Status {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {}", self.code, self.message)
    }
}

impl std::error::Error for Status {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ok_is_no_failure() {
        assert_eq!(Status::new(TF_Code::OK, "odd").code(), TF_Code::UNKNOWN);
    }

    #[test]
    fn a_nul_byte_does_not_cut_the_message() {
        let status = Status::internal("before\0after");
        assert_eq!(status.c_message().to_str(), Ok("before\u{fffd}after"));
    }

    #[test]
    fn context_stands_before_the_message_and_keeps_the_code() {
        let status = Status::not_found("no block").context("copy");
        assert_eq!(status, Status::not_found("copy: no block"));
        assert_eq!(status.to_string(), "NOT_FOUND: copy: no block");
    }
}
