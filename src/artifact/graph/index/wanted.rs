//! What is asked of the walk that makes the index of a graph.
//!
//! Knows the questions. It must never know how they are answered.

use crate::artifact::{
    graph::{DeprecatedOperations, function_names::FunctionNames},
    ops::Registry,
};

/// What is to be found, beside the nodes of deprecated operations.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Wanted<'a> {
    /// The graph, by the number of its meta graph.
    pub(in super::super) meta_graph: usize,
    /// How many nodes and inputs the graph has, as far as an earlier walk has counted.
    pub(in super::super) size: GraphSize,
    /// The GraphDef version of the release that is to read the graph.
    pub(in super::super) release: i32,
    pub(in super::super) operations: &'a DeprecatedOperations,
    /// The functions of the library.
    pub(in super::super) functions: &'a FunctionNames,
    /// Every node and its inputs; if not, nodes are visited as they are written.
    pub(in super::super) edges: bool,
    /// The nodes that call functions.
    pub(in super::super) calls: bool,
    /// Functions that come again and are others.
    pub(in super::super) duplicate_functions: bool,
    /// How often deprecated operations are used, inside of functions as well.
    pub(in super::super) uses: bool,
    /// Which kind nodes are, for `registries`.
    pub(in super::super) kinds: WantedKinds,
    /// Where kinds are asked for, the attributes that nodes of functions drop; if not, they are
    /// known to drop none.
    pub(in super::super) dropped_in_functions: bool,
    pub(in super::super) registries: &'a [Registry],
}

/// Of which nodes the kinds are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum WantedKinds {
    None,
    /// Of none outside of functions: names of functions and what is dropped in them is asked for
    /// alone.
    OfBodies,
    /// Of all nodes outside of functions as well; then with their inputs.
    OfAll,
}

/// How large a graph is, so that room is made for it once.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct GraphSize {
    /// Nodes outside of functions.
    pub(in super::super) nodes: usize,
    /// Their inputs.
    pub(in super::super) inputs: usize,
}
