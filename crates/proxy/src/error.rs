//! Errors of servers and clients.

use serdes::{
    codec::{DecodeError, EncodeError, ErrorKind, Status},
    ifrt::IfrtError,
};
use serdes_pjrt::PjrtError;

use super::Ranges;

/// Why a server cannot be made or run, or why a client got no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// The caller's fault: an address, a range or a certificate that cannot be used.
    #[error("{what} `{found}` cannot be used: {reason}")]
    #[non_exhaustive]
    Configuration {
        /// Name of the setting.
        what: &'static str,
        /// The value that was given.
        found: String,
        /// Why, and what to do.
        reason: String,
    },
    /// The peer refused the handshake.
    #[error("the server refused the handshake ({}): {}", .status.code(), .status.message())]
    #[non_exhaustive]
    Refused {
        /// Status of the server.
        status: Status,
        /// Versions that were offered to it.
        offered: Ranges,
    },
    /// The peer's fault: it answered with something that was not offered or that does not fit the
    /// request.
    #[error("the server broke the protocol: {0}")]
    Protocol(String),
    /// The peer answered a request with an error.
    #[error("{}: {}", .0.code(), .0.message())]
    Status(#[from] Status),
    /// The peer cannot be reached, or is gone.
    #[error("no connection to {address}: {reason}")]
    #[non_exhaustive]
    Connection {
        /// The address.
        address: String,
        /// The reason.
        reason: String,
    },
    /// The state cannot be read or written.
    #[error("the device state: {0}")]
    State(#[source] Box<serdes_device_state::Error>),
    /// The device's fault.
    #[error(transparent)]
    Device(#[from] serdes_stream_executor::Error),
    /// The fault of a PJRT client's device.
    #[error(transparent)]
    Pjrt(Box<PjrtError>),
    /// A value cannot be written at the version agreed upon.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// A value of the peer cannot be read.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A value of the caller breaks a rule.
    #[error(transparent)]
    Value(#[from] IfrtError),
    /// The system's fault.
    #[error("{doing}: {error}")]
    #[non_exhaustive]
    System {
        /// The operation.
        doing: &'static str,
        /// Error of the operating system.
        error: std::io::Error,
    },
}

impl From<PjrtError> for ProxyError {
    fn from(error: PjrtError) -> Self {
        Self::Pjrt(Box::new(error))
    }
}

impl ProxyError {
    /// Returns the kind of the error, by the action that it calls for.
    #[must_use]
    pub fn kind(&self) -> ErrorKind {
        match self {
            Self::Configuration { .. } => ErrorKind::InvalidInput,
            Self::Refused { .. } => ErrorKind::Refused,
            Self::Protocol(_) => ErrorKind::Faulty,
            Self::Status(status) => status.kind(),
            Self::Connection { .. } => ErrorKind::Unavailable,
            Self::State(error) => error.kind(),
            Self::Device(error) => error.kind(),
            Self::Pjrt(error) => error.kind(),
            Self::Encode(error) => error.kind(),
            Self::Decode(error) => error.kind(),
            Self::Value(error) => error.kind(),
            Self::System { error, .. } => ErrorKind::of_io(error),
        }
    }

    /// Returns true if the peer was there and refused.
    #[must_use]
    pub fn is_refusal(&self) -> bool {
        matches!(self, Self::Refused { .. })
    }

    pub(super) fn configuration(
        what: &'static str,
        found: impl Into<String>,
        reason: impl Into<String>,
    ) -> Self {
        Self::Configuration { what, found: found.into(), reason: reason.into() }
    }

    /// Returns an answer of another kind than was asked for.
    pub(super) fn unexpected(expected: &str) -> Self {
        Self::Protocol(format!("the answer is of another kind; expected {expected}"))
    }
}

/// Returns an error with what is behind it: the first line of some says nothing.
pub(super) fn with_causes(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = error.source();
    }
    text
}
