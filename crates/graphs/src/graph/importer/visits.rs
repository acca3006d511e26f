//! The order in which TensorFlow's importer visits nodes, each after its inputs.
//!
//! Depends on edges, but not on operations or validity.

use super::{count, lists::Lists, ready::Ready};
use crate::graph::rules::LoopRole;

/// The time of a node that is never visited.
pub(super) const NEVER: u32 = u32::MAX;

/// The visiting time of each node of a graph.
#[derive(Debug)]
pub(in super::super) enum Visits {
    /// All of this number of nodes are visited in the order of the file: every input names an
    /// earlier node.
    AsWritten(u32),
    /// The time by node; [`NEVER`] for nodes that are part of a cycle or follow one.
    Determined { visits: Vec<u32>, crash: Option<Crash> },
}

/// A crash of the importer while it visits a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Crash {
    /// The node that it visits.
    pub(super) at: u32,
    /// The head of a loop that had all inputs for which it waits, and gets another one.
    pub(super) head: u32,
}

impl Visits {
    /// Returns the visiting time of a node.
    pub(super) fn of(&self, node: u32) -> u32 {
        match self {
            Self::AsWritten(_) => node,
            Self::Determined { visits, .. } => visits.get(node as usize).copied().unwrap_or(NEVER),
        }
    }

    /// Returns the nodes that are visited at all, in the order of the visits.
    pub(super) fn in_order(&self) -> impl Iterator<Item = u32> {
        let (written, found) = match self {
            Self::AsWritten(nodes) => (*nodes, Vec::new()),
            Self::Determined { visits, .. } => (0, sorted(visits)),
        };
        (0..written).chain(found)
    }

    /// Returns the first node that is never visited.
    pub(super) fn unvisited(&self) -> Option<u32> {
        match self {
            Self::AsWritten(_) => None,
            Self::Determined { visits, .. } => {
                visits.iter().position(|visit| *visit == NEVER).map(count)
            }
        }
    }

    /// Returns the crash of the importer, if it gets as far as visiting nodes.
    pub(super) fn crash(&self) -> Option<Crash> {
        match self {
            Self::AsWritten(_) => None,
            Self::Determined { crash, .. } => *crash,
        }
    }
}

/// Returns the nodes by the times when they are visited.
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

/// An edge: an output of one node is an input of another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Edge {
    pub(super) from: u32,
    pub(super) to: u32,
}

/// Visits nodes, the lowest number first among those whose inputs were visited, and returns the
/// time of each; [`NEVER`] for those that were not visited. `pending` has the number of inputs for
/// which each node waits. Also returns the place where TensorFlow crashes, because it subtracts an
/// input from a node that waits for none.
///
/// One word per node: the number of inputs for which it waits, and after the visit, the time.
pub(super) fn visit(
    edges: impl Iterator<Item = Edge> + Clone,
    mut pending: Vec<u32>,
    loop_role: impl Fn(u32) -> LoopRole,
) -> Visits {
    // The consumers of each node, as often as they use it.
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
            // No node waits for the edge that closes a loop, even if it is a control edge, for
            // which the head of the loop then waits forever.
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

/// The nodes that no longer wait for inputs, as bits.
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
