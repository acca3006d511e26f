//! The canonical status codes that TensorFlow answers with, so that a refusal of ours can be
//! compared with one of its own.
//!
//! Knows nothing of any format: the errors of the readers name the code that TensorFlow would give
//! for the same bytes.

use std::fmt;
use std::io;

/// A canonical status code (the numbers of `absl::StatusCode` and `TF_Code`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
#[repr(i32)]
pub enum StatusCode {
    /// The operation was stopped by its caller.
    Cancelled = 1,
    /// Nothing more is known.
    Unknown = 2,
    /// The request or the artifact asks for something that cannot be.
    InvalidArgument = 3,
    /// A file or a tensor that is named is not there.
    NotFound = 5,
    /// The file may not be read.
    PermissionDenied = 7,
    /// A limit was reached: memory, disk space, or a bound against hostile input.
    ResourceExhausted = 8,
    /// The artifact is not in the state that the operation needs.
    FailedPrecondition = 9,
    /// A read beyond the end of a file.
    OutOfRange = 11,
    /// Valid, but not supported.
    Unimplemented = 12,
    /// An invariant does not hold.
    Internal = 13,
    /// The bytes are damaged.
    DataLoss = 15,
}

impl StatusCode {
    /// The name in capitals, as status messages print it (`DATA_LOSS`).
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Cancelled => "CANCELLED",
            Self::Unknown => "UNKNOWN",
            Self::InvalidArgument => "INVALID_ARGUMENT",
            Self::NotFound => "NOT_FOUND",
            Self::PermissionDenied => "PERMISSION_DENIED",
            Self::ResourceExhausted => "RESOURCE_EXHAUSTED",
            Self::FailedPrecondition => "FAILED_PRECONDITION",
            Self::OutOfRange => "OUT_OF_RANGE",
            Self::Unimplemented => "UNIMPLEMENTED",
            Self::Internal => "INTERNAL",
            Self::DataLoss => "DATA_LOSS",
        }
    }

    /// The code that stands for a failure of the system while a file is read or written.
    #[must_use]
    pub fn of_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound,
            io::ErrorKind::PermissionDenied => Self::PermissionDenied,
            io::ErrorKind::UnexpectedEof => Self::OutOfRange,
            io::ErrorKind::StorageFull | io::ErrorKind::OutOfMemory => Self::ResourceExhausted,
            io::ErrorKind::IsADirectory => Self::FailedPrecondition,
            _ => Self::Unknown,
        }
    }
}

impl fmt::Display for StatusCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
