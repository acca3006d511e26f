//! Checks the saver of a meta graph, which Python creates once the nodes are imported.
//!
//! Depends on the names that a saver must have, but not on the existence of the nodes.

use crate::graph::{ImportDiagnostic, ImportDiagnosticKind, MetaGraph};

/// Returns the diagnostic of what keeps Python from creating the saver, if there is one.
pub(super) fn diagnostic(meta_graph: &MetaGraph) -> Option<ImportDiagnostic> {
    let saver = meta_graph.saver;
    let (found, expected) = match (saver.save, saver.restore) {
        _ if !meta_graph.has_saver => return None,
        (false, _) => ("a saver without save_tensor_name", "the name of a tensor"),
        (true, false) => ("a saver without restore_op_name", "the name of an operation"),
        (true, true) => return None,
    };
    Some(ImportDiagnostic {
        kind: ImportDiagnosticKind::Python,
        node: String::new(),
        function: None,
        operation: String::new(),
        found: found.to_owned(),
        expected: expected.to_owned(),
    })
}
