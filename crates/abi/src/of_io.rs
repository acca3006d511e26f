//! The canonical status code of an error of the operating system.
//!
//! It follows the table by which TensorFlow maps `errno` to a code, so that plug-ins' errors
//! through the host, and errors of reading TensorFlow's files, have the codes that TensorFlow gives
//! them.

use std::io;

use crate::{ErrorKind, StatusCode};

impl StatusCode {
    /// Returns the code of a system error; [`StatusCode::Unknown`] if the table has none.
    #[must_use]
    pub fn of_io(error: &io::Error) -> Self {
        use io::ErrorKind as Kind;
        match error.kind() {
            Kind::NotFound => Self::NotFound,
            Kind::PermissionDenied | Kind::ReadOnlyFilesystem => Self::PermissionDenied,
            Kind::AlreadyExists => Self::AlreadyExists,
            Kind::InvalidInput | Kind::InvalidFilename | Kind::ArgumentListTooLong => {
                Self::InvalidArgument
            }
            Kind::TimedOut => Self::DeadlineExceeded,
            Kind::OutOfMemory | Kind::StorageFull | Kind::QuotaExceeded => Self::ResourceExhausted,
            Kind::Unsupported => Self::Unimplemented,
            Kind::DirectoryNotEmpty
            | Kind::IsADirectory
            | Kind::NotADirectory
            | Kind::BrokenPipe
            | Kind::ResourceBusy
            | Kind::ExecutableFileBusy
            | Kind::NotConnected => Self::FailedPrecondition,
            Kind::ConnectionRefused
            | Kind::ConnectionReset
            | Kind::ConnectionAborted
            | Kind::HostUnreachable
            | Kind::NetworkUnreachable
            | Kind::NetworkDown
            | Kind::Interrupted
            | Kind::WouldBlock
            | Kind::StaleNetworkFileHandle => Self::Unavailable,
            // A file that ends too early is not a system error, but TensorFlow's readers return
            // this code for it.
            Kind::FileTooLarge | Kind::UnexpectedEof => Self::OutOfRange,
            Kind::Deadlock => Self::Aborted,
            _ => Self::Unknown,
        }
    }
}

impl ErrorKind {
    /// Returns the kind of a system error.
    ///
    /// A file that ends too early is [`ErrorKind::Corrupt`].
    #[must_use]
    pub fn of_io(error: &io::Error) -> Self {
        match error.kind() {
            io::ErrorKind::NotFound => Self::NotFound,
            io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData => Self::Corrupt,
            io::ErrorKind::InvalidInput => Self::InvalidInput,
            io::ErrorKind::Unsupported => Self::Unsupported,
            io::ErrorKind::OutOfMemory => Self::Limit,
            io::ErrorKind::PermissionDenied => Self::Refused,
            _ if StatusCode::of_io(error) == StatusCode::Unavailable => Self::Unavailable,
            _ => Self::System,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kind_of_an_error_of_the_system() {
        for (system, kind) in [
            (io::ErrorKind::NotFound, ErrorKind::NotFound),
            (io::ErrorKind::UnexpectedEof, ErrorKind::Corrupt),
            (io::ErrorKind::PermissionDenied, ErrorKind::Refused),
            (io::ErrorKind::ConnectionReset, ErrorKind::Unavailable),
            (io::ErrorKind::StorageFull, ErrorKind::System),
            (io::ErrorKind::Other, ErrorKind::System),
        ] {
            assert_eq!(ErrorKind::of_io(&system.into()), kind, "{system:?}");
        }
    }
}
