//! The order in which TensorFlow's importer visits the nodes of a graph, and the diagnostics found
//! on the way.

use super::{
    calls::CallDiagnostic,
    count,
    visits::{Edge, NEVER, Visits, visit},
};
use crate::graph::{
    StructureDiagnosticKind,
    index::{DeprecatedNode, GraphIndex},
    rules::LoopRole,
};

/// A node and its diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeStructureDiagnostic {
    pub(super) node: u32,
    pub(super) kind: StructureDiagnosticKind,
}

/// Visits the nodes of a graph whose inputs all exist.
pub(super) fn visits(index: &GraphIndex) -> Visits {
    if index.is_in_order() {
        return Visits::AsWritten(count(index.nodes().len()));
    }
    let nodes = 0..count(index.nodes().len());
    let pending = nodes.clone().map(|node| pending(index, node)).collect();
    let edges = nodes.flat_map(|to| {
        let sources = index.inputs(to).iter().filter_map(|input| index.source(*input));
        sources.map(move |from| Edge { from, to })
    });
    visit(edges, pending, |node| loop_role(index, node))
}

fn loop_role(index: &GraphIndex, node: u32) -> LoopRole {
    index.nodes().get(node as usize).map_or(LoopRole::None, |node| node.loop_role())
}

/// Returns the number of inputs that a node waits for.
fn pending(index: &GraphIndex, node: u32) -> u32 {
    let inputs = index.inputs(node);
    let comes_back = |from: u32| loop_role(index, from) == LoopRole::NextIteration;
    let is_head = loop_role(index, node) == LoopRole::Merge
        && inputs
            .iter()
            .any(|input| !input.is_control() && index.source(*input).is_some_and(comes_back));
    if is_head {
        // The head of a loop starts with one data input; the other one comes back from the loop.
        return count(inputs.iter().filter(|input| input.is_control()).count()).saturating_add(1);
    }
    count(inputs.len())
}

/// Returns the first node of each deprecated operation that is visited at all, in the order of the
/// visits.
pub(super) fn deprecated(index: &GraphIndex, visits: &Visits) -> Vec<DeprecatedNode> {
    let mut nodes = index.deprecated().to_vec();
    nodes.sort_by_key(|node| (node.position, visits.of(node.number)));
    nodes.dedup_by_key(|node| node.position);
    nodes.retain(|node| visits.of(node.number) != NEVER);
    nodes.sort_by_key(|node| visits.of(node.number));
    nodes
}

/// Returns the importer's first diagnostic while it visits nodes; `calls` are those of functions
/// that cannot be built.
pub(super) fn first_diagnostic(
    index: &GraphIndex,
    visits: &Visits,
    calls: &[CallDiagnostic],
) -> Option<NodeStructureDiagnostic> {
    // For one node, colocation is checked before its call.
    let unresolved =
        |node| NodeStructureDiagnostic { node, kind: StructureDiagnosticKind::UnknownColocation };
    let calling = |call: &CallDiagnostic| NodeStructureDiagnostic {
        node: call.node,
        kind: StructureDiagnosticKind::CalledFunction,
    };
    let crash = visits.crash();
    let crash = crash.map(|crash| NodeStructureDiagnostic {
        node: crash.head,
        kind: StructureDiagnosticKind::LoopInputs,
    });
    let found = index
        .unresolved_colocations()
        .map(unresolved)
        .chain(calls.iter().map(calling))
        .chain(crash);
    let first = found.min_by_key(|diagnostic| (time_of(visits, *diagnostic), diagnostic.kind));
    first.filter(|diagnostic| time_of(visits, *diagnostic) != NEVER).or_else(|| {
        let node = visits.unvisited()?;
        Some(NodeStructureDiagnostic { node, kind: StructureDiagnosticKind::Cycle })
    })
}

/// Returns the time when a diagnostic is found.
fn time_of(visits: &Visits, diagnostic: NodeStructureDiagnostic) -> u32 {
    let is_crash = diagnostic.kind == StructureDiagnosticKind::LoopInputs;
    let crash = visits.crash().filter(|_| is_crash);
    visits.of(crash.map_or(diagnostic.node, |crash| crash.at))
}

/// Returns the number of deprecated nodes that are visited before a diagnostic. A function can
/// declare itself deprecated, which is reported before a diagnostic of its body, but not before one
/// of its signature.
pub(super) fn visited_before(
    deprecated: &[DeprecatedNode],
    visits: &Visits,
    diagnostic: NodeStructureDiagnostic,
    call: Option<&CallDiagnostic>,
) -> usize {
    let at_node = match diagnostic.kind {
        StructureDiagnosticKind::CalledFunction => call.is_some_and(|call| !call.of_signature),
        kind => kind == StructureDiagnosticKind::LoopInputs,
    };
    let found = time_of(visits, diagnostic);
    deprecated.partition_point(|node| {
        let visit = visits.of(node.number);
        visit < found || (at_node && visit == found)
    })
}
