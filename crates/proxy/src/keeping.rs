//! Messages by which our own client has our server keep arrays of an open session.
//!
//! The protocol knows no names of arrays: what a session leaves to the state is named before the
//! session has any, and is there for others when it is over. So each tree that a client has kept
//! would take a session of its own. The call [`KEEP`](crate::service::KEEP) names arrays that are
//! there, and has them in the state at once. Its metadata is that of a store, of which the session
//! alone counts.

use prost::Message;

/// Arrays of a session that take the place of those in the state whose names begin as theirs do.
#[derive(Clone, PartialEq, Message)]
pub(super) struct KeepRequest {
    /// Beginning of the names, before a `/`.
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) arrays: Vec<KeptArray>,
    /// A token of this server by which the client had arrays kept before; those are replaced, too.
    #[prost(string, tag = "3")]
    pub(super) previous_token: String,
}

/// An array of the session, and its whole name in the state.
#[derive(Clone, PartialEq, Message)]
pub(super) struct KeptArray {
    #[prost(uint64, tag = "1")]
    pub(super) handle: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
}

/// Answer: the state has them.
#[derive(Clone, PartialEq, Message)]
pub(super) struct KeepResponse {}
