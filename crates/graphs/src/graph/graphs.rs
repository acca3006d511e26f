//! The results of reading the graphs of a file.
//!
//! Does not depend on the walks that find the results.

use std::collections::BTreeMap;

use serdes_version_registry::VersionDef;

use super::{
    DeprecatedUse, Judgement, StructureDiagnostic, StructureDiagnosticKind, objects::ObjectGraph,
    references::References,
};

use crate::{scan::Piece, schema::fields::saver_def};

/// The contents of a file: one meta graph for a GraphDef or MetaGraphDef, any number for a
/// SavedModel.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Graphs {
    /// The meta graphs, in the order of the file.
    pub meta_graphs: Vec<MetaGraph>,
    /// True if a limit was exceeded (1024 meta graphs, 1 MiB of tags, 65536 operation types), so
    /// that the contents are incomplete.
    pub overflow: bool,
}

/// A graph with its surrounding message. For a bare GraphDef everything but the graph is empty.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct MetaGraph {
    /// Its tags: `serve`, `train`, `gpu`.
    pub tags: Vec<String>,
    /// The release that wrote it, as recorded.
    pub tensorflow_version: String,
    /// True if the writer omitted attributes with default values, so that consumers that do not
    /// know them can still read it.
    pub stripped_default_attrs: bool,
    /// The number of operations that the writer lists as used (`stripped_op_list`); 0 unless the
    /// whole graph is [read](super::read()).
    pub listed_operations: u64,
    /// True if it has a saver, and therefore variables.
    pub has_saver: bool,
    /// True if it has the object graph of the TF2 format.
    pub has_object_graph: bool,
    /// The graph itself.
    pub graph: Graph,
    pub(super) saver: SaverNames,
    /// The parts of the meta graph that name nodes of the graph.
    pub(super) references: References,
    /// The extents of its object graph.
    pub(super) objects: ObjectGraph,
}

/// The names that the saver of a meta graph has.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct SaverNames {
    /// True if it names the tensor that saves variables.
    pub(super) save: bool,
    /// True if it names the operation that restores them.
    pub(super) restore: bool,
}

impl SaverNames {
    /// Records a string of the saver, or a piece of one; the last string of a field counts.
    pub(super) fn take(&mut self, field: u32, piece: &[u8], is: Piece) {
        let has_name = match field {
            saver_def::SAVE_TENSOR_NAME => &mut self.save,
            saver_def::RESTORE_OP_NAME => &mut self.restore,
            _ => return,
        };
        *has_name = !piece.is_empty() || (*has_name && !is.first);
    }
}

/// The facts that decide whether a consumer can import a graph.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct Graph {
    /// The versions; zeros if there are none.
    pub versions: VersionDef,
    /// True if the graph has versions at all.
    pub has_versions: bool,
    /// Number of nodes outside functions.
    pub nodes: u64,
    /// Number of functions of the library.
    pub functions: u64,
    /// Number of nodes inside functions.
    pub function_nodes: u64,
    /// The number of nodes of each operation type, inside and outside of functions; empty unless
    /// counting was requested.
    pub operations: BTreeMap<String, u64>,
    /// Deprecated operations, each with its first node, in the order in which the importer visits
    /// them.
    pub deprecated_nodes: Vec<DeprecatedUse>,
    /// Deprecated operations inside functions, once per function, in the order of the file.
    pub deprecated_in_functions: Vec<DeprecatedUse>,
    /// The reason why the nodes or functions do not fit together, if they do not.
    pub structure: Option<StructureDiagnostic>,
    /// The judgement for each given registry
    /// ([`ReadOptions::with_registries`](super::ReadOptions::with_registries)), in their order.
    pub judgements: Vec<Judgement>,
    /// The number of `deprecated_nodes` that the importer visits before the first diagnostic that
    /// it finds while visiting.
    pub(super) visited_before_diagnostic: usize,
}

impl Graph {
    /// Returns the deprecated operations that the importer reaches before
    /// [`structure`](Self::structure): none if that diagnostic is found before nodes are visited,
    /// all if there is no diagnostic.
    #[must_use]
    pub fn deprecated_before_diagnostic(&self) -> &[DeprecatedUse] {
        let count = match self.structure.as_ref().map(|diagnostic| diagnostic.kind) {
            None | Some(StructureDiagnosticKind::Cycle) => self.deprecated_nodes.len(),
            Some(kind) if kind.is_found_on_the_way() => self.visited_before_diagnostic,
            Some(_) => 0,
        };
        self.deprecated_nodes.get(..count).unwrap_or(&self.deprecated_nodes)
    }
}
