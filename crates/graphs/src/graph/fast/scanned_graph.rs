//! The result of the fast walk for a meta graph.
//!
//! Does not depend on the walk itself.

use crate::graph::{
    DeprecatedOperation, MetaGraph, StructureDiagnostic, StructureDiagnosticKind,
    function_names::FunctionNames, index::TopLevelNodes, objects::ObjectGraph,
};

/// A meta graph after the fast walk.
#[derive(Debug, Default)]
pub(in super::super) struct ScannedGraph {
    pub(in super::super) meta_graph: MetaGraph,
    /// True if the importer may visit the nodes in another order than that of the file.
    pub(in super::super) needs_order: bool,
    /// The number of inputs of its nodes.
    pub(in super::super) inputs: u64,
    pub(in super::super) functions: FunctionNames,
    /// The node facts that loaders check, if every given registry is known to accept the nodes.
    pub(in super::super) accepted: Option<TopLevelNodes>,
    /// True if nodes of functions may have attributes that a given registry does not know.
    pub(in super::super) may_ignore_in_functions: bool,
    /// Functions that declare themselves deprecated.
    pub(in super::super) deprecated_functions: Vec<DeprecatedOperation>,
    /// The extents of its object graph.
    pub(in super::super) objects: ObjectGraph,
}

impl ScannedGraph {
    /// Returns true if the graph needs no slow path.
    pub(in super::super) fn needs_no_slow_path(&self) -> bool {
        let no_functions = self.functions.is_empty() && !self.functions.repeated();
        self.deprecated_functions.is_empty()
            && (no_functions || self.diagnostic_before_visits().is_some())
            && !self.needs_order
    }

    /// Returns the diagnostic with which every loader refuses the graph before it visits any node.
    pub(in super::super) fn diagnostic_before_visits(&self) -> Option<&StructureDiagnostic> {
        // A node without an operation may call the function without a name.
        let is_call = |diagnostic: &StructureDiagnostic| {
            diagnostic.kind == StructureDiagnosticKind::NoOperation
                && self.functions.find(b"").is_some()
        };
        let diagnostic = self.meta_graph.graph.structure.as_ref();
        diagnostic.filter(|diagnostic| !self.needs_order && !is_call(diagnostic))
    }
}
