//! The checks of a session that the C++ loader creates: of constants, operations, and placement.

use super::node_diagnostic;
use crate::{
    graph::{
        GraphError, ImportDiagnostic, ImportDiagnosticKind,
        importer::{
            evidence::Evidence, function_memo::Library, loaded_graph::LoadedGraph,
            placement_check::PlacementCheck,
        },
        index::{FirstNode, UnresolvedCall, UnresolvedTarget},
        node_rules::SavedTensorDiagnostic,
        release::PerRelease,
        source::Extent,
    },
    ops::Registry,
};

/// Question about constants and operations outside functions, and about nodes that cannot be
/// placed.
pub(super) fn nodes_and_placement(
    graph: &LoadedGraph<'_>,
    evidence: &mut PerRelease<Evidence>,
) -> Result<(), GraphError> {
    let LoadedGraph { library, top_level, .. } = graph;
    let library = *library;
    let constant = match &top_level.saved_tensor {
        Some((place, diagnostic)) => Some(unsaved_constant(library, *place, diagnostic)?),
        None => None,
    };
    let callee = match top_level.unresolved_call(library.names) {
        Some(call) => Some(missing_callee(library, &call)?),
        None => None,
    };
    let placement = PlacementCheck::read(library, top_level.called_functions())?;
    for (release, evidence) in evidence.iter_mut() {
        let registry = library.releases.registry(release);
        evidence.unsaved_constant.clone_from(&constant);
        evidence.missing_callee.clone_from(&callee);
        evidence.unknown_operation = unknown_operation(graph, registry)?;
        // A node that has no kernel takes the slow path: its diagnostic is that of the import.
        let is_of_node = |diagnostic: &ImportDiagnostic| {
            let operation = registry.operation(&diagnostic.operation);
            diagnostic.function.is_none()
                && operation.is_some_and(|operation| !operation.has_cpu_kernel())
        };
        let is_imported = !evidence.import.as_ref().is_some_and(is_of_node);
        let unplaced = unplaced(graph, registry)?;
        evidence.node_placement = unplaced
            .filter(|diagnostic| is_imported || diagnostic.kind != ImportDiagnosticKind::NoKernel);
        evidence.function_placement = placement.diagnostic(library, registry)?;
    }
    Ok(())
}

/// Returns the diagnostic of a constant with an unknown number of elements.
fn unsaved_constant(
    library: Library<'_>,
    place: Extent,
    diagnostic: &SavedTensorDiagnostic,
) -> Result<ImportDiagnostic, GraphError> {
    let (kind, found, expected) = diagnostic.diagnostic();
    node_diagnostic::at(library, place, kind, found, expected)
}

/// Returns the diagnostic of a PartitionedCall of a function that is not in the library.
fn missing_callee(
    library: Library<'_>,
    call: &UnresolvedCall,
) -> Result<ImportDiagnostic, GraphError> {
    let name = "f".to_owned();
    let (kind, found) = match &call.target {
        UnresolvedTarget::Missing => {
            (ImportDiagnosticKind::AttributesMissing { attributes: vec![name] }, String::new())
        }
        UnresolvedTarget::Other(value) => {
            (ImportDiagnosticKind::AttributeKind { attribute: name }, format!("f = {value}"))
        }
        UnresolvedTarget::Function(function) => {
            let found = format!("a function {function:?} as an attribute");
            (ImportDiagnosticKind::FunctionBody, found)
        }
    };
    node_diagnostic::at(library, call.place, kind, found, "a function of the library")
}

/// Returns the position of a node in the order in which a session places nodes: their order of
/// creation.
fn order(graph: &LoadedGraph<'_>, place: Extent) -> Result<(u32, u64), GraphError> {
    // Without visits, nodes are created in the order of the file.
    let visit = match graph.visited {
        Some(visited) => visited.visit_of(place)?.unwrap_or_default(),
        None => 0,
    };
    Ok((visit, place.start))
}

/// Returns the first node that cannot be placed: it has no kernel, or a device that cannot be
/// parsed.
fn unplaced(
    graph: &LoadedGraph<'_>,
    registry: &Registry,
) -> Result<Option<ImportDiagnostic>, GraphError> {
    let lacking = without_kernel(graph, registry)?;
    let device = graph.top_level.device.as_ref();
    let is_device_first = match (device, lacking) {
        (Some(device), Some(lacking)) => order(graph, device.place)? < order(graph, lacking.place)?,
        _ => true,
    };
    match (device.filter(|_| is_device_first), lacking) {
        (Some(device), _) => node_diagnostic::bad_device(graph.library, device.place).map(Some),
        (None, Some(first)) => {
            let expected = "an operation with a kernel for a CPU";
            let (kind, found) = (ImportDiagnosticKind::NoKernel, first.operation.clone());
            node_diagnostic::at(graph.library, first.place, kind, found, expected).map(Some)
        }
        (None, None) => Ok(None),
    }
}

/// Returns the first node of an operation that is neither in the release nor in the library.
fn unknown_operation(
    graph: &LoadedGraph<'_>,
    registry: &Registry,
) -> Result<Option<ImportDiagnostic>, GraphError> {
    let LoadedGraph { library, top_level, .. } = graph;
    let unknown = top_level.operations.iter().find(|first| {
        let is_function = library.names.find(first.operation.as_bytes()).is_some();
        !is_function && registry.operation(&first.operation).is_none()
    });
    let Some(first) = unknown else { return Ok(None) };
    let found = first.operation.clone();
    node_diagnostic::at(*library, first.place, ImportDiagnosticKind::UnknownOperation, found, "")
        .map(Some)
}

/// Returns the first node of an operation for which no CPU has a kernel.
fn without_kernel<'m>(
    graph: &'m LoadedGraph<'_>,
    registry: &Registry,
) -> Result<Option<&'m FirstNode>, GraphError> {
    let LoadedGraph { library, top_level, .. } = graph;
    let lacking = top_level.operations.iter().filter(|first| {
        let is_function = library.names.find(first.operation.as_bytes()).is_some();
        let operation = registry.operation(&first.operation).filter(|_| !is_function);
        operation.is_some_and(|operation| !operation.has_cpu_kernel())
    });
    let mut first = None;
    for node in lacking {
        let at = order(graph, node.place)?;
        if first.is_none_or(|(known, _)| at < known) {
            first = Some((at, node));
        }
    }
    Ok(first.map(|(_, node)| node))
}
