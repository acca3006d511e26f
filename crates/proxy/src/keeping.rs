//! Messages with which our client stores arrays of an open session in our server's state.
//!
//! The protocol has no names for arrays: a session names the arrays that it leaves to the state
//! before it has any, and others see them when it is over. So each tree of arrays would need a
//! session of its own. The call [`KEEP`](crate::service::KEEP) names existing arrays and stores
//! them in the state at once. It has the metadata of a store, of which only the session is used.

use prost::Message;

/// Arrays of a session that replace those in the state with the same prefix of names.
#[derive(Clone, PartialEq, Message)]
pub(super) struct KeepRequest {
    /// Prefix of the names, before a `/`.
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(message, repeated, tag = "2")]
    pub(super) arrays: Vec<KeptArray>,
    /// Token of this server with which the client stored arrays before; those are replaced, too.
    #[prost(string, tag = "3")]
    pub(super) previous_token: String,
}

/// An array of the session, with its full name in the state.
#[derive(Clone, PartialEq, Message)]
pub(super) struct KeptArray {
    #[prost(uint64, tag = "1")]
    pub(super) handle: u64,
    #[prost(string, tag = "2")]
    pub(super) name: String,
}

/// Answer: the arrays are in the state.
#[derive(Clone, PartialEq, Message)]
pub(super) struct KeepResponse {}
