//! Errors of plug-ins, by the party at fault.

use std::path::PathBuf;

use serdes_abi::{ErrorKind, TF_Code, pjrt::Minor};
use serdes_library_file::elf::NotLoadable;

use super::ErrorPayload;

/// An error of the host of PJRT plug-ins.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PjrtError {
    /// Bytes: the file cannot be loaded here, regardless of its content.
    #[error("{path} cannot be loaded: {reason}")]
    NotLoadable {
        /// The file.
        path: PathBuf,
        /// The reason, and the remedy.
        reason: String,
    },
    /// Plug-in: the library does not export `GetPjrtApi`.
    #[error("{path} is no PJRT plug-in: it does not export GetPjrtApi; use a library that does")]
    NotAPlugin {
        /// The file.
        path: PathBuf,
    },
    /// Plug-in: its table cannot be read.
    #[error("the plug-in's table is not one: {what} is {found}, expected {expected}")]
    BadTable {
        /// The name of the value in the table or struct.
        what: &'static str,
        /// The value found.
        found: String,
        /// Permitted values.
        expected: &'static str,
    },
    /// Plug-in: it has another major version.
    #[error(
        "the plug-in is of PJRT {major}.{minor}, and this host knows major version 0; use a plug-in of it, or a newer host"
    )]
    OtherMajor {
        /// Its major number.
        major: i32,
        /// Its minor number.
        minor: i32,
    },
    /// Plug-in: the offsets of its functions are unknown.
    #[error(
        "the plug-in is of PJRT {minor}, and before {} functions moved with each version; use a newer plug-in",
        Minor::OLDEST_SUPPORTED
    )]
    TooOld {
        /// Its version.
        minor: Minor,
    },
    /// Plug-in: it does not have the function.
    #[error(
        "the plug-in of PJRT {minor} does not have {function}, which came with {since}; use a newer plug-in, or do without"
    )]
    Missing {
        /// The function.
        function: &'static str,
        /// The first minor with the function.
        since: Minor,
        /// The plug-in's version.
        minor: Minor,
    },
    /// Plug-in: none of its extensions has the function.
    #[error(
        "the plug-in of PJRT {minor} does not have {function} in its extensions; use another plug-in, or do without"
    )]
    NotInExtensions {
        /// The function.
        function: &'static str,
        /// The plug-in's version.
        minor: Minor,
    },
    /// Plug-in: a function reported an error.
    #[error("the plug-in reports: {call}: {} ({code})", message_or_none(message))]
    Status {
        /// The function.
        call: &'static str,
        /// The code.
        code: TF_Code,
        /// The message: its first 16 KiB, with control characters escaped.
        message: String,
        /// Further payloads for programs; empty before 0.99.
        payloads: Vec<ErrorPayload>,
    },
    /// Plug-in: it returned an impossible value.
    #[error(
        "{call} gave {found} as {what}, expected {expected}; report this to the plug-in's author"
    )]
    BadAnswer {
        /// The function.
        call: &'static str,
        /// The name of the value in the call's results.
        what: &'static str,
        /// The value found.
        found: String,
        /// Permitted values.
        expected: &'static str,
    },
    /// Caller: an argument that no plug-in accepts, or on which this one ends the process.
    #[error("{what} is {found}, expected {expected}")]
    InvalidArgument {
        /// The name of the argument.
        what: &'static str,
        /// The value of the argument.
        found: String,
        /// Permitted values.
        expected: String,
    },
    /// Caller: a range that is not inside its memory.
    #[error(
        "{bytes} bytes at offset {offset} are not inside the {what}, which has {size} bytes; use a range that is"
    )]
    OutOfRange {
        /// The memory that the range belongs to.
        what: &'static str,
        /// The start of the range, in bytes.
        offset: i128,
        /// The length of the range, in bytes.
        bytes: u128,
        /// The size of the memory, in bytes.
        size: u64,
    },
    /// Caller: an operation on objects of two clients.
    #[error("the {what} belongs to another client; use one of the same client")]
    OtherClient {
        /// The kind of the object.
        what: &'static str,
    },
    /// System: the host does not have enough memory.
    #[error("the host has no {bytes} bytes of memory; use less at once")]
    OutOfHostMemory {
        /// The number of requested bytes.
        bytes: usize,
    },
    /// System: plug-ins cannot be loaded on this platform.
    #[error(
        "loading plug-ins is not supported on this platform ({target}); it needs Linux with glibc on x86-64 or aarch64"
    )]
    UnsupportedTarget {
        /// The platform.
        target: &'static str,
    },
}

/// The status code of functions that a plug-in does not implement.
const UNIMPLEMENTED: TF_Code = TF_Code(12);

impl PjrtError {
    /// Converts an error of the reader of ELF files.
    pub(super) fn of_elf(NotLoadable { path, reason }: NotLoadable) -> Self {
        Self::NotLoadable { path, reason }
    }

    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NotLoadable { .. }
            | Self::NotAPlugin { .. }
            | Self::Missing { .. }
            | Self::NotInExtensions { .. }
            | Self::UnsupportedTarget { .. } => ErrorKind::Unsupported,
            Self::OtherMajor { .. } => ErrorKind::TooNew,
            Self::TooOld { .. } => ErrorKind::TooOld,
            Self::Status { code, .. } => {
                code.canonical().map_or(ErrorKind::Other, ErrorKind::of_code)
            }
            Self::BadTable { .. } | Self::BadAnswer { .. } => ErrorKind::Faulty,
            Self::InvalidArgument { .. } | Self::OutOfRange { .. } | Self::OtherClient { .. } => {
                ErrorKind::InvalidInput
            }
            Self::OutOfHostMemory { .. } => ErrorKind::Limit,
        }
    }

    /// Returns true if the plug-in does not support the operation: the function is missing, or
    /// returned UNIMPLEMENTED.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        match self {
            Self::Missing { .. } | Self::NotInExtensions { .. } => true,
            Self::Status { code, .. } => *code == UNIMPLEMENTED,
            _ => false,
        }
    }
}

fn message_or_none(message: &str) -> &str {
    if message.is_empty() { "(no message)" } else { message }
}
