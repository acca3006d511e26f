//! The request for the walk that makes the index of a graph.
//!
//! Knows the questions. It must never know how they are answered.

use crate::{
    graph::{DeprecatedOperations, function_names::FunctionNames},
    ops::Registry,
};

/// The parts to find, besides the nodes of deprecated operations.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Wanted<'a> {
    /// The graph, by the number of its meta graph.
    pub(in super::super) meta_graph: usize,
    /// The number of nodes and inputs that an earlier walk has counted.
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
    /// True if uses of deprecated operations are counted, inside of functions as well.
    pub(in super::super) uses: bool,
    /// The nodes whose kinds are found for `registries`.
    pub(in super::super) kinds: WantedKinds,
    /// True if attributes of nodes of functions that releases ignore are found, where kinds are
    /// requested; otherwise there are known to be none.
    pub(in super::super) dropped_in_functions: bool,
    pub(in super::super) registries: &'a [Registry],
}

/// The nodes whose kinds are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum WantedKinds {
    None,
    /// No nodes outside of functions: only names of functions and ignored attributes in them.
    OfBodies,
    /// All nodes outside of functions as well, with their inputs.
    OfAll,
}

/// The size of a graph, to allocate memory once.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct GraphSize {
    /// Nodes outside of functions.
    pub(in super::super) nodes: usize,
    /// Their inputs.
    pub(in super::super) inputs: usize,
}
