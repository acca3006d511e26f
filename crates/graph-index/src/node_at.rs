//! Rereads one node from its place in the file, with all of its attributes.
//!
//! Walks keep only what most nodes need. A diagnostic of one of them is reported from the node
//! itself.

use super::{
    GraphError,
    attributes::{AttributeReader, Attributes},
    rules::is_control_input,
    source::{Extent, Source},
    whole_text::WholeText,
};
use crate::{
    scan::{Piece, Step, Visitor},
    schema::{Field, MessageId, NODE_DEF, fields::node_def},
};

/// A complete node.
#[derive(Clone, Debug, Default)]
pub struct NodeAt {
    pub name: Vec<u8>,
    pub operation: Vec<u8>,
    pub device: Vec<u8>,
    /// The number of its data inputs.
    pub data_inputs: u32,
    /// The requested input.
    pub input: Vec<u8>,
    pub attributes: Attributes,
}

/// Reads the node at `place`, with the input at position `input`.
pub fn read(
    source: Source<'_>,
    place: Extent,
    input: Option<u32>,
    release: i32,
) -> Result<NodeAt, GraphError> {
    let mut reader = NodeReader { wanted_input: input, release, ..NodeReader::default() };
    source.walk_part(place, NODE_DEF, &mut reader)?;
    reader.node.attributes = reader.attributes.attributes().clone();
    Ok(reader.node)
}

/// A walk over one node.
#[derive(Default)]
struct NodeReader {
    release: i32,
    wanted_input: Option<u32>,
    /// The number of inputs so far.
    inputs: u32,
    attributes: AttributeReader,
    text: WholeText,
    node: NodeAt,
}

impl Visitor for NodeReader {
    fn values(&self) -> Option<&dyn Visitor> {
        Some(&self.attributes)
    }

    fn values_mut(&mut self) -> Option<&mut dyn Visitor> {
        Some(&mut self.attributes)
    }

    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        self.attributes.enter(message, field)
    }

    fn leave(&mut self, message: MessageId, field: &'static Field, _at: u64) {
        self.attributes.leave(message, field);
    }

    fn string(&mut self, message: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        if message != NODE_DEF {
            return self.attributes.string(message, field, piece, is);
        }
        let Some(text) = self.text.take(piece, is) else { return };
        let kept = match field.number {
            node_def::NAME => &mut self.node.name,
            node_def::OP => &mut self.node.operation,
            node_def::DEVICE => &mut self.node.device,
            node_def::INPUT => {
                let is_data = !is_control_input(text);
                self.node.data_inputs = self.node.data_inputs.saturating_add(u32::from(is_data));
                self.inputs = self.inputs.saturating_add(1);
                if self.wanted_input != Some(self.inputs - 1) {
                    return;
                }
                &mut self.node.input
            }
            _ => return,
        };
        kept.clear();
        kept.extend_from_slice(text);
    }

    fn release(&self) -> i32 {
        self.release
    }
}
