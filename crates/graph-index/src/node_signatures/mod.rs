//! Judges nodes of one operation and with the same attributes, for every release at once.
//!
//! A graph of a million nodes has a few hundred *node signatures*. [`NodeSignatures`] numbers the
//! node signatures while the graph is walked over, and asks each release once about each: whether
//! it knows the operation, whether the attributes fit, which types the inputs and outputs have
//! then. Attributes are not kept: of a node that has a diagnostic they are read again at its place.
//!
//! Knows operations and attributes. It must never know how the nodes hang together, nor in which
//! order the importer looks at them.

mod ignored;
mod ignored_set;
mod interner;
mod node_signature;
mod operations;
mod table;

pub use self::{
    ignored::IgnoredUses,
    node_signature::{Judged, LoaderProfile, NodeSignature, SignatureNumber},
    table::NodeSignatures,
};
