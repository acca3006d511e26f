//! Compares the functions of a library that have the same name.
//!
//! TensorFlow accepts a function that it already has if both are equal, independent of the order of
//! attributes and nodes, and refuses a different one of the same name. Functions are read
//! completely and summarized only if a name may be repeated.
//!
//! Depends on the parts of a function that the importer compares. The contents of tensors and of
//! packed floats longer than a window are ignored: functions that differ only in these count as
//! equal.

use std::{
    collections::{HashMap, hash_map::Entry},
    hash::{BuildHasher, Hasher},
};

use super::graph_index::DuplicateFunction;
use crate::{
    function_names::LONGEST_NAME,
    rules::shown,
    scan::{Piece, Step},
    schema::{
        ATTR_VALUE, ATTR_VALUE_LIST_VALUE, FUNCTION_DEF, FUNCTION_DEF_LIBRARY, Field, GRADIENT_DEF,
        Label, MessageId, NODE_DEF, NODE_DEF_ATTR_ENTRY, OP_DEF,
        fields::{
            attr_value, attr_value_list_value, function_def, function_def_library, gradient_def,
            node_def, node_def_attr_entry, op_def,
        },
    },
};

/// A checksum of a message: a sum of hashes, so that the order of fields does not count.
#[derive(Debug, Default)]
struct Sum {
    total: u64,
    /// The number of values of each repeated field whose order matters.
    counts: Vec<(u32, u64)>,
    /// The summand of each singular field: the last of several values counts.
    singular: Vec<(u32, u64)>,
    /// True if the importer does not compare the message.
    is_ignored: bool,
}

impl Sum {
    fn number(&mut self, field: u32) -> u64 {
        if let Some((_, count)) = self.counts.iter_mut().find(|(number, _)| *number == field) {
            *count += 1;
            return *count;
        }
        self.counts.push((field, 1));
        1
    }
}

/// Receives the visitor events of a library, and finds repeated functions and gradients.
#[derive(Debug, Default)]
pub(super) struct FunctionEquality {
    hasher: foldhash::quality::RandomState,
    /// The function that is being read, outermost message first.
    open: Vec<Sum>,
    name: Vec<u8>,
    /// The checksum of each function, by the hash of its name.
    functions: HashMap<u64, u64>,
    gradient: Gradient,
    gradients: HashMap<u64, u64>,
    in_signature: bool,
    /// The sums of the nodes of the current function, by the hashes of their names.
    nodes: HashMap<u64, u64>,
    node_name: u64,
    /// The total of the sums of nodes that a later node of the same name replaces, if there are
    /// any.
    replaced: Option<u64>,
    /// The first repeated function that differs.
    pub(super) duplicate: Option<DuplicateFunction>,
    /// The number of functions before the current one.
    number: u32,
    /// The first function that has two gradients.
    pub(super) second_gradient: Option<String>,
}

/// A function and the one that is its gradient, by the hashes of their names.
#[derive(Clone, Copy, Debug, Default)]
struct Gradient {
    of: u64,
    is: u64,
}

impl FunctionEquality {
    fn hash(&self, bytes: &[u8]) -> u64 {
        let mut hasher = self.hasher.build_hasher();
        hasher.write(bytes);
        hasher.finish()
    }

    /// Sets a singular field of the current message.
    fn set(&mut self, message: MessageId, field: &Field, value: Option<u64>) {
        let before = self.open.last().map_or(0, |sum| sum.total);
        if let Some(value) = value {
            self.add(message, field, false, value);
        }
        let Some(sum) = self.open.last_mut() else { return };
        let added = sum.total.wrapping_sub(before);
        match sum.singular.iter_mut().find(|(number, _)| *number == field.number) {
            Some((_, old)) => {
                let old = std::mem::replace(old, added);
                sum.total = sum.total.wrapping_sub(old);
            }
            None => sum.singular.push((field.number, added)),
        }
    }

    /// Adds a field to the current message.
    fn add(&mut self, message: MessageId, field: &Field, ordered: bool, value: u64) {
        let Some(sum) = self.open.last_mut() else { return };
        let position = if ordered { sum.number(field.number) } else { 0 };
        let mut hasher = self.hasher.build_hasher();
        hasher.write(message.describe().name.as_bytes());
        hasher.write_u32(field.number);
        hasher.write_u64(position);
        hasher.write_u64(value);
        sum.total = sum.total.wrapping_add(hasher.finish());
    }

    fn end_of_function(&mut self, sum: u64) {
        let name = self.hash(&self.name);
        // Nodes are compared by name. In a function that exists already the last node of each name
        // counts; a repeated one with two nodes of a name is not even equal to itself.
        let same = match self.functions.entry(name) {
            Entry::Occupied(known) => self.replaced.is_none() && *known.get() == sum,
            Entry::Vacant(place) => {
                place.insert(sum.wrapping_sub(self.replaced.unwrap_or_default()));
                true
            }
        };
        if !same {
            let (number, name) = (self.number, &self.name);
            self.duplicate.get_or_insert_with(|| DuplicateFunction { number, name: shown(name) });
        }
        self.number = self.number.saturating_add(1);
    }

