//! The parameters of the walk that makes the index of a graph.
//!
//! Does not depend on the walk itself.

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
    /// Every node and its inputs; if false, nodes are visited in the order of the file.
    pub edges: bool,
    /// The nodes that call functions.
    pub calls: bool,
    /// Repeated functions that differ.
    pub duplicate_functions: bool,
    /// True if uses of deprecated operations are counted, including those inside functions.
    pub uses: bool,
    /// The nodes whose node signatures are found for `releases`.
    pub node_signatures: RequestedSignatures,
    /// True if ignored attributes of nodes in functions are collected, if node signatures are
    /// requested; false if there are known to be none.
    pub ignored_in_functions: bool,
    pub releases: Releases<'a>,
}

/// The nodes whose node signatures are requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RequestedSignatures {
    None,
    /// No nodes outside functions: only names of functions and ignored attributes in them.
    OfBodies,
    /// Also all nodes outside functions, with their inputs.
    OfAll,
}

/// The size of a graph, to allocate memory once.
#[derive(Clone, Copy, Debug, Default)]
pub struct GraphSize {
    /// Number of nodes outside functions.
    pub nodes: usize,
    /// Number of their inputs.
    pub inputs: usize,
}
