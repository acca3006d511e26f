//! Finds the nodes that hold a module of XLA's: `XlaCallModule`, which jax2tf writes.
//!
//! Does not depend on the releases that run the modules.

use std::io;

use bytes::Bytes;
use memchr::memmem;
use prost::Message as _;

use super::{
    GraphError, Message,
    rules::{SHOWN_NAME, shown},
    source::{Extent, Form, Source},
};
use crate::{
    files::{ReadAt, read_at::read_up_to},
    scan::{Piece, Step, Visitor},
    schema::{
        ATTR_VALUE, FUNCTION_DEF, FUNCTION_DEF_LIBRARY, Field, GRAPH_DEF, META_GRAPH_DEF,
        MessageId, NODE_DEF, NODE_DEF_ATTR_ENTRY, OP_DEF, SAVED_MODEL,
        fields::{
            attr_value, function_def, function_def_library, graph_def, meta_graph_def, node_def,
            node_def_attr_entry, op_def, saved_model,
        },
    },
};

/// The operation.
const OPERATION: &[u8] = b"XlaCallModule";
/// Number of bytes that are searched at a time.
const WINDOW: usize = 64 << 10;
/// Limit on the nodes that are kept; models have one for each JAX function.
const MOST_NODES: usize = 1 << 10;

/// A node with a module.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallModule {
    /// The name of the node, for messages.
    pub node: String,
    /// The function that contains the node.
    pub function: Option<String>,
    /// Its attribute `version`.
    pub version: u64,
    /// The extent of the value of its attribute `module`.
    module: Option<Extent>,
}

/// The attribute `module`.
#[derive(Clone, PartialEq, prost::Message)]
struct Value {
    #[prost(bytes = "bytes", tag = "2")]
    bytes: Bytes,
}

/// Returns the nodes of a file, in its order; an earlier walk found the file well-formed. Most
/// files have none, which is found without another walk.
pub fn call_modules(
    bytes: &dyn ReadAt,
    message: Message,
    form: Form,
) -> Result<Vec<CallModule>, GraphError> {
    if !names_the_operation(bytes)? {
        return Ok(Vec::new());
    }
    let mut finder = Finder { is_binary: form == Form::Binary, ..Finder::default() };
    Source::new(bytes, message, form).walk(&mut finder)?;
    Ok(finder.found)
}

impl CallModule {
    /// Returns the module, from a file in the binary form.
    pub fn module(&self, bytes: &dyn ReadAt) -> io::Result<Option<Bytes>> {
        let Some(Extent { start, end }) = self.module else { return Ok(None) };
        let length = usize::try_from(end.saturating_sub(start)).unwrap_or_default();
        let mut value = vec![0; length];
        bytes.read_exact_at(&mut value, start)?;
        Ok(Value::decode(Bytes::from(value)).ok().map(|value| value.bytes))
    }
}

/// Returns true if the name of the operation is anywhere in a file.
fn names_the_operation(bytes: &dyn ReadAt) -> io::Result<bool> {
    let finder = memmem::Finder::new(OPERATION);
    let mut window = vec![0; WINDOW];
    let mut at = 0;
    loop {
        let found = read_up_to(bytes, &mut window, at)?;
        if finder.find(found).is_some() {
            return Ok(true);
        }
        if found.len() < WINDOW {
            return Ok(false);
        }
        at += (WINDOW - OPERATION.len()) as u64;
    }
}

/// The walk over a file.
#[derive(Default)]
struct Finder {
    is_binary: bool,
    found: Vec<CallModule>,
    function: Option<Vec<u8>>,
    name: Vec<u8>,
    operation: Vec<u8>,
    node: CallModule,
    /// The current attribute: its key, its number, and the place of its value.
    key: Vec<u8>,
    integer: Option<u64>,
    value: Extent,
    begins: u64,
}

impl Finder {
    fn end_attribute(&mut self) {
        match self.key.as_slice() {
            b"version" => self.node.version = self.integer.unwrap_or_default(),
            b"module" if self.is_binary => self.node.module = Some(self.value),
            _ => {}
        }
        self.key.clear();
        self.integer = None;
    }