    fn end_of_gradient(&mut self) {
        let nothing = self.hash(b"");
        let known = self.gradients.entry(self.gradient.of).or_insert(nothing);
        if *known == nothing {
            *known = self.gradient.is;
        } else if *known != self.gradient.is {
            self.second_gradient.get_or_insert_with(|| shown(&self.name));
        }
    }

    pub(super) fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        match (message, field.number) {
            (FUNCTION_DEF_LIBRARY, function_def_library::FUNCTION) => {
                self.name.clear();
                self.nodes.clear();
                self.replaced = None;
            }
            (FUNCTION_DEF_LIBRARY, function_def_library::GRADIENT) => {
                self.name.clear();
                let nothing = self.hash(b"");
                self.gradient = Gradient { of: nothing, is: nothing };
                return Step::Into;
            }
            (FUNCTION_DEF_LIBRARY, _) => return Step::Over,
            // Attributes of arguments and the origins of nodes are not compared.
            (FUNCTION_DEF, function_def::ARG_ATTR | function_def::RESOURCE_ARG_UNIQUE_ID)
            | (NODE_DEF, node_def::EXPERIMENTAL_DEBUG_INFO | node_def::EXPERIMENTAL_TYPE) => {
                return Step::Over;
            }
            // A tensor has several encodings.
            (ATTR_VALUE, attr_value::TENSOR)
            | (ATTR_VALUE_LIST_VALUE, attr_value_list_value::TENSOR) => {
                self.add(message, field, true, 0);
                return Step::Over;
            }
            (FUNCTION_DEF, function_def::SIGNATURE) => self.in_signature = true,
            (FUNCTION_DEF, function_def::NODE_DEF) => self.node_name = self.hash(b""),
            _ => {}
        }
        self.open.push(Sum::default());
        Step::Into
    }

    pub(super) fn leave(&mut self, message: MessageId, field: &'static Field) {
        match (message, field.number) {
            (FUNCTION_DEF_LIBRARY, function_def_library::GRADIENT) => {
                return self.end_of_gradient();
            }
            (FUNCTION_DEF, function_def::SIGNATURE) => self.in_signature = false,
            _ => {}
        }
        let Some(sum) = self.open.pop() else { return };
        if sum.is_ignored {
            return;
        }
        match (message, field.number) {
            (FUNCTION_DEF_LIBRARY, _) => self.end_of_function(sum.total),
            // An empty signature equals a missing one.
            (FUNCTION_DEF, function_def::SIGNATURE) if sum.total == 0 => {}
            (FUNCTION_DEF, function_def::NODE_DEF) => {
                let total = |open: &[Sum]| open.last().map_or(0, |sum| sum.total);
                let before = total(&self.open);
                self.add(message, field, false, sum.total);
                let node = total(&self.open).wrapping_sub(before);
                if let Some(other) = self.nodes.insert(self.node_name, node) {
                    self.replaced = Some(self.replaced.unwrap_or_default().wrapping_add(other));
                }
            }
            (FUNCTION_DEF, function_def::RET | function_def::ATTR | function_def::CONTROL_RET)
            | (OP_DEF, op_def::ATTR)
            | (NODE_DEF, node_def::ATTR) => {
                self.add(message, field, false, sum.total);
            }
            _ => self.add(message, field, field.label == Label::Repeated, sum.total),
        }
    }

    pub(super) fn integer(&mut self, message: MessageId, field: &'static Field, value: u64) {
        if field.label == Label::Repeated {
            return self.add(message, field, true, value);
        }
        // Without presence, the default equals an absent value.
        let present = value != 0 || field.label != Label::Plain;
        self.set(message, field, present.then_some(value));
    }

    pub(super) fn string(
        &mut self,
        message: MessageId,
        field: &'static Field,
        piece: &[u8],
        is: Piece,
    ) {
        match (message, field.number) {
            (GRADIENT_DEF, gradient_def::FUNCTION_NAME) => {
                self.gradient.of = self.hash(piece);
                self.name.clear();
                self.name.extend_from_slice(piece);
                return;
            }
            (GRADIENT_DEF, gradient_def::GRADIENT_FUNC) => {
                self.gradient.is = self.hash(piece);
                return;
            }
            (OP_DEF, op_def::NAME) if self.in_signature => {
                if is.first {
                    self.name.clear();
                }
                let room = LONGEST_NAME.saturating_sub(self.name.len());
                self.name.extend_from_slice(piece.get(..piece.len().min(room)).unwrap_or_default());
            }
            (NODE_DEF, node_def::NAME) => self.node_name = self.hash(piece),
            // Debug information of a node is not compared.
            (NODE_DEF_ATTR_ENTRY, node_def_attr_entry::KEY)
                if is.first && piece.first() == Some(&b'_') =>
            {
                if let Some(sum) = self.open.last_mut() {
                    sum.is_ignored = true;
                }
            }
            _ => {}
        }
        let value = self.hash(piece);
        if field.label == Label::Repeated {
            let control = (message, field.number) == (NODE_DEF, node_def::INPUT)
                && piece.first() == Some(&b'^');
            return self.add(message, field, !control, value);
        }
        let present = !piece.is_empty() || field.label != Label::Plain;
        self.set(message, field, present.then_some(value));
    }
}
