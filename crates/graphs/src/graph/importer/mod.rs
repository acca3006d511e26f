//! Applies the rules of TensorFlow's importer to a graph, by its index.
//!
//! Each step of the importer is a function over the index, in a file of its own; [`judge()`] calls
//! them in TensorFlow's order, and the first fault wins. Only for the bodies of functions that are
//! called it goes back to the file.
//!
//! Knows the importer. It must never know how a graph is written.

mod binding;
mod bodies;
mod body;
mod body_shapes;
mod by_release;
mod call_order;
mod called_bodies;
mod callers;
mod calls;
mod context;
mod control_flow;
mod evidence;
mod faults;
mod function_graph;
mod function_memo;
mod function_summary;
mod functions;
mod instantiate;
mod judge;
mod kind_facts;
mod lists;
mod loaded_functions;
mod loaded_graph;
mod loaders;
mod named_nodes;
mod names;
mod order;
mod placed_bodies;
mod ready;
mod registries;
mod reloaded;
mod saver;
mod signatures;
mod words;

pub(super) use self::{
    called_bodies::Library,
    context::Context,
    evidence::Evidence,
    function_memo::FunctionMemo,
    judge::{Findings, judge},
    loaded_graph::{LoadedGraph, Visited, main_nodes},
    loaders::judge_loaders,
    registries::{CheckedNodes, check_nodes, structure_evidence},
};
use self::{lists::count, order::NodeFault};

#[cfg(test)]
mod tests;
