//! Nodes by their bytes: finds nodes that are like an earlier one without decoding them.
//!
//! A graph of a million nodes has a few hundred node signatures. `canonical` reads nodes in
//! TensorFlow's own encoding and numbers their attributes, with equal numbers for equal bytes;
//! [`SignatureCache`] looks up, by the operation and these numbers, the facts about the first node
//! with the same signature. Every walk that needs facts about nodes uses it, so that the attributes
//! of a node signature are read once.
//!
//! Depends on bytes only, not on the meaning of operations and attributes.

mod canonical;
mod signature_cache;

pub use self::{
    canonical::{CanonicalNode, Reference, short_field},
    signature_cache::SignatureCache,
};
