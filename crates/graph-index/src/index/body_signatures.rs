//! The node signatures in functions: operation and attributes, each stored once.
//!
//! Most nodes of a function are like another one, in it or in another function, so a node signature
//! is judged once for all of them.
//!
//! Detects equal nodes. Does not depend on the operations.

use std::{
    hash::{BuildHasher, Hash, Hasher},
    rc::Rc,
};

use super::{calls::DISABLED, names::NameMap};
use crate::attributes::{AttributeValue, Attributes};

/// Nodes with the same operation and the same relevant attributes.
#[derive(Clone, Debug)]
pub struct BodySignature {
    /// The operation; not UTF-8 only where no operation can be meant.
    pub operation: String,
    pub attributes: Attributes,
}

/// The node signatures so far, of all functions that were read.
#[derive(Debug, Default)]
pub(super) struct BodySignatures {
    hashers: [foldhash::quality::RandomState; 2],
    numbers: NameMap<u32>,
    node_signatures: Vec<KnownSignature>,
    /// The number of the function that is being read.
    function: u32,
    /// Its node signatures in the order of their first nodes, by their global numbers.
    own: Vec<u32>,
}

/// A node signature, and the last function that had it with its number there.
#[derive(Debug)]
struct KnownSignature {
    signature: Rc<BodySignature>,
    function: u32,
    number: u32,
}

impl BodySignatures {
    /// Starts another function.
    pub(super) fn begin_function(&mut self) {
        self.own.clear();
        self.function = self.function.wrapping_add(1);
        if self.function == 0 {
            // A repeated number is another function.
            self.node_signatures.iter_mut().for_each(|signature| signature.function = 0);
            self.function = 1;
        }
    }

    /// Returns the global number of a node's signature.
    pub(super) fn number(&mut self, operation: &[u8], attributes: &Attributes) -> u32 {
        let hash = self.hashers.each_ref().map(|hasher| {
            let mut state = hasher.build_hasher();
            operation.hash(&mut state);
            attributes.hash_judged(&mut state);
            hash_unbound(attributes, &mut state);
            state.finish()
        });
        let next = u32::try_from(self.node_signatures.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(hash).or_insert(next);
        if number == next {
            let operation = String::from_utf8_lossy(operation).into_owned();
            let signature = Rc::new(BodySignature { operation, attributes: attributes.clone() });
            self.node_signatures.push(KnownSignature { signature, function: 0, number: 0 });
        }
        number
    }

    /// Returns the number of a node signature within the current function.
    #[inline]
    pub(super) fn in_function(&mut self, number: u32) -> u32 {
        let Some(known) = self.node_signatures.get_mut(number as usize) else { return u32::MAX };
        if known.function != self.function {
            known.function = self.function;
            known.number = u32::try_from(self.own.len()).unwrap_or(u32::MAX);
            self.own.push(number);
        }
        known.number
    }

    /// Returns the node signatures of the function that was read, by their numbers within it, with
    /// their global numbers.
    pub(super) fn of_function(&self) -> (Vec<Rc<BodySignature>>, Vec<u32>) {
        let signature =
            |number: &u32| Some(Rc::clone(&self.node_signatures.get(*number as usize)?.signature));
        (self.own.iter().filter_map(signature).collect(), self.own.clone())
    }

    /// Returns the number of node signatures.
    pub(super) fn len(&self) -> usize {
        self.node_signatures.len()
    }

    /// Returns true if the nodes of a signature of the current function are constants.
    pub(super) fn is_constant(&self, number: u32) -> bool {
        let number = self.own.get(number as usize).copied().unwrap_or(u32::MAX);
        let known = self.node_signatures.get(number as usize);
        known.is_some_and(|known| known.signature.operation == "Const")
    }
}

/// Hashes the attribute values that neither types nor definitions cover and that diagnostics depend
/// on: placeholders, unset values and functions of attributes whose names begin with `_`, and
/// tensors of incomplete shape. Nodes of one signature then agree in everything that is checked
/// once per node signature.
fn hash_unbound(attributes: &Attributes, state: &mut impl Hasher) {
    for (name, value) in attributes.iter() {
        match value {
            AttributeValue::Tensor(tensor) if !tensor.shape.is_full_shape() => {
                tensor.shape.hash(state);
            }
            _ if !name.starts_with(b"_") => {}
            AttributeValue::None => name.hash(state),
            AttributeValue::Placeholder(of) => (name, of).hash(state),
            AttributeValue::Bool(flag) if name == DISABLED => (name, flag).hash(state),
            // Python waits for the functions in all attributes, independent of the attributes'
            // names.
            AttributeValue::Function(of) => (name, of).hash(state),
            AttributeValue::List(list) => list.functions().for_each(|of| (name, of).hash(state)),
            _ => {}
        }
    }
    attributes.nested().for_each(|nested| nested.hash(state));
}
