//! Reads colocation constraints: the attribute `_class`.

use super::names::{Name, NameHasher};
use crate::{
    scan::Step,
    schema::{
        ATTR_VALUE, ATTR_VALUE_LIST_VALUE, Field, MessageId, NODE_DEF, NODE_DEF_ATTR_ENTRY,
        fields::{attr_value, attr_value_list_value, node_def, node_def_attr_entry},
    },
};

/// The attribute, and the prefix of a name in its list.
const KEY: &[u8] = b"_class";
const PREFIX: &[u8] = b"loc:@";

/// Receives the visitor events inside a node, and finds the nodes that it is colocated with.
#[derive(Debug, Default)]
pub(super) struct ColocationReader {
    /// True if the current attribute is `_class`.
    is_class: bool,
    /// The names in the attribute that is being read.
    attribute: Vec<Name>,
    /// The nodes that the current node is colocated with.
    node: Vec<Name>,
}

impl ColocationReader {
    pub(super) fn clear(&mut self) {
        self.node.clear();
    }

    /// Returns the names of the nodes with which the node must be colocated.
    pub(super) fn names(&self) -> &[Name] {
        &self.node
    }

    pub(super) fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        match (message, field.number) {
            (NODE_DEF, node_def::ATTR) => {
                self.is_class = false;
                self.attribute.clear();
                Step::Into
            }
            (NODE_DEF_ATTR_ENTRY, node_def_attr_entry::VALUE) | (ATTR_VALUE, attr_value::LIST) => {
                Step::Into
            }
            _ => {
                self.other_value(message);
                Step::Over
            }
        }
    }

    pub(super) fn leave(&mut self, message: MessageId, field: &'static Field) {
        // Of several attributes with one key the last one counts.
        if (message, field.number) == (NODE_DEF, node_def::ATTR) && self.is_class {
            std::mem::swap(&mut self.node, &mut self.attribute);
        }
    }

    pub(super) fn integer(&mut self, message: MessageId) {
        self.other_value(message);
    }

    pub(super) fn string(
        &mut self,
        message: MessageId,
        field: &'static Field,
        piece: &[u8],
        hasher: &NameHasher,
    ) {
        match (message, field.number) {
            (NODE_DEF_ATTR_ENTRY, node_def_attr_entry::KEY) => self.is_class = piece == KEY,
            (ATTR_VALUE_LIST_VALUE, attr_value_list_value::S) => {
                if let Some(name) = piece.strip_prefix(PREFIX) {
                    self.attribute.push(hasher.hash(name));
                }
            }
            _ => self.other_value(message),
        }
    }

    /// Handles another value, which replaces a list.
    fn other_value(&mut self, message: MessageId) {
        if message == ATTR_VALUE {
            self.attribute.clear();
        }
    }
}
