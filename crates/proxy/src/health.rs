//! Health of a server: the messages of gRPC's health service (`grpc.health.v1`).

/// Health of a server: if it accepts new sessions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Health {
    /// The server accepts new sessions.
    Serving,
    /// The server accepts no new sessions, usually because it is about to stop.
    NotServing,
    /// The server has no such service.
    UnknownService,
    /// The server does not know.
    Unknown,
}

/// Request of a client; the service is the proxy's, or empty for the whole server.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct CheckRequest {
    #[prost(string, tag = "1")]
    pub(super) service: String,
}

/// Answer of the server.
#[derive(Clone, PartialEq, Eq, prost::Message)]
pub(super) struct CheckResponse {
    /// Number of a `ServingStatus`.
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
