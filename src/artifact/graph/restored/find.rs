//! Finds nodes by name or operation, and functions by name, in one walk over a file.
//!
//! Knows where nodes and functions are. It must never know why somebody looks for them.

use std::collections::{HashMap, HashSet};

use crate::{
    artifact::{
        graph::{
            GraphError,
            node_bytes::short_field,
            source::{Extent, Source},
            whole_text::WholeText,
        },
        schema::{
            FUNCTION_DEF, FUNCTION_DEF_LIBRARY, Field, GRAPH_DEF, META_GRAPH_DEF, MessageId,
            NODE_DEF, OP_DEF, SAVED_MODEL,
            fields::{
                function_def, function_def_library, graph_def, meta_graph_def, node_def, op_def,
                saved_model,
            },
        },
    },
    wire::scan::{Piece, Step, Visitor},
};

/// A set of names.
pub(super) type Names = HashSet<Vec<u8>, foldhash::fast::RandomState>;

/// What is looked for in a meta graph.
#[derive(Debug, Default)]
pub(super) struct Wanted<'w> {
    pub(super) meta_graph: usize,
    pub(super) release: i32,
    /// Nodes outside of functions by their names.
    pub(super) nodes: Option<&'w Names>,
    /// Nodes outside of functions by their operations.
    pub(super) operations: &'w [&'w [u8]],
    /// Functions of the library by their names.
    pub(super) functions: Option<&'w Names>,
}

/// Where what was looked for is: nodes in the order of the file, and the first function of a name.
#[derive(Debug, Default)]
pub(super) struct Places {
    pub(super) nodes: Vec<Extent>,
    pub(super) functions: HashMap<Vec<u8>, Extent>,
}

/// Walks over a file once.
pub(super) fn find(source: Source<'_>, wanted: &Wanted<'_>) -> Result<Places, GraphError> {
    let mut finder = Finder {
        root: source.message(),
        wanted,
        meta_graphs: 0,
        begins: 0,
        start: 0,
        function_start: 0,
        name: Vec::new(),
        operation: Vec::new(),
        function: Vec::new(),
        text: WholeText::default(),
        places: Places::default(),
    };
    source.walk(&mut finder)?;
    Ok(finder.places)
}

/// The name and the operation of a node, if all of its fields are short ones. That the bytes are
/// those of a node, an earlier walk has seen.
fn name_and_operation(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    const LENGTH_DELIMITED: u8 = 2;
    const NAME: u8 = (node_def::NAME as u8) << 3 | LENGTH_DELIMITED;
    const OPERATION: u8 = (node_def::OP as u8) << 3 | LENGTH_DELIMITED;

    let (mut rest, mut name, mut operation) = (bytes, &b""[..], &b""[..]);
    while !rest.is_empty() {
        let (tag, content, after) = short_field(rest)?;
        match tag {
            NAME => name = content,
            OPERATION => operation = content,
            _ if tag & 7 != LENGTH_DELIMITED || tag >= 0x80 => return None,
            _ => {}
        }
        rest = after;
    }
    Some((name, operation))
}

/// A walk over one meta graph.
struct Finder<'w> {
    root: MessageId,
    wanted: &'w Wanted<'w>,
    meta_graphs: usize,
    begins: u64,
    start: u64,
    function_start: u64,
    name: Vec<u8>,
    operation: Vec<u8>,
    function: Vec<u8>,
    text: WholeText,
    places: Places,
}

impl Finder<'_> {
    fn is_wanted(&self, name: &[u8], operation: &[u8]) -> bool {
        self.wanted.nodes.is_some_and(|names| names.contains(name))
            || self.wanted.operations.contains(&operation)
    }

    fn wants_nodes(&self) -> bool {
        self.wanted.nodes.is_some() || !self.wanted.operations.is_empty()
    }
}

impl Visitor for Finder<'_> {
    fn begins(&mut self, at: u64) {
        self.begins = at;
    }

    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        let is_entered = match (message, field.number) {
            (SAVED_MODEL, saved_model::META_GRAPHS) => {
                self.meta_graphs += 1;
                self.root != SAVED_MODEL || self.meta_graphs == self.wanted.meta_graph + 1
            }
            (META_GRAPH_DEF, meta_graph_def::GRAPH_DEF) => true,
            (GRAPH_DEF, graph_def::NODE) => {
                self.start = self.begins;
                self.name.clear();
                self.operation.clear();
                self.wants_nodes()
            }
            (GRAPH_DEF, graph_def::LIBRARY) => self.wanted.functions.is_some(),
            (FUNCTION_DEF_LIBRARY, function_def_library::FUNCTION) => {
                self.function_start = self.begins;
                self.function.clear();
                true
            }
            (FUNCTION_DEF, function_def::SIGNATURE) => true,
            _ => false,
        };
        if is_entered { Step::Into } else { Step::Over }
    }

    fn leave(&mut self, message: MessageId, field: &'static Field, at: u64) {
        match (message, field.number) {
            (GRAPH_DEF, graph_def::NODE) if self.is_wanted(&self.name, &self.operation) => {
                self.places.nodes.push(Extent { start: self.start, end: at });
            }
            (FUNCTION_DEF_LIBRARY, function_def_library::FUNCTION)
                if self.wanted.functions.is_some_and(|names| names.contains(&self.function)) =>
            {
                let place = Extent { start: self.function_start, end: at };
                let name = std::mem::take(&mut self.function);
                self.places.functions.entry(name).or_insert(place);
            }
            _ => {}
        }
    }

    fn string(&mut self, message: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        let kept = match (message, field.number) {
            (NODE_DEF, node_def::NAME) => &mut self.name,
            (NODE_DEF, node_def::OP) => &mut self.operation,
            (OP_DEF, op_def::NAME) => &mut self.function,
            _ => return,
        };
        if let Some(text) = self.text.take(piece, is) {
            kept.clear();
            kept.extend_from_slice(text);
        }
    }

    fn release(&self) -> i32 {
        self.wanted.release
    }

    fn wants_whole(&self, message: MessageId, field: &'static Field) -> bool {
        (message, field.number) == (GRAPH_DEF, graph_def::NODE)
    }

    fn take(
        &mut self,
        message: MessageId,
        field: &'static Field,
        bytes: &[u8],
        end: u64,
        _depth: usize,
    ) -> bool {
        if (message, field.number) != (GRAPH_DEF, graph_def::NODE) {
            return false;
        }
        let Some((name, operation)) = name_and_operation(bytes) else { return false };
        if self.is_wanted(name, operation) {
            let start = end.saturating_sub(bytes.len() as u64);
            self.places.nodes.push(Extent { start, end });
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::graph::tests::field;

    #[test]
    fn find_reads_the_name_and_operation_of_a_node() {
        let node = [field(1, b"a"), field(2, b"NoOp"), field(1, b"b")].concat();
        assert_eq!(name_and_operation(&node), Some((&b"b"[..], &b"NoOp"[..])));
        assert_eq!(name_and_operation(&[field(1, b"a"), vec![0x08, 1]].concat()), None);
    }
}
