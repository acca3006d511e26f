//! The names of nodes, as hashes that no file can foresee.

use std::{
    collections::HashMap,
    hash::{BuildHasher, Hasher},
};

/// A name that is not kept: so long a hash that no two names of one graph have the same.
pub(in super::super) type Name = [u64; 2];

/// Hashes names, otherwise in every run.
#[derive(Debug, Default)]
pub(super) struct NameHasher([foldhash::quality::RandomState; 2]);

impl NameHasher {
    pub(super) fn hash(&self, name: &[u8]) -> Name {
        self.0.each_ref().map(|hasher| {
            let mut hasher = hasher.build_hasher();
            hasher.write(name);
            hasher.finish()
        })
    }
}

/// Numbers the names that nodes have or refer to, and says which node has each.
#[derive(Debug, Default)]
pub(super) struct NodeNames {
    hasher: NameHasher,
    numbers: HashMap<Name, u32>,
    /// The node that has each name; [`NOBODY`] where none does, or none was there yet.
    nodes: Vec<u32>,
}

/// No node.
const NOBODY: u32 = u32::MAX;

impl NodeNames {
    /// What hashes names so that [`number`](Self::number) takes them.
    pub(super) fn hasher(&self) -> &NameHasher {
        &self.hasher
    }

    /// The number of a name.
    pub(super) fn number(&mut self, name: Name) -> u32 {
        let next = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(name).or_insert(next);
        if number == next {
            self.nodes.push(NOBODY);
        }
        number
    }

    /// Gives a name to a node; false if another node has it.
    pub(super) fn give(&mut self, name: &[u8], node: u32) -> bool {
        let number = self.number(self.hasher.hash(name));
        match self.nodes.get_mut(number as usize) {
            Some(owner) if *owner == NOBODY => {
                *owner = node;
                true
            }
            _ => false,
        }
    }

    /// The nodes by the numbers of their names.
    pub(super) fn into_nodes(self) -> Vec<u32> {
        self.nodes
    }

    /// The node that has the name of a number, in a list of [`into_nodes`](Self::into_nodes).
    pub(super) fn node(nodes: &[u32], number: u32) -> Option<u32> {
        nodes.get(number as usize).copied().filter(|node| *node != NOBODY)
    }
}
