//! Health of a server: the messages of gRPC's health service (`grpc.health.v1`).

/// Health of a server: if it takes new sessions.
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

/// Request of a client; the service is that of the proxy, or empty for all of the server.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct CheckRequest {
    #[prost(string, tag = "1")]
    pub(super) service: String,
}

/// Answer of the server.
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
