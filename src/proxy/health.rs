//! Whether a server takes new sessions: the messages of gRPC's health service
//! (`grpc.health.v1`), and the question of a client.

use super::{
    ProxyError,
    client::{ClientOptions, ask_health},
};

/// Whether a server takes new sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Health {
    /// It does.
    Serving,
    /// It does not, because it is about to stop, as a rule.
    NotServing,
    /// It has no such service.
    UnknownService,
    /// It does not know.
    Unknown,
}

/// What a client asks; the service is that of the proxy, or empty for all of the server.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct CheckRequest {
    #[prost(string, tag = "1")]
    pub(super) service: String,
}

/// What the server answers.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct CheckResponse {
    /// The number of a `ServingStatus`.
    #[prost(int32, tag = "1")]
    status: i32,
}

impl CheckResponse {
    pub(super) fn of(health: Health) -> Self {
        let status = match health {
            Health::Unknown => 0,
            Health::Serving => 1,
            Health::NotServing => 2,
            Health::UnknownService => 3,
        };
        Self { status }
    }

    pub(super) const fn health(&self) -> Health {
        match self.status {
            1 => Health::Serving,
            2 => Health::NotServing,
            3 => Health::UnknownService,
            _ => Health::Unknown,
        }
    }
}

/// Asks the server at `address` whether it takes new sessions. A token is neither needed nor sent;
/// a certificate is, where the server wants one.
///
/// # Errors
/// [`ProxyError::Status`] with UNIMPLEMENTED from a server without a health service, with
/// RESOURCE_EXHAUSTED from one that is asked too much; [`ProxyError::Connection`] if nobody
/// answers in time; [`ProxyError::Configuration`] for the address.
pub async fn check_health(address: &str, options: &ClientOptions) -> Result<Health, ProxyError> {
    ask_health(address, options).await
}
