//! The order in which TensorFlow's importer visits nodes, each after those that it has as inputs.
//!
//! Knows what goes into what. It must never know what nodes are, nor whether they are valid.

use super::{count, lists::Lists, ready::Ready};
use crate::graph::rules::LoopRole;

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

/// A crash of the importer while it visits a node.
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

    /// Returns the crash of the importer, if it comes as far as visiting nodes.
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

/// An edge: one node has an output of another as an input.
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
