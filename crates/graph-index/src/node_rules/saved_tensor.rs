//! Tensors that TensorFlow's C++ loader of SavedModels refuses before all other checks.

use crate::{
    ImportDiagnosticKind,
    attributes::{AttributeValue, Attributes, ShapeValue},
};

/// A diagnostic that the loader finds in the attribute `value` of a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SavedTensorDiagnostic {
    /// A constant has no tensor.
    Missing,
    /// A tensor of this shape, as it is displayed, which leaves the number of elements unknown.
    Shape(String),
}

impl SavedTensorDiagnostic {
    /// Checks a node anywhere in the graph, including functions that are not called.
    pub fn of(operation: &[u8], attributes: &Attributes) -> Option<Self> {
        match attributes.get("value") {
            None => (operation == b"Const").then_some(Self::Missing),
            Some(AttributeValue::Tensor(tensor)) if !is_counted(tensor.shape) => {
                Some(Self::Shape(tensor.shape.to_string()))
            }
            Some(_) => None,
        }
    }

    /// Returns its kind, the found value and the expected one.
    pub fn diagnostic(&self) -> (ImportDiagnosticKind, String, &'static str) {
        match self {
            Self::Missing => {
                let attributes = vec!["value".to_owned()];
                (
                    ImportDiagnosticKind::AttributesMissing { attributes },
                    String::new(),
                    "attribute value",
                )
            }
            Self::Shape(shape) => {
                let expected = "dimensions of at least 0, under 2^63 elements";
                (ImportDiagnosticKind::Shape, format!("a tensor of shape {shape}"), expected)
            }
        }
    }
}

/// Returns true if a shape determines the number of elements.
fn is_counted(shape: ShapeValue<'_>) -> bool {
    !shape.is_unknown_rank && shape.is_full_shape()
}
