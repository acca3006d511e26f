//! Errors of plug-ins, by the party at fault.

use std::{fmt, io, path::PathBuf, time::Duration};

use serdes_abi::{ErrorKind, TF_Code};
use serdes_library_file::{TimeLimitError, elf::NotLoadable};

use super::report::Report;

/// An error status that a function of a plug-in reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StatusError {
    /// The function.
    pub call: &'static str,
    /// The code that it set.
    pub code: TF_Code,
    /// The message that it set: its first 16 KiB, with control characters other than tabs and ends
    /// of lines escaped.
    pub message: String,
}

impl StatusError {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        self.code.canonical().map_or(ErrorKind::Other, ErrorKind::of_code)
    }

    /// Returns the message, or that there is none.
    pub(crate) fn message_or_none(&self) -> &str {
        if self.message.is_empty() { "(no message)" } else { &self.message }
    }
}

impl fmt::Display for StatusError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}: {} ({})", self.call, self.message_or_none(), self.code)
    }
}

/// An error of the plug-in host.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// Caller: no such device.
    #[error(
        "there is no device {ordinal}; use an ordinal below {count}, the number of devices of the plug-in"
    )]
    NoSuchDevice {
        /// The requested ordinal.
        ordinal: usize,
        /// Number of devices.
        count: usize,
    },
    /// Caller: a range that is not inside its memory.
    #[error(
        "{bytes} bytes at offset {offset} are not inside the {what}, which has {size} bytes; use a range that is"
    )]
    OutOfRange {
        /// Memory that the range belongs to.
        what: &'static str,
        /// Start of the range, in bytes.
        offset: u64,
        /// Length of the range, in bytes.
        bytes: u64,
        /// Size of the memory, in bytes.
        size: u64,
    },
    /// Caller: objects of two devices in one operation that takes one device.
    #[error("the {what} belongs to another device; use one that was made on the same device")]
    OtherDevice {
        /// Kind of the object.
        what: &'static str,
    },
    /// Caller: an argument that no plug-in accepts.
    #[error("{what} is {found}, expected {expected}")]
    InvalidArgument {
        /// Name of the argument.
        what: &'static str,
        /// The argument as it was given.
        found: String,
        /// Permitted values.
        expected: &'static str,
    },
    /// Caller: the same library or the same platform is in use already.
    #[error(
        "{what} `{name}` is registered already; use the plug-in that is open, or drop it before opening it again"
    )]
    AlreadyRegistered {
        /// Library or platform.
        what: &'static str,
        /// Its path or name.
        name: String,
    },
    /// Bytes: the file cannot be loaded here, regardless of its content.
    #[error("{path} cannot be loaded: {reason}")]
    NotLoadable {
        /// The file.
        path: PathBuf,
        /// The reason, and the remedy.
        reason: String,
    },
    /// Plug-in: the library does not export `SE_InitPlugin`.
    #[error(
        "{path} is not a device plug-in: it does not export SE_InitPlugin{hint}; use a library that does"
    )]
    NotAPlugin {
        /// The file.
        path: PathBuf,
        /// The entry point of another kind of plug-in that the library exports, or empty.
        hint: String,
    },
    /// Plug-in: its registration was refused; it has been unloaded.
    #[error("the plug-in is refused: {}", .0.reasons_line())]
    Refused(Box<Report>),
    /// Plug-in: it does not have the function.
    #[error(
        "the plug-in does not support {function}: it left the function out, its layout has none, or it says that it does not"
    )]
    Unsupported {
        /// The function.
        function: &'static str,
    },
    /// Plug-in: a function reported an error.
    #[error("the plug-in reports: {0}")]
    Status(StatusError),
    /// Plug-in: it has no memory left.
    #[error(
        "the plug-in could not allocate {bytes} bytes ({call} gave NULL); free memory, or ask for less"
    )]
    OutOfMemory {
        /// The function.
        call: &'static str,
        /// Size of the request, in bytes.
        bytes: u64,
    },
    /// Plug-in: host memory that it returned overlaps memory that is in use already. It is neither
    /// used nor returned.
    #[error(
        "{call} gave {bytes} bytes of host memory of which some are in use already; report this to the plug-in's author"
    )]
    MemoryInUse {
        /// The function.
        call: &'static str,
        /// Size of the request, in bytes.
        bytes: u64,
    },
    /// Plug-in: a struct that it filled in cannot be used.
    #[error(
        "{structure}.{field} is {found} after {call}, expected {expected}; report this to the plug-in's author"
    )]
    BadStruct {
        /// The function that filled it in.
        call: &'static str,
        /// The struct.
        structure: &'static str,
        /// The field.
        field: &'static str,
        /// Value of the field.
        found: String,
        /// Permitted values.
        expected: &'static str,
    },
    /// Plug-in: the work before an event failed, or the plug-in does not know the event's state.
    #[error(
        "the event is in state {state}, expected pending (2) or complete (3): the work before it failed"
    )]
    EventFailed {
        /// The number that the plug-in returned.
        state: i32,
    },
    /// Plug-in: a host callback was not accepted.
    #[error("the plug-in refused a host callback: host_callback answered false")]
    CallbackRefused,
    /// Plug-in: a host callback was accepted and never run.
    #[error(
        "the plug-in accepted a host callback and dropped it: the stream is done and it never ran"
    )]
    CallbackDropped,
    /// Plug-in: a host callback was run more than once.
    #[error(
        "the plug-in ran a host callback {times} times, expected once; the later runs did nothing"
    )]
    CallbackRepeated {
        /// Number of times.
        times: u32,
    },
    /// Caller: the function that ran as a host callback failed.
    #[error("the host callback failed: {message}")]
    CallbackFailed {
        /// Message of the plug-in.
        message: String,
    },
    /// Plug-in: a call did not return in time.
    #[error(
        "{call} did not return within {limit:?}; the thread that waits for it has been left behind"
    )]
    TimedOut {
        /// The call in progress.
        call: &'static str,
        /// The time limit.
        limit: Duration,
    },
    /// System: plug-ins cannot be loaded on this platform.
    #[error(
        "loading plug-ins is not supported on this platform ({target}); it needs Linux with glibc on x86-64 or aarch64: use the embedded plug-in `host`"
    )]
    UnsupportedTarget {
        /// The platform.
        target: &'static str,
    },
    /// System: other code in the process defines the status functions.
    #[error(
        "{symbol} of another library in this process comes before ours, so that plug-ins would write statuses that we cannot read; load plug-ins before TensorFlow, or in a process without it"
    )]
    ForeignStatusFunctions {
        /// A function that is not ours.
        symbol: String,
    },
    /// System: an operation of the operating system failed.
    #[error("cannot {doing}: {error}")]
    System {
        /// The operation.
        doing: &'static str,
        /// Error of the operating system.
        error: io::Error,
    },
}

