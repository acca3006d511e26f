//! Errors of plug-ins, by the party to blame.

use std::path::PathBuf;

use serdes_abi::{ErrorKind, TF_Code, pjrt::Minor};
use serdes_library_file::elf::NotLoadable;

use super::ErrorPayload;

/// An error of the host of PJRT plug-ins.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PjrtError {
    /// Bytes: the file cannot be loaded here, whatever is in it.
    #[error("{path} cannot be loaded: {reason}")]
    NotLoadable {
        /// The file.
        path: PathBuf,
        /// Why, and what to do.
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
        /// Item of the table or struct.
        what: &'static str,
        /// The item as it was found.
        found: String,
        /// Permitted values.
        expected: &'static str,
    },
    /// Plug-in: it is of another major version.
    #[error(
        "the plug-in is of PJRT {major}.{minor}, and this host knows major version 0; use a plug-in of it, or a newer host"
    )]
    OtherMajor {
        /// Its major number.
        major: i32,
        /// Its minor number.
        minor: i32,
    },
    /// Plug-in: the offsets of its functions are not known.
    #[error(
        "the plug-in is of PJRT {minor}, and before {} functions moved with each version; use a newer plug-in",
        Minor::OLDEST_SUPPORTED
    )]
    TooOld {
        /// Its version.
        minor: Minor,
    },
    /// Plug-in: it does not have this function.
    #[error(
        "the plug-in of PJRT {minor} does not have {function}, which came with {since}; use a newer plug-in, or do without"
    )]
    Missing {
        /// The function.
        function: &'static str,
        /// The minor that brought it.
        since: Minor,
        /// The plug-in's version.
        minor: Minor,
    },
    /// Plug-in: none of its extensions has this function.
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
        /// Payloads beside the message, for programs; empty before 0.99.
        payloads: Vec<ErrorPayload>,
    },
    /// Plug-in: what it gave cannot be.
    #[error(
        "{call} gave {found} as {what}, expected {expected}; report this to the plug-in's author"
    )]
    BadAnswer {
        /// The function.
        call: &'static str,
        /// Item of the call's results.
        what: &'static str,
        /// The item as it was found.
        found: String,
        /// Permitted values.
        expected: &'static str,
    },
    /// Caller: an argument that no plug-in could take, or that this one ends the process on.
    #[error("{what} is {found}, expected {expected}")]
    InvalidArgument {
        /// Name of the argument.
        what: &'static str,
        /// The argument as it was given.
        found: String,
        /// Permitted values.
        expected: String,
    },
    /// Caller: a range that is not inside its memory.
    #[error(
        "{bytes} bytes at offset {offset} are not inside the {what}, which has {size} bytes; use a range that is"
    )]
    OutOfRange {
        /// Memory that the range belongs to.
        what: &'static str,
        /// Start of the range, in bytes.
        offset: i128,
        /// Length of the range, in bytes.
        bytes: u128,
        /// Size of the memory, in bytes.
        size: u64,
    },
    /// Caller: objects of two clients in one operation.
    #[error("the {what} belongs to another client; use one of the same client")]
    OtherClient {
        /// Kind of the object.
        what: &'static str,
    },
    /// System: the host has not so much memory.
    #[error("the host has no {bytes} bytes of memory; use less at once")]
    OutOfHostMemory {
        /// Number of bytes that were requested.
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

/// The code of what a plug-in does not implement.
const UNIMPLEMENTED: TF_Code = TF_Code(12);

impl PjrtError {
    /// Returns an error of the reader of ELF files.
    pub(super) fn of_elf(NotLoadable { path, reason }: NotLoadable) -> Self {
        Self::NotLoadable { path, reason }
    }

    /// Returns the kind of the error, by the action that it calls for.
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

    /// Returns true if the plug-in lacks what was needed: the function is missing, or returned
    /// UNIMPLEMENTED.
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
