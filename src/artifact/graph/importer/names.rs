//! What the importer finds before it visits nodes: names, operations, inputs.

use super::{NodeFault, count};
use crate::artifact::graph::{StructureFaultKind, index::GraphIndex};

/// The first node that no graph can have, or whose input names no node.
pub(super) fn first_fault(index: &GraphIndex) -> Option<NodeFault> {
    misfit(index).or_else(|| unknown_input(index))
}

/// The importer looks at every node for itself before it looks at any input.
fn misfit(index: &GraphIndex) -> Option<NodeFault> {
    let misfit = index.misfit()?;
    let kind = if misfit.bad_name {
        StructureFaultKind::Name
    } else if misfit.repeated_name {
        StructureFaultKind::Duplicate
    } else if misfit.no_operation {
        StructureFaultKind::NoOperation
    } else {
        StructureFaultKind::InputOrder
    };
    Some(NodeFault { node: count(index.nodes().len()).saturating_sub(1), kind })
}

fn unknown_input(index: &GraphIndex) -> Option<NodeFault> {
    let mut nodes = 0..count(index.nodes().len());
    let is_nowhere =
        |node: &u32| index.inputs(*node).iter().any(|input| index.source(*input).is_none());
    let node = nodes.find(is_nowhere)?;
    Some(NodeFault { node, kind: StructureFaultKind::UnknownInput })
}
