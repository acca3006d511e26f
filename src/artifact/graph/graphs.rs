//! What is known of the graphs of a file once it was read.
//!
//! Knows the results. It must never know how they were found.

use std::collections::BTreeMap;

use super::{
    DeprecatedOperation, Judgement, StructureFault, StructureFaultKind, objects::ObjectGraph,
    references::References,
};
use crate::{artifact::schema::fields::saver_def, version::VersionDef, wire::scan::Piece};

/// What a file holds: one meta graph for a GraphDef or MetaGraphDef, any number for a SavedModel.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Graphs {
    /// In the order of the file.
    pub meta_graphs: Vec<MetaGraph>,
    /// Whether there was more than is kept (1024 meta graphs, 1 MiB of tags, 65536 operation
    /// types): what is here is then incomplete.
    pub overflow: bool,
}

/// A graph with what is written around it. For a bare GraphDef everything but the graph is empty.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct MetaGraph {
    /// What it is for: `serve`, `train`, `gpu`.
    pub tags: Vec<String>,
    /// The release that wrote it, as it calls itself.
    pub tensorflow_version: String,
    /// Whether its writer left out the attributes that have their default value, so that a consumer
    /// which does not know them yet can read it all the same.
    pub stripped_default_attrs: bool,
    /// How many operations its writer lists as those that the graph uses (`stripped_op_list`); 0
    /// unless the whole graph is [read](super::read()).
    pub listed_operations: u64,
    /// Whether it says how to save and restore variables, so that variables belong to it.
    pub has_saver: bool,
    /// Whether it has the object graph of the TF2 format.
    pub has_object_graph: bool,
    /// The graph itself.
    pub graph: Graph,
    pub(super) saver: SaverNames,
    /// What in it names nodes of the graph.
    pub(super) references: References,
    /// Where its object graph is.
    pub(super) objects: ObjectGraph,
}

/// What the saver of a meta graph names.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SaverNames {
    /// Whether it names the tensor that saves variables.
    pub(super) save: bool,
    /// Whether it names the operation that restores them.
    pub(super) restore: bool,
}

impl SaverNames {
    /// Takes in a text of the saver, or a piece of one; the last one of a field counts.
    pub(super) fn take(&mut self, field: u32, piece: &[u8], is: Piece) {
        let has_name = match field {
            saver_def::SAVE_TENSOR_NAME => &mut self.save,
            saver_def::RESTORE_OP_NAME => &mut self.restore,
            _ => return,
        };
        *has_name = !piece.is_empty() || (*has_name && !is.first);
    }
}

/// What decides about a graph.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Graph {
    /// The versions; zeros if there are none.
    pub versions: VersionDef,
    /// Whether there are versions at all.
    pub has_versions: bool,
    /// Nodes outside of functions.
    pub nodes: u64,
    /// Functions of the library.
    pub functions: u64,
    /// Nodes inside of functions.
    pub function_nodes: u64,
    /// How many nodes, inside and outside of functions, each operation type has; empty unless asked
    /// for.
    pub operations: BTreeMap<String, u64>,
    /// Operations on the list of deprecated ones, each with its first node, in the order in which
    /// the importer visits them.
    pub deprecated_nodes: Vec<DeprecatedUse>,
    /// The same inside of functions, once a function, in the order of the file.
    pub deprecated_in_functions: Vec<DeprecatedUse>,
    /// Why the nodes or functions do not fit together, if they do not.
    pub structure: Option<StructureFault>,
    /// What each registry that was given makes of it
    /// ([`ReadOptions::with_registries`](super::ReadOptions::with_registries)), in their order;
    /// empty without any.
    pub judgements: Vec<Judgement>,
    /// How many of `deprecated_nodes` the importer visits before it comes to a fault that it finds
    /// on the way.
    pub(super) visited_before_fault: usize,
}

impl Graph {
    /// The operations on the list that the importer comes to before it comes to
    /// [`structure`](Self::structure): none where the fault is one that it looks for before it
    /// visits nodes, all where there is no fault.
    #[must_use]
    pub fn deprecated_before_fault(&self) -> &[DeprecatedUse] {
        let count = match self.structure.as_ref().map(|fault| fault.kind) {
            None | Some(StructureFaultKind::Cycle) => self.deprecated_nodes.len(),
            Some(kind) if kind.is_found_on_the_way() => self.visited_before_fault,
            Some(_) => 0,
        };
        self.deprecated_nodes.get(..count).unwrap_or(&self.deprecated_nodes)
    }
}

/// Nodes whose operation is on the list of deprecated ones.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DeprecatedUse {
    /// The entry of the list.
    pub operation: DeprecatedOperation,
    /// The first of the nodes.
    pub node: String,
    /// The function that they are in.
    pub function: Option<String>,
    /// How many there are.
    pub count: u64,
}
