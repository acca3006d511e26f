//! The request for the walk that makes the index of a graph.
//!
//! Knows the questions. It must never know how they are answered.

use crate::{DeprecatedOperations, function_names::FunctionNames, release::Releases};

/// The parts to find, besides the nodes of deprecated operations.
#[derive(Clone, Copy, Debug)]
pub struct IndexRequest<'a> {
    /// The graph, by the number of its meta graph.
    pub meta_graph: usize,
    /// The number of nodes and inputs that an earlier walk has counted.
    pub size: GraphSize,
    /// The GraphDef version of the release that is to read the graph.
    pub release: i32,
    pub operations: &'a DeprecatedOperations,
    /// The functions of the library.
    pub functions: &'a FunctionNames,
    /// Every node and its inputs; if not, nodes are visited as they are written.
    pub edges: bool,
    /// The nodes that call functions.
    pub calls: bool,
    /// Functions that come again and are others.
    pub duplicate_functions: bool,
    /// True if uses of deprecated operations are counted, inside of functions as well.
    pub uses: bool,
    /// The nodes whose node signatures are found for `releases`.
    pub node_signatures: RequestedSignatures,
    /// True if attributes of nodes of functions that releases ignore are found, where node
    /// signatures are requested; otherwise there are known to be none.
    pub ignored_in_functions: bool,
    pub releases: Releases<'a>,
}

/// The nodes whose node signatures are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestedSignatures {
    None,
    /// No nodes outside of functions: only names of functions and ignored attributes in them.
    OfBodies,
    /// All nodes outside of functions as well, with their inputs.
    OfAll,
}

/// The size of a graph, to allocate memory once.
#[derive(Clone, Copy, Debug, Default)]
pub struct GraphSize {
    /// Nodes outside of functions.
    pub nodes: usize,
    /// Their inputs.
    pub inputs: usize,
}
