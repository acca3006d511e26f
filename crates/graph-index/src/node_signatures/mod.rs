//! Judges nodes with one operation and the same attributes, for all releases at once.
//!
//! A graph of a million nodes has a few hundred *node signatures*. [`NodeSignatures`] numbers the
//! node signatures during the walk over the graph, and checks each once for each release: that it
//! knows the operation, that the attributes fit, and the resulting types of inputs and outputs.
//! Attributes are not kept: those of a node with a diagnostic are reread from its place.
//!
//! Depends on operations and attributes, but not on the edges or the order of the importer's
//! checks.

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
