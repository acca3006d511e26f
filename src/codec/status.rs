use std::{fmt, str::FromStr};

/// The canonical status codes, with the numbers that gRPC, Abseil and TensorFlow share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum StatusCode {
    /// No error.
    Ok = 0,
    /// The caller gave up.
    Cancelled = 1,
    /// An error that no other code describes.
    Unknown = 2,
    /// The argument is wrong, whatever the state of the system.
    InvalidArgument = 3,
    /// The time ran out.
    DeadlineExceeded = 4,
    /// What was asked for is not there.
    NotFound = 5,
    /// What was to be made is there already.
    AlreadyExists = 6,
    /// The caller may not do this.
    PermissionDenied = 7,
    /// A quota, a limit or the memory is used up.
    ResourceExhausted = 8,
    /// The system is not in the state that the operation needs.
    FailedPrecondition = 9,
    /// The operation was given up, for example in a conflict with another.
    Aborted = 10,
    /// Past the end of a valid range.
    OutOfRange = 11,
    /// Nobody implements this.
    Unimplemented = 12,
    /// An invariant of the system is broken.
    Internal = 13,
    /// Not reachable now; may be tried again.
    Unavailable = 14,
    /// Data is lost or damaged beyond repair.
    DataLoss = 15,
    /// The caller did not say who it is.
    Unauthenticated = 16,
}

impl StatusCode {
    /// All codes, in the order of their numbers.
    pub const ALL: [Self; 17] = [
        Self::Ok,
        Self::Cancelled,
        Self::Unknown,
        Self::InvalidArgument,
        Self::DeadlineExceeded,
        Self::NotFound,
        Self::AlreadyExists,
        Self::PermissionDenied,
        Self::ResourceExhausted,
        Self::FailedPrecondition,
        Self::Aborted,
        Self::OutOfRange,
        Self::Unimplemented,
        Self::Internal,
        Self::Unavailable,
        Self::DataLoss,
        Self::Unauthenticated,
    ];

    /// The number on the wire, 0 to 16.
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// The code with this number; `None` for a number that is not canonical.
    pub fn from_number(number: i32) -> Option<Self> {
        usize::try_from(number).ok().and_then(|index| Self::ALL.get(index)).copied()
    }

    /// The name in capitals, as in `INVALID_ARGUMENT`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "OK",
            Self::Cancelled => "CANCELLED",
            Self::Unknown => "UNKNOWN",
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::DeadlineExceeded => "DEADLINE_EXCEEDED",
            Self::NotFound => "NOT_FOUND",
            Self::AlreadyExists => "ALREADY_EXISTS",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::FailedPrecondition => "FAILED_PRECONDITION",
            Self::Aborted => "ABORTED",
            Self::OutOfRange => "OUT_OF_RANGE",
            Self::Unimplemented => "UNIMPLEMENTED",
            Self::Internal => "INTERNAL",
            Self::Unavailable => "UNAVAILABLE",
            Self::DataLoss => "DATA_LOSS",
            Self::Unauthenticated => "UNAUTHENTICATED",
        }
    }
}

impl fmt::Display for StatusCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A text that is not the name of a canonical status code.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{found}` is not the name of a status code; expected one such as INVALID_ARGUMENT")]
#[non_exhaustive]
pub struct UnknownStatusCode {
    /// The text found.
    pub found: String,
}

impl FromStr for StatusCode {
    type Err = UnknownStatusCode;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Self::ALL
            .into_iter()
            .find(|code| code.name() == text)
            .ok_or_else(|| UnknownStatusCode { found: text.to_owned() })
    }
}

/// A code with a message: the form in which errors travel between builds.
#[derive(Clone, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Status {
    code: StatusCode,
    message: String,
}

impl Status {
    /// A status of this code.
    pub fn new(code: StatusCode, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }

    /// The code.
    pub const fn code(&self) -> StatusCode {
        self.code
    }

    /// The message, without the code.
    pub fn message(&self) -> &str {
        &self.message
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_have_the_canonical_numbers_and_names() {
        assert_eq!(StatusCode::InvalidArgument.number(), 3);
        assert_eq!(StatusCode::NotFound.number(), 5);
        assert_eq!(StatusCode::FailedPrecondition.number(), 9);
        assert_eq!(StatusCode::Unimplemented.number(), 12);
        assert_eq!(StatusCode::Internal.number(), 13);
        assert_eq!(StatusCode::DataLoss.number(), 15);
        assert_eq!(StatusCode::Unauthenticated.number(), 16);
        for (number, code) in StatusCode::ALL.into_iter().enumerate() {
            assert_eq!(code.number(), number as i32);
            assert_eq!(StatusCode::from_number(code.number()), Some(code));
            assert_eq!(code.name().parse(), Ok(code));
        }
        assert_eq!(StatusCode::from_number(17), None);
        assert_eq!(StatusCode::from_number(-1), None);
        assert!("invalid_argument".parse::<StatusCode>().is_err());
    }
}
