//! The order in which TensorFlow's importer visits the nodes of a graph, and what it finds on the
//! way.

use std::{cmp::Reverse, collections::BinaryHeap};

use super::{calls::CallFault, count};
use crate::artifact::graph::{
    StructureFaultKind,
    index::{DeprecatedNode, GraphIndex},
    rules::LoopRole,
};

/// When a node is visited that never is.
pub(super) const NEVER: u32 = u32::MAX;

/// When each node of a graph is visited.
#[derive(Debug)]
pub(super) enum Visits {
    /// In the order in which they are written: every input is the name of an earlier node.
    AsWritten,
    /// By the number of the node; [`NEVER`] for those that are part of a cycle, or behind one.
    Found(Vec<u32>),
}

impl Visits {
    /// When a node is visited.
    pub(super) fn of(&self, node: u32) -> u32 {
        match self {
            Self::AsWritten => node,
            Self::Found(visits) => visits.get(node as usize).copied().unwrap_or(NEVER),
        }
    }

    /// The nodes that are visited at all, in the order of the visits.
    pub(super) fn in_order(&self) -> Vec<u32> {
        let Self::Found(visits) = self else { return Vec::new() };
        let visited = visits.iter().filter(|visit| **visit != NEVER).count();
        let mut order = vec![0; visited];
        for (node, visit) in (0_u32..).zip(visits) {
            if let Some(place) = order.get_mut(*visit as usize) {
                *place = node;
            }
        }
        order
    }

    /// The first node that is never visited.
    pub(super) fn unvisited(&self) -> Option<u32> {
        match self {
            Self::AsWritten => None,
            Self::Found(visits) => visits.iter().position(|visit| *visit == NEVER).map(count),
        }
    }
}

/// A node and what is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeFault {
    pub(super) node: u32,
    pub(super) kind: StructureFaultKind,
}

/// Visits the nodes of a graph whose inputs are all there.
pub(super) fn visits(index: &GraphIndex) -> Visits {
    if index.nodes().is_empty() {
        return Visits::AsWritten;
    }
    let nodes = 0..count(index.nodes().len());
    let pending = nodes.clone().map(|node| pending(index, node)).collect();
    let edges = nodes.flat_map(|to| {
        let sources = index.inputs(to).iter().filter_map(|input| index.source(*input));
        sources.map(move |from| Edge { from, to })
    });
    Visits::Found(visit(edges, pending, |node| loop_role(index, node)))
}

fn loop_role(index: &GraphIndex, node: u32) -> LoopRole {
    index.nodes().get(node as usize).map_or(LoopRole::None, |node| node.loop_role)
}

/// How many inputs a node waits for.
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

/// The first node of each deprecated operation that is visited at all, in the order of the visits.
pub(super) fn deprecated(index: &GraphIndex, visits: &Visits) -> Vec<DeprecatedNode> {
    let mut nodes = index.deprecated().to_vec();
    nodes.sort_by_key(|node| (node.position, visits.of(node.number)));
    nodes.dedup_by_key(|node| node.position);
    nodes.retain(|node| visits.of(node.number) != NEVER);
    nodes.sort_by_key(|node| visits.of(node.number));
    nodes
}

/// What the importer comes to first while it visits nodes; `calls` are those of functions that
/// cannot be built.
pub(super) fn first_fault(
    index: &GraphIndex,
    visits: &Visits,
    calls: &[CallFault],
) -> Option<NodeFault> {
    // At one node, where it has to be comes before what it calls.
    let lost = |node| NodeFault { node, kind: StructureFaultKind::UnknownColocation };
    let calling =
        |call: &CallFault| NodeFault { node: call.node, kind: StructureFaultKind::CalledFunction };
    let found = index.lost().map(lost).chain(calls.iter().map(calling));
    let first = found.min_by_key(|fault| (visits.of(fault.node), fault.kind));
    first.filter(|fault| visits.of(fault.node) != NEVER).or_else(|| {
        let node = visits.unvisited()?;
        Some(NodeFault { node, kind: StructureFaultKind::Cycle })
    })
}

/// How many of the deprecated nodes are visited before a fault. A function can say of itself that
/// it is deprecated, which comes before what is in it, but not before what is wrong with its
/// signature.
pub(super) fn visited_before(
    deprecated: &[DeprecatedNode],
    visits: &Visits,
    fault: NodeFault,
    call: Option<&CallFault>,
) -> usize {
    let at_node = fault.kind == StructureFaultKind::CalledFunction
        && call.is_some_and(|call| !call.of_signature);
    deprecated.partition_point(|node| {
        visits.of(node.number) < visits.of(fault.node) || (at_node && node.number == fault.node)
    })
}

/// That one node has an output of another as an input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) from: u32,
    pub(super) to: u32,
}

/// Visits nodes, the lowest number first among those whose inputs were visited, and says when each
/// was; [`NEVER`] for those that were not. `pending` has how many inputs each node waits for.
pub(super) fn visit(
    edges: impl Iterator<Item = Edge> + Clone,
    mut pending: Vec<u32>,
    loop_role: impl Fn(u32) -> LoopRole,
) -> Vec<u32> {
    let consumers = Consumers::of(edges, pending.len());
    let mut ready: BinaryHeap<Reverse<u32>> = (0_u32..)
        .zip(&pending)
        .filter(|(_, pending)| **pending == 0)
        .map(|(number, _)| Reverse(number))
        .collect();
    let mut visits = vec![NEVER; pending.len()];
    let mut visited = 0;
    while let Some(Reverse(number)) = ready.pop() {
        if let Some(visit) = visits.get_mut(number as usize) {
            *visit = visited;
        }
        visited += 1;
        let goes_back = loop_role(number) == LoopRole::NextIteration;
        for to in consumers.of_node(number) {
            // The edge that closes a loop is waited for by nobody; not even where it is a control
            // edge, for which the head of the loop then waits for ever.
            if goes_back && loop_role(*to) == LoopRole::Merge {
                continue;
            }
            if let Some(pending) = pending.get_mut(*to as usize)
                && *pending > 0
            {
                *pending -= 1;
                if *pending == 0 {
                    ready.push(Reverse(*to));
                }
            }
        }
    }
    visits
}

/// By node, the nodes that have it as an input, as often as they have it.
struct Consumers {
    /// Where those of a node end in the list of all; those of the next begin there.
    ends: Vec<usize>,
    all: Vec<u32>,
}

impl Consumers {
    fn of(edges: impl Iterator<Item = Edge> + Clone, nodes: usize) -> Self {
        let mut ends = vec![0_usize; nodes];
        for edge in edges.clone() {
            if let Some(count) = ends.get_mut(edge.from as usize) {
                *count += 1;
            }
        }
        let mut total = 0;
        for end in &mut ends {
            // Where those of the node begin, until they are filled in.
            let count = std::mem::replace(end, total);
            total += count;
        }
        let mut all = vec![0; total];
        for edge in edges {
            if let Some(end) = ends.get_mut(edge.from as usize)
                && let Some(consumer) = all.get_mut(*end)
            {
                *consumer = edge.to;
                *end += 1;
            }
        }
        Self { ends, all }
    }

    fn of_node(&self, node: u32) -> &[u32] {
        let node = node as usize;
        let from = node.checked_sub(1).and_then(|before| self.ends.get(before)).copied();
        let end = self.ends.get(node).copied().unwrap_or_default();
        self.all.get(from.unwrap_or_default()..end).unwrap_or_default()
    }
}
