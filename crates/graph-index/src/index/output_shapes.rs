//! The declared output shapes of a node: the attribute `_output_shapes`.
//!
//! Depends on the validity of shapes, but not on the number of outputs of the node.

use crate::{
    attributes::{AttributeValue, Attributes},
    ops::Element,
};

/// The attribute, which older exporters add to every node.
pub const OUTPUT_SHAPES: &[u8] = b"_output_shapes";

/// The output shapes that a node declares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutputShapes {
    pub(super) node: u32,
    /// The number of outputs with a declared shape.
    pub count: u64,
    /// The number of leading valid shapes.
    pub valid: u64,
}

impl OutputShapes {
    /// Returns a copy for another node.
    pub(super) fn at(self, node: u32) -> Self {
        Self { node, ..self }
    }

    /// Reads the declaration of a node; `None` if it has none, or a value other than a list of
    /// shapes, which importers ignore.
    pub fn of(node: u32, attributes: &Attributes) -> Option<Self> {
        let AttributeValue::List(list) = attributes.get_bytes(OUTPUT_SHAPES)? else { return None };
        if list.is_mixed() || list.element().is_some_and(|element| element != Element::Shape) {
            return None;
        }
        let is_valid = |value: &AttributeValue<'_>| match value {
            AttributeValue::Shape(shape) => shape.is_partial_shape(),
            _ => false,
        };
        let mut kept = 0;
        let valid = list.values().inspect(|_| kept += 1).take_while(is_valid).count() as u64;
        // Entries of a very long list that are not kept count as valid: no operation has that many
        // outputs.
        let valid = if valid == kept { list.len() } else { valid };
        Some(Self { node, count: list.len(), valid })
    }
}
