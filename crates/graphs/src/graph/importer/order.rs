//! The order in which TensorFlow's importer visits the nodes of a graph, and what it finds on the
//! way.

use super::{calls::CallDiagnostic, count, lists::Lists, ready::Ready};
use crate::graph::{
    StructureDiagnosticKind,
    index::{DeprecatedNode, GraphIndex},
    rules::LoopRole,
};

/// When a node is visited that never is.
pub(super) const NEVER: u32 = u32::MAX;

/// When each node of a graph is visited.
#[derive(Debug)]
pub(in super::super) enum Visits {
    /// This number of nodes, in the order in which they are written: every input is the name of an
    /// earlier node.
    AsWritten(u32),
    /// By the number of the node; [`NEVER`] for those that are part of a cycle, or behind one.
    Determined { visits: Vec<u32>, crash: Option<Crash> },
}

/// That the importer crashes while it visits a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Crash {
    /// The node that it visits.
    pub(super) at: u32,
    /// The head of a loop that had all it waits for, and gets another input from there.
    pub(super) head: u32,
}

impl Visits {
    /// When a node is visited.
    pub(super) fn of(&self, node: u32) -> u32 {
        match self {
            Self::AsWritten(_) => node,
            Self::Determined { visits, .. } => visits.get(node as usize).copied().unwrap_or(NEVER),
        }
    }

    /// The nodes that are visited at all, in the order of the visits.
    pub(super) fn in_order(&self) -> impl Iterator<Item = u32> {
        let (written, found) = match self {
            Self::AsWritten(nodes) => (*nodes, Vec::new()),
            Self::Determined { visits, .. } => (0, sorted(visits)),
        };
        (0..written).chain(found)
    }

    /// The first node that is never visited.
    pub(super) fn unvisited(&self) -> Option<u32> {
        match self {
            Self::AsWritten(_) => None,
            Self::Determined { visits, .. } => {
                visits.iter().position(|visit| *visit == NEVER).map(count)
            }
        }
    }

    /// The crash of the importer, if it comes as far as visiting nodes.
    pub(super) fn crash(&self) -> Option<Crash> {
        match self {
            Self::AsWritten(_) => None,
            Self::Determined { crash, .. } => *crash,
        }
    }

    /// When a diagnostic is found.
    fn of_diagnostic(&self, diagnostic: NodeStructureDiagnostic) -> u32 {
        let crash = self.crash().filter(|_| diagnostic.kind == StructureDiagnosticKind::LoopInputs);
        self.of(crash.map_or(diagnostic.node, |crash| crash.at))
    }
}

/// The nodes by the times when they are visited.
fn sorted(visits: &[u32]) -> Vec<u32> {
    let visited = visits.iter().filter(|visit| **visit != NEVER).count();
    let mut order = vec![0; visited];
    for (node, visit) in (0_u32..).zip(visits) {
        if let Some(place) = order.get_mut(*visit as usize) {
            *place = node;
        }
    }
    order
}

/// A node and what is wrong with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NodeStructureDiagnostic {
    pub(super) node: u32,
    pub(super) kind: StructureDiagnosticKind,
}

/// Visits the nodes of a graph whose inputs are all there.
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

/// Number of inputs that a node waits for.
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

/// The importer's first diagnostic while it visits nodes; `calls` are those of functions that
/// cannot be built.
pub(super) fn first_diagnostic(
    index: &GraphIndex,
    visits: &Visits,
    calls: &[CallDiagnostic],
) -> Option<NodeStructureDiagnostic> {
    // At one node, where it has to be comes before what it calls.
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
    let first = found.min_by_key(|diagnostic| (visits.of_diagnostic(*diagnostic), diagnostic.kind));
    first.filter(|diagnostic| visits.of_diagnostic(*diagnostic) != NEVER).or_else(|| {
        let node = visits.unvisited()?;
        Some(NodeStructureDiagnostic { node, kind: StructureDiagnosticKind::Cycle })
    })
}

/// Number of deprecated nodes that are visited before a diagnostic. A function can declare itself
/// deprecated, which is reported before a diagnostic of its body, but not before one of its
/// signature.
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
    let found = visits.of_diagnostic(diagnostic);
    deprecated.partition_point(|node| {
        let visit = visits.of(node.number);
        visit < found || (at_node && visit == found)
    })
}

/// That one node has an output of another as an input.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) from: u32,
    pub(super) to: u32,
}

/// Visits nodes, the lowest number first among those whose inputs were visited, and says when each
/// was; [`NEVER`] for those that were not. `pending` has how many inputs each node waits for. Also
/// where TensorFlow crashes, as it takes one from a node that waits for nothing any more.
///
/// One word a node says how many inputs it still waits for, and once it is visited, when.
pub(super) fn visit(
    edges: impl Iterator<Item = Edge> + Clone,
    mut pending: Vec<u32>,
    loop_role: impl Fn(u32) -> LoopRole,
) -> Visits {
    // By node, the nodes that have it as an input, as often as they have it.
    let consumers = Lists::of(edges.map(|edge| (edge.from, edge.to)), pending.len());
    let mut ready = Ready::below(pending.len());
    let mut visited = Visited::none(pending.len());
    for (number, _) in (0_u32..).zip(&pending).filter(|(_, pending)| **pending == 0) {
        ready.insert(number);
        visited.insert(number);
    }
    let mut crash = None;
    let mut visits = 0;
    while let Some(number) = ready.pop() {
        if let Some(visit) = pending.get_mut(number as usize) {
            *visit = visits;
        }
        visits += 1;
        let goes_back = loop_role(number) == LoopRole::NextIteration;
        for to in &consumers[number] {
            // No node waits for the edge that closes a loop; not even where it is a control edge,
            // for which the head of the loop then waits for ever.
            if goes_back && loop_role(*to) == LoopRole::Merge {
                continue;
            }
            if visited.contains(*to) {
                crash.get_or_insert(Crash { at: number, head: *to });
            } else if let Some(pending) = pending.get_mut(*to as usize) {
                *pending = pending.saturating_sub(1);
                if *pending == 0 {
                    ready.insert(*to);
                    visited.insert(*to);
                }
            }
        }
    }
    for (number, visit) in (0_u32..).zip(&mut pending) {
        if !visited.contains(number) {
            *visit = NEVER;
        }
    }
    Visits::Determined { visits: pending, crash }
}

/// The nodes that wait for nothing any more, as bits.
struct Visited(Vec<u64>);

impl Visited {
    fn none(nodes: usize) -> Self {
        Self(vec![0; nodes.div_ceil(64)])
    }

    fn insert(&mut self, node: u32) {
        if let Some(word) = self.0.get_mut(node as usize / 64) {
            *word |= 1 << (node % 64);
        }
    }

    fn contains(&self, node: u32) -> bool {
        self.0.get(node as usize / 64).is_some_and(|word| word >> (node % 64) & 1 == 1)
    }
}
