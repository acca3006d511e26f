//! The canonical status codes that TensorFlow answers with, so that a refusal of ours can be
//! compared with one of its own.
//!
//! Knows nothing of any format: the errors of the readers name the code that TensorFlow would give
//! for the same bytes.

use std::io;

pub use serdes_abi::StatusCode;

/// The code that stands for a failure of the system while a file is read or written.
pub(super) fn of_io(error: &io::Error) -> StatusCode {
    match error.kind() {
        io::ErrorKind::NotFound => StatusCode::NotFound,
        io::ErrorKind::PermissionDenied => StatusCode::PermissionDenied,
        io::ErrorKind::UnexpectedEof => StatusCode::OutOfRange,
        io::ErrorKind::StorageFull | io::ErrorKind::OutOfMemory => StatusCode::ResourceExhausted,
        io::ErrorKind::IsADirectory => StatusCode::FailedPrecondition,
        _ => StatusCode::Unknown,
    }
}