impl Error {
    /// Returns the status code that a plug-in reported, if one did.
    #[must_use]
    pub fn status_code(&self) -> Option<TF_Code> {
        match self {
            Self::Status(status) => Some(status.code),
            _ => None,
        }
    }

    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::NoSuchDevice { .. } => ErrorKind::NotFound,
            Self::OutOfRange { .. }
            | Self::OtherDevice { .. }
            | Self::InvalidArgument { .. }
            | Self::AlreadyRegistered { .. }
            | Self::CallbackFailed { .. } => ErrorKind::InvalidInput,
            Self::NotLoadable { .. }
            | Self::NotAPlugin { .. }
            | Self::Unsupported { .. }
            | Self::UnsupportedTarget { .. }
            | Self::ForeignStatusFunctions { .. } => ErrorKind::Unsupported,
            Self::Status(status) => status.kind(),
            Self::OutOfMemory { .. } => ErrorKind::Limit,
            Self::Refused(_)
            | Self::MemoryInUse { .. }
            | Self::BadStruct { .. }
            | Self::EventFailed { .. }
            | Self::CallbackRefused
            | Self::CallbackDropped
            | Self::CallbackRepeated { .. }
            | Self::TimedOut { .. } => ErrorKind::Faulty,
            Self::System { error, .. } => ErrorKind::of_io(error),
        }
    }

    /// Returns true if the plug-in lacks the required function.
    #[must_use]
    pub fn is_unsupported(&self) -> bool {
        matches!(self, Self::Unsupported { .. })
    }
}

impl From<NotLoadable> for Error {
    fn from(NotLoadable { path, reason }: NotLoadable) -> Self {
        Self::NotLoadable { path, reason }
    }
}

impl From<TimeLimitError> for Error {
    fn from(error: TimeLimitError) -> Self {
        match error {
            TimeLimitError::TimedOut { call, limit } => Self::TimedOut { call, limit },
            TimeLimitError::System { doing, error } => Self::System { doing, error },
        }
    }
}
