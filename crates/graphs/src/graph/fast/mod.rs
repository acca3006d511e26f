//! The fast walk over a graph: it accepts most graphs after one walk.
//!
//! While the bytes pass by, every nested message is checked as a real parser does, and a hash of
//! every name is kept. Where every input is the name of an earlier node, there is no cycle, and
//! TensorFlow visits the nodes in the order in which they are written. Anything else (a node that
//! is used before it is written, two names with one hash, a function that may be there twice)
//! requires the slow path.
//!
//! With registries it also knows the node signatures and the kinds of the edges between them, as
//! long as each registry takes all of them.
//!
//! Speed decides here: batches of look-ups, another thread for large graphs, attributes that were
//! checked once. It must never know what the importer says of a graph that it does not accept.

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
