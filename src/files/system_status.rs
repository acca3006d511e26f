//! The canonical status code of an error of the system.
//!
//! It follows the table by which TensorFlow gives a code to `errno`, so that what a plug-in reports
//! through the host, and what a reader of TensorFlow's files answers, is what TensorFlow would say.

use std::io;

use serdes_abi::StatusCode;

/// The code of `error`; [`StatusCode::Unknown`] where the table has none.
pub(crate) fn status_of(error: &io::Error) -> StatusCode {
    use io::ErrorKind as Kind;
    match error.kind() {
        Kind::NotFound => StatusCode::NotFound,
        Kind::PermissionDenied | Kind::ReadOnlyFilesystem => StatusCode::PermissionDenied,
        Kind::AlreadyExists => StatusCode::AlreadyExists,
        Kind::InvalidInput | Kind::InvalidFilename | Kind::ArgumentListTooLong => {
            StatusCode::InvalidArgument
        }
        Kind::TimedOut => StatusCode::DeadlineExceeded,
        Kind::OutOfMemory | Kind::StorageFull | Kind::QuotaExceeded => {
            StatusCode::ResourceExhausted
        }
        Kind::Unsupported => StatusCode::Unimplemented,
        Kind::DirectoryNotEmpty
        | Kind::IsADirectory
        | Kind::NotADirectory
        | Kind::BrokenPipe
        | Kind::ResourceBusy
        | Kind::ExecutableFileBusy
        | Kind::NotConnected => StatusCode::FailedPrecondition,
        Kind::ConnectionRefused
        | Kind::ConnectionReset
        | Kind::ConnectionAborted
        | Kind::HostUnreachable
        | Kind::NetworkUnreachable
        | Kind::NetworkDown
        | Kind::Interrupted
        | Kind::WouldBlock
        | Kind::StaleNetworkFileHandle => StatusCode::Unavailable,
        // A file that ends before the bytes that were asked for is no error of the system's, but
        // TensorFlow's readers give it this code.
        Kind::FileTooLarge | Kind::UnexpectedEof => StatusCode::OutOfRange,
        Kind::Deadlock => StatusCode::Aborted,
        _ => StatusCode::Unknown,
    }
}
