//! Collects the kinds of edges: which node signature consumes which output of which other one.
//!
//! A graph of a million edges has a few hundred kinds of them. They are collected during the walk,
//! and checked once.

use std::collections::HashSet;

/// Number of bits for a node signature, and for the position of an input or output.
pub(super) const SIGNATURE_BITS: u32 = 10;
const POSITION_BITS: u32 = 16;

/// Limit on the kinds of edges that are kept; a graph with more takes the slow path.
const MAXIMUM_KINDS: usize = 1 << 16;

/// Number of kinds of edges in the cache: 8 KiB.
const RECENT: usize = 1024;

/// The number of a node signature among those of this walk, stored with the name of the node.
pub(super) type FastSignature = u16;

/// An edge from an output of one node signature to an input of another; 0 for an edge without data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct EdgeKind(u64);

/// The bit that marks an edge with data.
const DATA: u64 = 1 << 63;

impl EdgeKind {
    /// An edge without data.
    pub(super) const CONTROL: Self = Self(0);

    /// Creates an edge into a node of this signature from one of unknown signature; `None` if a
    /// number does not fit, which is very rare.
    #[inline]
    pub(super) fn into_node(to: FastSignature, input: u64, output: u32) -> Option<Self> {
        let is_small = input < 1 << POSITION_BITS && output < 1 << POSITION_BITS;
        let parts = u64::from(to)
            | input << SIGNATURE_BITS
            | u64::from(output) << (SIGNATURE_BITS + POSITION_BITS);
        is_small.then_some(Self(DATA | parts))
    }

    /// Sets the node signature of the source node.
    #[inline]
    pub(super) fn out_of(self, from: FastSignature) -> Self {
        if self.0 == 0 { self } else { Self(self.0 | u64::from(from) << FROM) }
    }

    fn part(self, from: u32, bits: u32) -> u64 {
        self.0 >> from & ((1 << bits) - 1)
    }

    /// Returns the node signature of the source node.
    pub(super) fn from(self) -> FastSignature {
        self.part(FROM, SIGNATURE_BITS) as FastSignature
    }

    /// Returns the number of the output.
    pub(super) fn output(self) -> u64 {
        self.part(SIGNATURE_BITS + POSITION_BITS, POSITION_BITS)
    }

    /// Returns the node signature of the target node.
    pub(super) fn to(self) -> FastSignature {
        self.part(0, SIGNATURE_BITS) as FastSignature
    }

    /// Returns the position of the input.
    pub(super) fn input(self) -> u64 {
        self.part(SIGNATURE_BITS, POSITION_BITS)
    }
}

const FROM: u32 = SIGNATURE_BITS + 2 * POSITION_BITS;

/// The kinds of edges so far.
#[derive(Debug)]
pub(super) struct EdgeKinds {
    recent: Box<[EdgeKind]>,
    all: HashSet<EdgeKind, foldhash::fast::RandomState>,
    is_full: bool,
}

impl Default for EdgeKinds {
    fn default() -> Self {
        let recent = vec![EdgeKind::CONTROL; RECENT].into();
        Self { recent, all: HashSet::default(), is_full: false }
    }
}

impl EdgeKinds {
    #[inline]
    pub(super) fn add(&mut self, edge: EdgeKind) {
        let place = (edge.0.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 54) as usize;
        if let Some(recent) = self.recent.get_mut(place)
            && *recent != edge
        {
            *recent = edge;
            self.keep(edge);
        }
    }

    #[cold]
    fn keep(&mut self, edge: EdgeKind) {
        if self.all.len() < MAXIMUM_KINDS {
            self.all.insert(edge);
        } else {
            self.is_full |= !self.all.contains(&edge);
        }
    }

    /// Returns every kind of edge; `None` if there were more than the limit.
    pub(super) fn all(&self) -> Option<impl Iterator<Item = EdgeKind> + '_> {
        let data = self.all.iter().copied().filter(|edge| *edge != EdgeKind::CONTROL);
        (!self.is_full).then_some(data)
    }
}

const _: () = assert!(RECENT == 1 << (64 - 54) && FROM + SIGNATURE_BITS < 63);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_of_edge_is_kept_once_with_all_of_its_parts() {
        let mut edges = EdgeKinds::default();
        let edge = EdgeKind::into_node(1023, 65535, 65534).unwrap().out_of(1022);
        for _ in 0..2 {
            edges.add(edge);
            edges.add(EdgeKind::CONTROL.out_of(7));
        }
        let all: Vec<EdgeKind> = edges.all().unwrap().collect();
        let parts = |edge: EdgeKind| (edge.from(), edge.output(), edge.to(), edge.input());
        assert_eq!(all.into_iter().map(parts).collect::<Vec<_>>(), [(1022, 65534, 1023, 65535)]);
        assert_eq!(EdgeKind::into_node(0, 65536, 0), None);
        assert_eq!(EdgeKind::into_node(0, 0, 65536), None);
    }

    #[test]
    fn more_kinds_than_are_kept_are_not_forgotten_in_silence() {
        let mut edges = EdgeKinds::default();
        for number in 0..=MAXIMUM_KINDS as u64 {
            edges.add(EdgeKind::into_node(number as u16 % 1024, number / 1024, 0).unwrap());
        }
        assert!(edges.all().is_none());
    }
}
