//! The steps of the importer in their order.

use super::{
    calls::{CallFault, CalledFunctions},
    functions,
    instantiated_callees::Library,
    names,
    order::{self, NodeFault, Visits},
};
use crate::graph::{
    BodyFault, GraphError, StructureFault, StructureFaultKind,
    index::{DeprecatedNode, GraphIndex},
    name_of,
    source::{Extent, Source},
};

/// The diagnostics of the importer for a graph that do not depend on the operations.
#[derive(Debug, Default)]
pub(in super::super) struct StructureDiagnostics {
    /// The first fault, if any.
    pub(in super::super) fault: Option<StructureFault>,
    /// A node without an operation, which every loader refuses before it finds `fault`, but the one
    /// that gives the function without a name another one.
    pub(in super::super) nameless_call: Option<StructureFault>,
    /// The first node of each deprecated operation, in the order of the visits; `None` if the
    /// importer does not come as far as visiting nodes.
    pub(in super::super) deprecated: Option<Vec<DeprecatedNode>>,
    /// Number of nodes of `deprecated` that are visited before the fault.
    pub(in super::super) visited_before_fault: usize,
    /// When each node is visited, where the importer comes as far as that.
    pub(in super::super) visits: Option<Visits>,
}

/// Judges one graph, whose functions are those of `library`.
pub(in super::super) fn judge(
    library: Library<'_>,
    index: &GraphIndex,
) -> Result<StructureDiagnostics, GraphError> {
    let mut structure = steps(library, index)?;
    if let Some(fault) = names::nameless_call(index).filter(|_| !index.is_without_nodes()) {
        let Library { source, release, .. } = library;
        structure.nameless_call = Some(named(source, index, fault, None, release)?);
    }
    Ok(structure)
}

/// The steps of the importer, where nodes without an operation may call a function without a name.
fn steps(library: Library<'_>, index: &GraphIndex) -> Result<StructureDiagnostics, GraphError> {
    let Library { source, release, .. } = library;
    if index.is_without_nodes() {
        return Ok(StructureDiagnostics {
            fault: functions::first_fault(index),
            ..StructureDiagnostics::default()
        });
    }
    if let Some(fault) = names::first_fault(index) {
        let fault = named(source, index, fault, None, release)?;
        return Ok(StructureDiagnostics { fault: Some(fault), ..StructureDiagnostics::default() });
    }
    let visits = order::visits(index);
    let deprecated = order::deprecated(index, &visits);
    if let Some(fault) = functions::first_fault(index) {
        let (fault, deprecated, visits) = (Some(fault), Some(deprecated), Some(visits));
        return Ok(StructureDiagnostics {
            fault,
            deprecated,
            visits,
            ..StructureDiagnostics::default()
        });
    }
    let calls = CalledFunctions::read(library, index)?.faults(index);
    let (mut fault, mut visited_before_fault) = (None, deprecated.len());
    if let Some(found) = order::first_fault(index, &visits, &calls) {
        let call = calls.iter().find(|call| call.node == found.node);
        fault = Some(named(source, index, found, call, release)?);
        visited_before_fault = order::visited_before(&deprecated, &visits, found, call);
    }
    let (deprecated, visits) = (Some(deprecated), Some(visits));
    Ok(StructureDiagnostics {
        fault,
        deprecated,
        visited_before_fault,
        visits,
        ..StructureDiagnostics::default()
    })
}

/// A fault with the names of what has it.
pub(super) fn named(
    source: Source<'_>,
    index: &GraphIndex,
    fault: NodeFault,
    call: Option<&CallFault>,
    release: i32,
) -> Result<StructureFault, GraphError> {
    let place = place_of(source, index, fault.node)?;
    let node = name_of::node(source, place, release)?;
    let mut found = StructureFault::new(fault.kind, node);
    if fault.kind == StructureFaultKind::CalledFunction
        && let Some(call) = call
    {
        let at = call.fault.function;
        let part_fault = call.fault.fault;
        let (function, part) = name_of::part_of_function(source, at, part_fault.part, release)?;
        found.body = Some(BodyFault { function, part, kind: part_fault.kind });
    }
    Ok(found)
}

/// The extent of a node that can have a fault.
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
