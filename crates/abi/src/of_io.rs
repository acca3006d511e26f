//! The canonical status code of an error of the system.
//!
//! It follows the table by which TensorFlow gives a code to `errno`, so that what a plug-in reports
//! through the host, and what a reader of TensorFlow's files answers, is what TensorFlow would say.

use std::io;

use crate::{ErrorKind, StatusCode};

impl StatusCode {
    /// Returns the code of an error of the system; [`StatusCode::Unknown`] where the table has
    /// none.
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
            // A file that ends before the bytes that were asked for is no error of the system's, but
            // TensorFlow's readers give it this code.
            Kind::FileTooLarge | Kind::UnexpectedEof => Self::OutOfRange,
            Kind::Deadlock => Self::Aborted,
            _ => Self::Unknown,
        }
    }
}

impl ErrorKind {
    /// Returns the kind of an error of the system.
    ///
    /// A file that ends before the bytes that it should have is [`ErrorKind::Corrupt`].
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