    fn end_node(&mut self) {
        let node = std::mem::take(&mut self.node);
        if self.operation == OPERATION && self.found.len() < MOST_NODES {
            let function = self.function.as_deref().map(shown);
            self.found.push(CallModule { node: shown(&self.name), function, ..node });
        }
        self.name.clear();
        self.operation.clear();
    }
}

impl Visitor for Finder {
    fn begins(&mut self, at: u64) {
        self.begins = at;
    }

    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        match (message, field.number) {
            (FUNCTION_DEF_LIBRARY, function_def_library::FUNCTION) => {
                self.function = Some(Vec::new());
            }
            (NODE_DEF_ATTR_ENTRY, node_def_attr_entry::VALUE) => {
                self.value = Extent { start: self.begins, end: self.begins };
            }
            (SAVED_MODEL, saved_model::META_GRAPHS)
            | (META_GRAPH_DEF, meta_graph_def::GRAPH_DEF)
            | (GRAPH_DEF, graph_def::NODE | graph_def::LIBRARY)
            | (FUNCTION_DEF, function_def::SIGNATURE | function_def::NODE_DEF)
            | (NODE_DEF, node_def::ATTR) => {}
            _ => return Step::Over,
        }
        Step::Into
    }

    fn leave(&mut self, message: MessageId, field: &'static Field, at: u64) {
        match (message, field.number) {
            (NODE_DEF_ATTR_ENTRY, node_def_attr_entry::VALUE) => self.value.end = at,
            (NODE_DEF, node_def::ATTR) => self.end_attribute(),
            (GRAPH_DEF, graph_def::NODE) | (FUNCTION_DEF, function_def::NODE_DEF) => {
                self.end_node();
            }
            (FUNCTION_DEF_LIBRARY, function_def_library::FUNCTION) => self.function = None,
            _ => {}
        }
    }

    fn integer(&mut self, message: MessageId, field: &'static Field, value: u64) {
        if (message, field.number) == (ATTR_VALUE, attr_value::I) {
            self.integer = Some(value);
        }
    }

    fn string(&mut self, message: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        let mut none = Vec::new();
        let text = match (message, field.number) {
            (NODE_DEF, node_def::NAME) => &mut self.name,
            (NODE_DEF, node_def::OP) => &mut self.operation,
            (NODE_DEF_ATTR_ENTRY, node_def_attr_entry::KEY) => &mut self.key,
            (OP_DEF, op_def::NAME) => self.function.as_mut().unwrap_or(&mut none),
            _ => return,
        };
        if is.first {
            text.clear();
        }
        let room = SHOWN_NAME.saturating_sub(text.len());
        text.extend_from_slice(piece.get(..room).unwrap_or(piece));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::tests::field;

    fn attribute(key: &str, value: &[u8]) -> Vec<u8> {
        field(5, &[field(1, key.as_bytes()), field(2, value)].concat())
    }

    #[test]
    fn nodes_with_modules_are_found_in_graphs_and_functions() {
        let call = |name: &[u8], version: u8| {
            let attributes = [
                attribute("version", &[0x18, version]),
                attribute("module", &field(2, b"ML\xefR")),
            ];
            [field(1, name), field(2, OPERATION), attributes.concat()].concat()
        };
        let other = [field(1, b"x"), field(2, b"NoOp"), attribute("version", &[0x18, 3])].concat();
        let function = [field(1, &field(1, b"f")), field(3, &call(b"inner", 9))].concat();
        let graph =
            [field(1, &other), field(1, &call(b"outer", 10)), field(2, &field(1, &function))];
        let graph = graph.concat();
        let found = call_modules(&graph, Message::GraphDef, Form::Binary).unwrap();
        let told: Vec<_> = found
            .iter()
            .map(|call| (call.node.as_str(), call.function.as_deref(), call.version))
            .collect();
        assert_eq!(told, [("outer", None, 10), ("inner", Some("f"), 9)]);
        for call in &found {
            assert_eq!(call.module(&graph).unwrap().as_deref(), Some(&b"ML\xefR"[..]));
        }
        assert_eq!(call_modules(&other, Message::GraphDef, Form::Binary).unwrap(), []);
    }
}
