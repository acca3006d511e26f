//! Finds nodes and functions of one meta graph in one walk over a file.
//!
//! Does not depend on the purpose of a search.

use super::{
    GraphError,
    raw_nodes::short_field,
    source::{Extent, MetaGraphSelector, Source},
    whole_text::WholeText,
};
use crate::{
    scan::{Piece, Step, Visitor},
    schema::{
        FUNCTION_DEF, FUNCTION_DEF_LIBRARY, Field, GRAPH_DEF, META_GRAPH_DEF, MessageId, NODE_DEF,
        OP_DEF, SAVED_MODEL,
        fields::{
            function_def, function_def_library, graph_def, meta_graph_def, node_def, op_def,
            saved_model,
        },
    },
};

/// Receives the nodes and functions of a meta graph in the order of the file.
pub trait Search {
    /// Returns true if nodes are searched for.
    fn wants_nodes(&self) -> bool;

    /// Handles a node outside functions.
    fn node(&mut self, name: &[u8], operation: &[u8], place: Extent);

    /// Returns true if functions are searched for.
    fn wants_functions(&self) -> bool {
        false
    }

    /// Handles a function of the library.
    fn function(&mut self, _name: &[u8], _place: Extent) {}
}

/// Walks over the meta graph with this number once.
pub fn walk(
    source: Source<'_>,
    meta_graph: usize,
    release: i32,
    search: &mut impl Search,
) -> Result<(), GraphError> {
    let mut visitor = SearchVisitor {
        search,
        release,
        meta_graphs: MetaGraphSelector::of(source, meta_graph),
        begins: 0,
        start: 0,
        function_start: 0,
        name: Vec::new(),
        operation: Vec::new(),
        function: Vec::new(),
        text: WholeText::default(),
    };
    source.walk(&mut visitor)
}

/// Returns the name and the operation of a node, if all of its fields are short ones; the last
/// value of each field counts. An earlier walk has checked that the bytes are those of a node.
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
struct SearchVisitor<'s, S> {
    search: &'s mut S,
    release: i32,
    meta_graphs: MetaGraphSelector,
    begins: u64,
    start: u64,
    function_start: u64,
    name: Vec<u8>,
    operation: Vec<u8>,
    function: Vec<u8>,
    text: WholeText,
}

impl<S: Search> Visitor for SearchVisitor<'_, S> {
    fn begins(&mut self, at: u64) {
        self.begins = at;
    }

    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        let is_entered = match (message, field.number) {
            (SAVED_MODEL, saved_model::META_GRAPHS) => self.meta_graphs.enter(),
            (META_GRAPH_DEF, meta_graph_def::GRAPH_DEF) => true,
            (GRAPH_DEF, graph_def::NODE) => {
                self.start = self.begins;
                self.name.clear();
                self.operation.clear();
                self.search.wants_nodes()
            }
            (GRAPH_DEF, graph_def::LIBRARY) => self.search.wants_functions(),
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
            (GRAPH_DEF, graph_def::NODE) => {
                let place = Extent { start: self.start, end: at };
                self.search.node(&self.name, &self.operation, place);
            }
            (FUNCTION_DEF_LIBRARY, function_def_library::FUNCTION) => {
                let place = Extent { start: self.function_start, end: at };
                self.search.function(&self.function, place);
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
        self.release
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
        let start = end.saturating_sub(bytes.len() as u64);
        self.search.node(name, operation, Extent { start, end });
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serdes_testkit::fields::field;

    #[test]
    fn the_name_of_a_node_is_its_last_one() {
        let node = [field(1, b"a"), field(2, b"NoOp"), field(1, b"b")].concat();
        assert_eq!(name_and_operation(&node), Some((&b"b"[..], &b"NoOp"[..])));
        assert_eq!(name_and_operation(&field(2, b"NoOp")), Some((&b""[..], &b"NoOp"[..])));
    }

    #[test]
    fn a_node_with_a_long_field_is_read_field_by_field() {
        assert_eq!(name_and_operation(&field(1, &[b'n'; 1 << 15])), None);
        assert_eq!(name_and_operation(&[field(1, b"a"), vec![0x08, 1]].concat()), None);
    }
}
