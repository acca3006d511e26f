//! The kinds of errors that all crates of serdes share.

use core::fmt;

use super::StatusCode;

/// The kind of an error, which says what action it calls for.
///
/// Each public error type that a program meets has a method `kind` that returns one of these. Data
/// of a newer build is [`TooNew`](Self::TooNew) and never [`Corrupt`](Self::Corrupt).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// No file, tensor, device or object has this name: check the name.
    NotFound,
    /// The data needs a newer build: upgrade the reader, or have an older version written.
    TooNew,
    /// The data, or the plug-in, is older than this build accepts.
    TooOld,
    /// The bytes are damaged, truncated, or not of the expected format: take another copy.
    Corrupt,
    /// No type is registered for the name in the data: register it.
    MissingType,
    /// The data is intact, but this build, format, platform or plug-in does not support the
    /// request.
    Unsupported,
    /// The caller gave an invalid argument, name or combination of arguments.
    InvalidInput,
    /// A limit of size, depth or memory was reached.
    Limit,
    /// A peer or a store refuses: credentials, rights, or versions that do not overlap.
    Refused,
    /// A peer is unreachable, or has gone: try again.
    Unavailable,
    /// A device, its plug-in or a peer violated its contract.
    Faulty,
    /// The caller, or a peer, cancelled the operation.
    Cancelled,
    /// The operating system failed: a full disk, a failed read.
    System,
    /// An error of unknown kind that is passed on unchanged.
    Other,
}

impl ErrorKind {
    /// Returns the kind for a canonical status code.
    #[must_use]
    pub const fn of_code(code: StatusCode) -> Self {
        match code {
            StatusCode::Cancelled => Self::Cancelled,
            StatusCode::InvalidArgument
            | StatusCode::FailedPrecondition
            | StatusCode::AlreadyExists
            | StatusCode::OutOfRange => Self::InvalidInput,
            StatusCode::NotFound => Self::NotFound,
            StatusCode::PermissionDenied | StatusCode::Unauthenticated => Self::Refused,
            StatusCode::ResourceExhausted => Self::Limit,
            StatusCode::Unimplemented => Self::Unsupported,
            StatusCode::Unavailable | StatusCode::DeadlineExceeded => Self::Unavailable,
            StatusCode::DataLoss => Self::Corrupt,
            _ => Self::Other,
        }
    }
}

impl fmt::Display for ErrorKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::NotFound => "not found",
            Self::TooNew => "too new",
            Self::TooOld => "too old",
            Self::Corrupt => "corrupt",
            Self::MissingType => "missing type",
            Self::Unsupported => "unsupported",
            Self::InvalidInput => "invalid input",
            Self::Limit => "limit reached",
            Self::Refused => "refused",
            Self::Unavailable => "unavailable",
            Self::Faulty => "faulty device or peer",
            Self::Cancelled => "cancelled",
            Self::System => "system",
            Self::Other => "other",
        })
    }
}
