//! Tensors that TensorFlow's C++ loader of SavedModels refuses before it looks at anything else.

use crate::artifact::graph::attributes::{AttributeValue, Attributes, ShapeValue};

/// What the loader finds wrong with the attribute `value` of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) enum SavedTensorFault {
    /// A constant has none.
    Missing,
    /// It is a tensor of a shape, as it is shown, of which nobody knows how many elements it has.
    Shape(String),
}

impl SavedTensorFault {
    /// Of any node, wherever it is: in a function as well that nobody calls.
    pub(in super::super) fn of(operation: &[u8], attributes: &Attributes) -> Option<Self> {
        match attributes.get("value") {
            None => (operation == b"Const").then_some(Self::Missing),
            Some(AttributeValue::Tensor(tensor)) if !is_counted(tensor.shape) => {
                Some(Self::Shape(tensor.shape.to_string()))
            }
            Some(_) => None,
        }
    }
}

/// Whether a shape says how many elements there are.
fn is_counted(shape: ShapeValue<'_>) -> bool {
    !shape.is_unknown_rank && shape.is_full_shape()
}
