//! Diagnostics of nodes outside functions, with names read from the file.

use crate::graph::{
    GraphError, ImportDiagnostic, ImportDiagnosticKind, importer::function_memo::Library,
    index::ReferringNode, node_at, rules::shown, source::Extent,
};

/// Returns a diagnostic of the node at a place.
pub(super) fn at(
    library: Library<'_>,
    place: Extent,
    kind: ImportDiagnosticKind,
    found: String,
    expected: &str,
) -> Result<ImportDiagnostic, GraphError> {
    let node = node_at::read(library.source, place, None, library.release)?;
    Ok(ImportDiagnostic {
        kind,
        node: shown(&node.name),
        function: None,
        operation: shown(&node.operation),
        found: shown(found.as_bytes()),
        expected: expected.to_owned(),
    })
}

/// Returns the diagnostic of a node that names a function missing in the library.
pub(super) fn missing_function(
    library: Library<'_>,
    node: &ReferringNode,
    kind: ImportDiagnosticKind,
) -> Result<ImportDiagnostic, GraphError> {
    let found = format!("a function {:?} as an attribute", node.name);
    at(library, node.place, kind, found, "a function of the library")
}

/// Returns the diagnostic of a node with a device that cannot be read.
pub(super) fn bad_device(
    library: Library<'_>,
    place: Extent,
) -> Result<ImportDiagnostic, GraphError> {
    let expected = "/job:NAME/replica:0/task:0/device:CPU:0";
    at(library, place, ImportDiagnosticKind::Device, "a device that is none".to_owned(), expected)
}
