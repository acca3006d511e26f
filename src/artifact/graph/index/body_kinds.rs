//! The kinds of nodes in one function: operation and attributes, each once.
//!
//! Most nodes of a function are like another one, so that each kind is judged once for all of them.
//!
//! Knows which nodes are alike. It must never know what an operation is.

use std::hash::{BuildHasher, Hash, Hasher};

use super::names::NameMap;
use crate::artifact::graph::attributes::{AttributeValue, Attributes};

/// Nodes with the same operation and the same attributes, as far as they decide anything.
#[derive(Clone, Debug)]
pub(in super::super) struct BodyKind {
    /// The operation; not UTF-8 only where no operation can be meant.
    pub(in super::super) operation: String,
    pub(in super::super) attributes: Attributes,
}

/// The kinds so far.
#[derive(Debug, Default)]
pub(super) struct BodyKinds {
    hashers: [foldhash::quality::RandomState; 2],
    numbers: NameMap<u32>,
    kinds: Vec<BodyKind>,
}

impl BodyKinds {
    /// The number of the kind that a node is of.
    pub(super) fn number(&mut self, operation: &[u8], attributes: &Attributes) -> u32 {
        let hash = self.hashers.each_ref().map(|hasher| {
            let mut state = hasher.build_hasher();
            operation.hash(&mut state);
            attributes.hash_judged(&mut state);
            hash_unbound(attributes, &mut state);
            state.finish()
        });
        let next = u32::try_from(self.kinds.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(hash).or_insert(next);
        if number == next {
            let operation = String::from_utf8_lossy(operation).into_owned();
            self.kinds.push(BodyKind { operation, attributes: attributes.clone() });
        }
        number
    }

    pub(super) fn into_kinds(self) -> Vec<BodyKind> {
        self.kinds
    }
}

/// Gives to `state` which of the attributes that nobody else looks at a call has to fill in.
fn hash_unbound(attributes: &Attributes, state: &mut impl Hasher) {
    for (name, value) in attributes.iter().filter(|(name, _)| name.starts_with(b"_")) {
        match value {
            AttributeValue::None => name.hash(state),
            AttributeValue::Placeholder(of) => (name, of).hash(state),
            _ => {}
        }
    }
    attributes.nested().for_each(|nested| nested.hash(state));
}
