//! Applies the rules of TensorFlow's importer to a graph, by its index.
//!
//! Each step of the importer is a function over the index, in its own file; [`judge()`] calls them
//! in TensorFlow's order, and the first diagnostic wins. The file is read again only for the bodies
//! of called functions.
//!
//! Depends on the importer's rules, but not on the encoding of graphs.

mod binding;
mod body;
mod body_shapes;
mod by_release;
mod call_order;
mod callee_diagnostics;
mod callers;
mod calls;
mod concrete_functions;
mod context;
mod control_flow;
mod diagnostics;
mod evidence;
mod function_graph;
mod function_memo;
mod function_summary;
mod functions;
mod instantiate;
mod instantiated_callees;
mod judge;
mod lists;
mod loaded_graph;
mod loaders;
mod names;
mod node_checks;
mod node_references;
mod order;
mod placement_check;
mod ready;
mod reexport;
mod registries;
mod saver;
mod signature_facts;
mod signatures;
mod visits;

pub(super) use self::{
    context::Context,
    evidence::Evidence,
    function_memo::{FunctionMemo, Library},
    judge::{StructureDiagnostics, judge},
    loaded_graph::{LoadedGraph, Visited, top_level_nodes},
    loaders::judge_loaders,
    registries::{CheckedNodes, check_nodes, structure_evidence},
};
use self::{lists::count, order::NodeStructureDiagnostic};

#[cfg(test)]
mod tests;
