//! Nodes by their bytes: which node is like an earlier one, without a look at what its bytes mean.
//!
//! A graph of a million nodes has a few hundred node signatures. `canonical` reads the nodes that
//! are written as TensorFlow writes them and gives each of their attributes a number, equal bytes
//! the same; [`SignatureCache`] finds by the operation and these numbers what was learned of the
//! first node with its signature. Every walk that asks what nodes are goes through here, so that
//! the attributes of a node signature are read once.
//!
//! Knows bytes. It must never know what operations and attributes mean.

mod canonical;
mod signature_cache;

pub use self::{
    canonical::{CanonicalNode, Reference, short_field},
    signature_cache::SignatureCache,
};
