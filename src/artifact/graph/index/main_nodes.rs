//! What loaders look at in the nodes outside of functions, and the importer does not.
//!
//! One walk over the graph writes down the first node of each operation and the first one that has
//! each of the few things that only a loader minds.
//!
//! Knows how graphs are written. It must never know which loader minds what.

use std::collections::HashSet;

use crate::{
    artifact::{
        graph::{
            GraphError,
            attributes::{AttributeReader, AttributeValue, Attributes},
            function_names::FunctionNames,
            source::{Extent, Source},
            whole_text::WholeText,
        },
        ops::Element,
        schema::{
            Field, GRAPH_DEF, META_GRAPH_DEF, MessageId, NODE_DEF, SAVED_MODEL,
            fields::{graph_def, meta_graph_def, node_def, saved_model},
        },
    },
    wire::scan::{Piece, Step, Visitor},
};

/// Operations that are kept: more than any release has. Of a graph that has more of them the first
/// ones are looked at, and among those is one that nobody knows.
const MOST_OPERATIONS: usize = 1 << 14;

/// An operation and the first node that has it.
#[derive(Clone, Debug)]
pub(in super::super) struct FirstNode {
    /// The operation.
    pub(in super::super) operation: String,
    /// Where the node is.
    pub(in super::super) place: Extent,
}

/// A node that names something.
#[derive(Clone, Debug)]
pub(in super::super) struct NamingNode {
    pub(in super::super) place: Extent,
    /// What it names.
    pub(in super::super) name: String,
}

/// What loaders look at in the nodes of one graph.
#[derive(Debug, Default)]
pub(in super::super) struct MainNodes {
    /// The operations, in the order of their first nodes.
    pub(in super::super) operations: Vec<FirstNode>,
    /// The first node with an attribute that is a function which the library does not have.
    pub(in super::super) lost_function: Option<NamingNode>,
    /// The first PartitionedCall of such a function.
    pub(in super::super) lost_call: Option<NamingNode>,
    /// The first node with an attribute that is a placeholder.
    pub(in super::super) placeholder: Option<NamingNode>,
    /// The first Const whose value cannot be one: of a negative size.
    pub(in super::super) constant: Option<NamingNode>,
}

impl MainNodes {
    /// Reads those of the meta graph with this number.
    pub(in super::super) fn read(
        source: Source<'_>,
        meta_graph: usize,
        functions: &FunctionNames,
        release: i32,
    ) -> Result<Self, GraphError> {
        let mut visitor = MainVisitor {
            root: source.message(),
            wanted: meta_graph,
            meta_graphs: 0,
            functions,
            release,
            begins: 0,
            start: 0,
            is_node: false,
            operation: Vec::new(),
            attributes: AttributeReader::default(),
            text: WholeText::default(),
            known: HashSet::new(),
            nodes: Self::default(),
        };
        source.walk(&mut visitor)?;
        Ok(visitor.nodes)
    }
}

/// A walk over one graph.
struct MainVisitor<'a> {
    root: MessageId,
    wanted: usize,
    meta_graphs: usize,
    functions: &'a FunctionNames,
    release: i32,
    begins: u64,
    start: u64,
    is_node: bool,
    operation: Vec<u8>,
    attributes: AttributeReader,
    text: WholeText,
    known: HashSet<Vec<u8>>,
    nodes: MainNodes,
}

