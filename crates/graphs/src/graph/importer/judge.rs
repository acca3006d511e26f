//! The steps of the importer, in its order.

use super::{
    calls::{CallDiagnostic, CalledFunctions},
    function_memo::Library,
    functions, names,
    order::{self, NodeStructureDiagnostic},
    visits::Visits,
};
use crate::graph::{
    BodyDiagnostic, GraphError, StructureDiagnostic, StructureDiagnosticKind,
    index::{DeprecatedNode, GraphIndex},
    name_of,
    source::{Extent, Source},
};

/// The diagnostics of the importer for a graph that do not depend on the operations.
#[derive(Debug, Default)]
pub(in super::super) struct StructureDiagnostics {
    /// The first diagnostic, if any.
    pub(in super::super) diagnostic: Option<StructureDiagnostic>,
    /// A node without an operation, which every loader refuses before it finds `diagnostic`, except
    /// the loader that renames the function without a name.
    pub(in super::super) nameless_call: Option<StructureDiagnostic>,
    /// The first node of each deprecated operation, in the order of the visits; `None` if the
    /// importer does not visit nodes.
    pub(in super::super) deprecated: Option<Vec<DeprecatedNode>>,
    /// Number of nodes of `deprecated` that are visited before the diagnostic.
    pub(in super::super) visited_before_diagnostic: usize,
    /// The visiting time of each node, if the importer visits nodes.
    pub(in super::super) visits: Option<Visits>,
}

/// Judges one graph, whose functions are those of `library`.
pub(in super::super) fn judge(
    library: Library<'_>,
    index: &GraphIndex,
) -> Result<StructureDiagnostics, GraphError> {
    let mut structure = steps(library, index)?;
    if let Some(diagnostic) = names::nameless_call(index).filter(|_| !index.is_without_nodes()) {
        let Library { source, release, .. } = library;
        structure.nameless_call = Some(named(source, index, diagnostic, None, release)?);
    }
    Ok(structure)
}

/// Returns the steps of the importer, where nodes without an operation may call a function without
/// a name.
fn steps(library: Library<'_>, index: &GraphIndex) -> Result<StructureDiagnostics, GraphError> {
    let Library { source, release, .. } = library;
    if index.is_without_nodes() {
        return Ok(StructureDiagnostics {
            diagnostic: functions::first_diagnostic(index),
            ..StructureDiagnostics::default()
        });
    }
    if let Some(diagnostic) = names::first_diagnostic(index) {
        let diagnostic = named(source, index, diagnostic, None, release)?;
        return Ok(StructureDiagnostics {
            diagnostic: Some(diagnostic),
            ..StructureDiagnostics::default()
        });
    }
    let visits = order::visits(index);
    let deprecated = order::deprecated(index, &visits);
    if let Some(diagnostic) = functions::first_diagnostic(index) {
        let (diagnostic, deprecated, visits) = (Some(diagnostic), Some(deprecated), Some(visits));
        return Ok(StructureDiagnostics {
            diagnostic,
            deprecated,
            visits,
            ..StructureDiagnostics::default()
        });
    }
    let calls = CalledFunctions::read(library, index)?.diagnostics(index);
    let (mut diagnostic, mut visited_before_diagnostic) = (None, deprecated.len());
    if let Some(found) = order::first_diagnostic(index, &visits, &calls) {
        let call = calls.iter().find(|call| call.node == found.node);
        diagnostic = Some(named(source, index, found, call, release)?);
        visited_before_diagnostic = order::visited_before(&deprecated, &visits, found, call);
    }
    let (deprecated, visits) = (Some(deprecated), Some(visits));
    Ok(StructureDiagnostics {
        diagnostic,
        deprecated,
        visited_before_diagnostic,
        visits,
        ..StructureDiagnostics::default()
    })
}

/// Returns a diagnostic with the names of its node or function.
pub(super) fn named(
    source: Source<'_>,
    index: &GraphIndex,
    diagnostic: NodeStructureDiagnostic,
    call: Option<&CallDiagnostic>,
    release: i32,
) -> Result<StructureDiagnostic, GraphError> {
    let place = place_of(source, index, diagnostic.node)?;
    let node = name_of::node(source, place, release)?;
    let mut found = StructureDiagnostic::new(diagnostic.kind, node);
    if diagnostic.kind == StructureDiagnosticKind::CalledFunction
        && let Some(call) = call
    {
        let at = call.diagnostic.function;
        let part_diagnostic = call.diagnostic.diagnostic;
        let (function, part) =
            name_of::part_of_function(source, at, part_diagnostic.part, release)?;
        found.body = Some(BodyDiagnostic { function, part, kind: part_diagnostic.kind });
    }
    Ok(found)
}

/// Returns the extent of a node that can have a diagnostic.
pub(super) fn place_of(
    source: Source<'_>,
    index: &GraphIndex,
    node: u32,
) -> Result<Extent, GraphError> {
    let calling = index.calls().iter().find(|call| call.number == node);
    match calling {
        Some(call) => Ok(call.place),
        None => index.place_of(source, node),
    }
}
