//! Finds the diagnostics that the importer reports before it visits nodes: in names, operations and
//! inputs.

use super::{NodeStructureDiagnostic, count};
use crate::graph::{
    StructureDiagnosticKind,
    index::{GraphIndex, NodeMismatch},
};

/// Returns the first invalid node, or the first with an input whose node does not exist.
pub(super) fn first_diagnostic(index: &GraphIndex) -> Option<NodeStructureDiagnostic> {
    mismatch(index).or_else(|| unknown_input(index))
}

/// The importer checks every node in isolation before it checks inputs.
fn mismatch(index: &GraphIndex) -> Option<NodeStructureDiagnostic> {
    let mismatch = index.mismatch()?;
    let kind = if mismatch.bad_name {
        StructureDiagnosticKind::Name
    } else if mismatch.repeated_name {
        StructureDiagnosticKind::Duplicate
    } else if mismatch.no_operation {
        StructureDiagnosticKind::NoOperation
    } else {
        StructureDiagnosticKind::InputOrder
    };
    Some(NodeStructureDiagnostic { node: count(index.nodes().len()).saturating_sub(1), kind })
}

/// Returns the first node without an operation and without an earlier diagnostic, if the library
/// has a function without a name: the importer does not check what such a node calls.
pub(super) fn nameless_call(index: &GraphIndex) -> Option<NodeStructureDiagnostic> {
    let node = index.nameless_call()?;
    let is_last = count(index.nodes().len()) == node.saturating_add(1);
    let is_named = |mismatch: NodeMismatch| !mismatch.bad_name && !mismatch.repeated_name;
    let is_first = !is_last || index.mismatch().is_none_or(is_named);
    is_first.then_some(NodeStructureDiagnostic { node, kind: StructureDiagnosticKind::NoOperation })
}

fn unknown_input(index: &GraphIndex) -> Option<NodeStructureDiagnostic> {
    let mut nodes = 0..count(index.nodes().len());
    let is_nowhere =
        |node: &u32| index.inputs(*node).iter().any(|input| index.source(*input).is_none());
    let node = nodes.find(is_nowhere)?;
    Some(NodeStructureDiagnostic { node, kind: StructureDiagnosticKind::UnknownInput })
}