impl MainVisitor<'_> {
    fn end_of_node(&mut self, end: u64) {
        self.is_node = false;
        let place = Extent { start: self.start, end };
        let naming = |name: String| NamingNode { place, name };
        let attributes = self.attributes.attributes();
        if self.known.len() < MOST_OPERATIONS && !self.known.contains(&self.operation) {
            self.known.insert(self.operation.clone());
            let operation = String::from_utf8_lossy(&self.operation).into_owned();
            self.nodes.operations.push(FirstNode { operation, place });
        }
        if self.nodes.lost_function.is_none() {
            self.nodes.lost_function = lost_function(attributes, self.functions).map(naming);
        }
        let calls = matches!(&*self.operation, b"PartitionedCall" | b"StatefulPartitionedCall");
        if calls
            && self.nodes.lost_call.is_none()
            && let Some(AttributeValue::Function(name)) = attributes.get("f")
        {
            self.nodes.lost_call = lost(name.bytes, self.functions).map(naming);
        }
        if self.nodes.placeholder.is_none() {
            let is_placeholder =
                |(_, value): &(&[u8], _)| matches!(value, AttributeValue::Placeholder(_));
            let found = attributes.iter().find(is_placeholder);
            self.nodes.placeholder = found.map(|(name, _)| naming(text_of(name)));
        }
        if self.operation == b"Const"
            && self.nodes.constant.is_none()
            && let Some(AttributeValue::Tensor(tensor)) = attributes.get("value")
            && tensor.shape.dimensions.iter().any(|size| *size < 0)
        {
            self.nodes.constant = Some(naming(tensor.shape.to_string()));
        }
    }
}

fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A name that no function of the library has.
fn lost(name: Option<&[u8]>, functions: &FunctionNames) -> Option<String> {
    let name = name.unwrap_or_default();
    functions.find(name).is_none().then(|| text_of(name))
}

/// The first attribute that is a function which the library does not have.
fn lost_function(attributes: &Attributes, functions: &FunctionNames) -> Option<String> {
    attributes.iter().find_map(|(_, value)| match value {
        AttributeValue::Function(name) => lost(name.bytes, functions),
        AttributeValue::List(list) if list.element() == Some(Element::Function) => {
            list.values().find_map(|value| match value {
                AttributeValue::Function(name) => lost(name.bytes, functions),
                _ => None,
            })
        }
        _ => None,
    })
}

impl Visitor for MainVisitor<'_> {
    fn begins(&mut self, at: u64) {
        self.begins = at;
    }

    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        let is_entered = match (message, field.number) {
            (SAVED_MODEL, saved_model::META_GRAPHS) => {
                self.meta_graphs += 1;
                self.root != SAVED_MODEL || self.meta_graphs == self.wanted + 1
            }
            (META_GRAPH_DEF, meta_graph_def::GRAPH_DEF) => true,
            (GRAPH_DEF, graph_def::NODE) => {
                self.is_node = true;
                self.start = self.begins;
                self.operation.clear();
                self.attributes.clear();
                true
            }
            _ if self.is_node => return self.attributes.enter(message, field),
            _ => false,
        };
        if is_entered { Step::Into } else { Step::Over }
    }

    fn leave(&mut self, message: MessageId, field: &'static Field, at: u64) {
        if (message, field.number) == (GRAPH_DEF, graph_def::NODE) {
            self.end_of_node(at);
        } else if self.is_node {
            self.attributes.leave(message, field);
        }
    }

    fn integer(&mut self, message: MessageId, field: &'static Field, value: u64) {
        if self.is_node {
            self.attributes.integer(message, field, value);
        }
    }

    fn floats(&mut self, message: MessageId, field: &'static Field, count: u64, bytes: &[u8]) {
        if self.is_node {
            self.attributes.floats(message, field, count, bytes);
        }
    }

    fn string(&mut self, message: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        if !self.is_node {
            return;
        }
        if message != NODE_DEF {
            return self.attributes.string(message, field, piece, is);
        }
        if field.number == node_def::OP
            && let Some(text) = self.text.take(piece, is)
        {
            self.operation.clear();
            self.operation.extend_from_slice(text);
        }
    }

    fn long_bytes(&mut self, message: MessageId, field: &'static Field, length: u64) {
        if self.is_node {
            self.attributes.long_bytes(message, field, length);
        }
    }

    fn wants_packed(&self, message: MessageId) -> bool {
        self.is_node && self.attributes.wants_packed(message)
    }

    fn wants_bytes(&self, message: MessageId, field: &'static Field) -> bool {
        self.is_node && self.attributes.wants_bytes(message, field)
    }

    fn release(&self) -> i32 {
        self.release
    }
}
