//! The fast walk over a graph: it accepts most graphs after one walk.
//!
//! During the walk every nested message is checked as a real parser does, and a hash of every name
//! is kept. If every input is the name of an earlier node, there is no cycle, and TensorFlow visits
//! the nodes in the order of the file. Anything else (a node that is used before its definition,
//! two names with one hash, a function that may be repeated) requires the slow path.
//!
//! With registries it also collects the node signatures and the kinds of edges between them, as
//! long as each registry accepts all of them.
//!
//! Written for speed: batches of look-ups, another thread for large graphs, attributes that are
//! checked once. Does not depend on the importer's diagnostics for a graph that it does not accept.

mod bodies;
mod bounded;
mod edges;
mod names;
mod node_signatures;
mod nodes;
mod scanned_graph;
mod visitor;

pub(super) use self::{
    scanned_graph::ScannedGraph,
    visitor::{Depth, GraphVisitor},
};

#[cfg(test)]
mod tests;
