//! Rereads one name from its place in the file.
//!
//! Walks keep hashes and places of names instead of names. Only the name in a diagnostic is needed
//! in the end.

use super::{
    GraphError,
    diagnostic::Part,
    rules::{SHOWN_NAME, shown},
    source::{Extent, Source},
};
use crate::{
    scan::{Piece, Step, Visitor},
    schema::{
        FUNCTION_DEF, Field, MessageId, NODE_DEF, OP_DEF, OP_DEF_ARG_DEF,
        fields::{function_def, node_def, op_def, op_def_arg_def},
    },
};

/// Returns the name of the node at `place`, for messages.
pub(super) fn node(source: Source<'_>, place: Extent, release: i32) -> Result<String, GraphError> {
    let mut reader = NameReader::new(Part::Node(0), release);
    source.walk_part(place, NODE_DEF, &mut reader)?;
    Ok(shown(&reader.name))
}

/// Returns the names of the function at `place` and of a part of it, for messages.
pub(super) fn part_of_function(
    source: Source<'_>,
    place: Extent,
    part: Part,
    release: i32,
) -> Result<(String, String), GraphError> {
    let mut reader = NameReader::new(part, release);
    source.walk_part(place, FUNCTION_DEF, &mut reader)?;
    Ok((shown(&reader.function), shown(&reader.name)))
}

/// A walk over one node or one function.
struct NameReader {
    part: Part,
    release: i32,
    nodes: u32,
    arguments: u32,
    results: u32,
    function: Vec<u8>,
    name: Vec<u8>,
}

impl NameReader {
    fn new(part: Part, release: i32) -> Self {
        let (function, name) = (Vec::new(), Vec::new());
        Self { part, release, nodes: 0, arguments: 0, results: 0, function, name }
    }
}

/// Counts a part; returns true if it is the wanted one.
fn is_next(count: &mut u32, looked_for: Option<u32>) -> Step {
    let number = *count;
    *count = count.saturating_add(1);
    if looked_for == Some(number) { Step::Into } else { Step::Over }
}

impl Visitor for NameReader {
    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        let (mut node, mut argument, mut result) = (None, None, None);
        match self.part {
            Part::Function => {}
            Part::Node(number) => node = Some(number),
            Part::Argument(number) => argument = Some(number),
            Part::Result(number) => result = Some(number),
        }
        match (message, field.number) {
            (FUNCTION_DEF, function_def::SIGNATURE) => Step::Into,
            (FUNCTION_DEF, function_def::NODE_DEF) => is_next(&mut self.nodes, node),
            (OP_DEF, op_def::INPUT_ARG) => is_next(&mut self.arguments, argument),
            (OP_DEF, op_def::OUTPUT_ARG) => is_next(&mut self.results, result),
            _ => Step::Over,
        }
    }

    fn string(&mut self, message: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        let name = match (message, field.number) {
            (OP_DEF, op_def::NAME) => &mut self.function,
            (NODE_DEF, node_def::NAME) | (OP_DEF_ARG_DEF, op_def_arg_def::NAME) => &mut self.name,
            _ => return,
        };
        if is.first {
            name.clear();
        }
        let room = SHOWN_NAME.saturating_sub(name.len());
        name.extend_from_slice(piece.get(..room).unwrap_or(piece));
    }

    fn release(&self) -> i32 {
        self.release
    }
}
