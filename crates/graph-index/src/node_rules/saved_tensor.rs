//! Tensors that TensorFlow's C++ loader of SavedModels refuses before it looks at anything else.

use crate::{
    ImportFaultKind,
    attributes::{AttributeValue, Attributes, ShapeValue},
};

/// A fault that the loader finds in the attribute `value` of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SavedTensorFault {
    /// A constant has none.
    Missing,
    /// A tensor of this shape, as it is displayed, which leaves the number of elements unknown.
    Shape(String),
}

impl SavedTensorFault {
    /// Checks a node anywhere in the graph, also in functions without calls.
    pub fn of(operation: &[u8], attributes: &Attributes) -> Option<Self> {
        match attributes.get("value") {
            None => (operation == b"Const").then_some(Self::Missing),
            Some(AttributeValue::Tensor(tensor)) if !is_counted(tensor.shape) => {
                Some(Self::Shape(tensor.shape.to_string()))
            }
            Some(_) => None,
        }
    }

    /// The fault as a diagnostic: its kind, the found value and the expected one.
    pub fn diagnostic(&self) -> (ImportFaultKind, String, &'static str) {
        match self {
            Self::Missing => {
                let attributes = vec!["value".to_owned()];
                (
                    ImportFaultKind::AttributesMissing { attributes },
                    String::new(),
                    "attribute value",
                )
            }
            Self::Shape(shape) => {
                let expected = "dimensions of at least 0, under 2^63 elements";
                (ImportFaultKind::Shape, format!("a tensor of shape {shape}"), expected)
            }
        }
    }
}

/// True if a shape determines the number of elements.
fn is_counted(shape: ShapeValue<'_>) -> bool {
    !shape.is_unknown_rank && shape.is_full_shape()
}
