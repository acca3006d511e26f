//! Errors of servers and clients.

use serdes::{
    codec::{DecodeError, EncodeError, ErrorKind, Status},
    ifrt::IfrtError,
};
use serdes_pjrt::PjrtError;

use super::Ranges;

/// An error of a server that cannot be created or run, or of a client's request.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// The caller's fault: an invalid address, range or certificate.
    #[error("{what} `{found}` cannot be used: {reason}")]
    #[non_exhaustive]
    Configuration {
        /// Name of the setting.
        what: &'static str,
        /// The value that was given.
        found: String,
        /// The reason, and the remedy.
        reason: String,
    },
    /// The peer refused the handshake.
    #[error("the server refused the handshake ({}): {}", .status.code(), .status.message())]
    #[non_exhaustive]
    Refused {
        /// Status from the server.
        status: Status,
        /// Versions that the client offered.
        offered: Ranges,
    },
    /// The peer's fault: its answer was not offered or does not fit the request.
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
    /// An error of the device.
    #[error(transparent)]
    Device(#[from] serdes_stream_executor::Error),
    /// An error of a PJRT client's device.
    #[error(transparent)]
    Pjrt(Box<PjrtError>),
    /// A value cannot be encoded at the negotiated version.
    #[error(transparent)]
    Encode(#[from] EncodeError),
    /// A value from the peer cannot be decoded.
    #[error(transparent)]
    Decode(#[from] DecodeError),
    /// A value from the caller violates a rule.
    #[error(transparent)]
    Value(#[from] IfrtError),
    /// An error of the operating system.
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
    /// Returns the kind of the error, which says what action it calls for.
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

    /// Returns true if the peer was reached and refused.
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

    /// Returns the error for an answer of an unexpected kind.
    pub(super) fn unexpected(expected: &str) -> Self {
        Self::Protocol(format!("the answer is of another kind; expected {expected}"))
    }
}

/// Formats an error with its causes: the first line of some errors says nothing.
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
