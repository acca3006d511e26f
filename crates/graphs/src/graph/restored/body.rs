//! Reads the body of a function: its arguments, and its nodes of some operations.
//!
//! Depends on the encoding of functions, but not on their operations.

use std::{
    collections::{HashMap, HashSet},
    hash::BuildHasher,
};

use super::input::node_name;
use super::node::{Node, NodeReader};
use crate::{
    graph::{
        GraphError,
        source::{Extent, Source},
    },
    scan::{Piece, Step, Visitor},
    schema::{
        FUNCTION_DEF, Field, MessageId, OP_DEF, OP_DEF_ARG_DEF,
        fields::{function_def, op_def, op_def_arg_def},
    },
};

/// The relevant parts of a function.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub(super) arguments: Vec<Vec<u8>>,
    pub(super) nodes: Vec<Node>,
    /// The hashes of the names that nodes have as inputs.
    used: HashSet<u64, foldhash::fast::RandomState>,
    hasher: foldhash::fast::RandomState,
    /// True if the function exceeds the limit on what is read.
    pub(super) is_oversized: bool,
}

impl Body {
    /// Returns true if another node uses an output of this one; a node without consumers is not
    /// run.
    pub(super) fn uses(&self, node: &Node) -> bool {
        self.used.contains(&self.hasher.hash_one(node.name.as_slice()))
    }

    /// Returns the arguments by their names, each with its position.
    pub(super) fn argument_numbers(&self) -> HashMap<&[u8], usize> {
        let numbered = self.arguments.iter().enumerate();
        numbered.map(|(number, name)| (name.as_slice(), number)).collect()
    }
}

/// Reads a function; `keeps` returns true for relevant nodes, `most` limits the bytes that are
/// kept.
pub(super) fn read(
    source: Source<'_>,
    place: Extent,
    release: i32,
    keeps: fn(&Node) -> bool,
    most: usize,
) -> Result<Body, GraphError> {
    let node = NodeReader::new(release);
    let mut reader =
        BodyReader { node, keeps, most, kept: 0, argument: Vec::new(), body: Body::default() };
    source.walk_part(place, FUNCTION_DEF, &mut reader)?;
    reader.body.is_oversized |= reader.kept > most || reader.node.is_oversized();
    Ok(reader.body)
}

/// A walk over one function.
struct BodyReader {
    node: NodeReader,
    keeps: fn(&Node) -> bool,
    most: usize,
    kept: usize,
    argument: Vec<u8>,
    body: Body,
}

impl Visitor for BodyReader {
    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        match (message, field.number) {
            (FUNCTION_DEF, function_def::NODE_DEF) => {
                self.node.begin();
                Step::Into
            }
            (FUNCTION_DEF, function_def::SIGNATURE) => Step::Into,
            (OP_DEF, op_def::INPUT_ARG) => {
                self.argument.clear();
                Step::Into
            }
            (FUNCTION_DEF | OP_DEF | OP_DEF_ARG_DEF, _) => Step::Over,
            _ => self.node.enter(message, field),
        }
    }

    fn leave(&mut self, message: MessageId, field: &'static Field, _at: u64) {
        match (message, field.number) {
            (FUNCTION_DEF, function_def::NODE_DEF) => {
                let node = std::mem::take(&mut self.node.node);
                for input in node.inputs.iter().map(|input| node_name(input)) {
                    if self.body.used.insert(self.body.hasher.hash_one(input)) {
                        self.kept = self.kept.saturating_add(2 * size_of::<u64>());
                    }
                }
                if (self.keeps)(&node) && self.kept <= self.most {
                    self.kept = self.kept.saturating_add(node.kept());
                    self.body.nodes.push(node);
                }
            }
            (OP_DEF, op_def::INPUT_ARG) => {
                self.kept = self.kept.saturating_add(self.argument.len() + size_of::<Vec<u8>>());
                if self.kept <= self.most {
                    self.body.arguments.push(std::mem::take(&mut self.argument));
                }
            }
            _ => {}
        }
    }

    fn integer(&mut self, message: MessageId, field: &'static Field, value: u64) {
        self.node.integer(message, field, value);
    }

    fn string(&mut self, message: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        match (message, field.number) {
            (OP_DEF_ARG_DEF, op_def_arg_def::NAME) => {
                if is.first {
                    self.argument.clear();
                }
                self.argument.extend_from_slice(piece);
            }
            (OP_DEF | OP_DEF_ARG_DEF, _) => {}
            _ => self.node.string(message, field, piece, is),
        }
    }

    fn wants_packed(&self, message: MessageId) -> bool {
        self.node.wants_packed(message)
    }

    fn wants_bytes(&self, message: MessageId, field: &'static Field) -> bool {
        self.node.wants_bytes(message, field)
    }

    fn long_bytes(&mut self, message: MessageId, field: &'static Field, length: u64) {
        self.node.long_bytes(message, field, length);
    }

    fn release(&self) -> i32 {
        self.node.release()
    }
}
