//! The attribute `_gradient_op_type` as Python reads it; it names the function that computes the
//! gradient of a node.
//!
//! When a function is loaded, Python looks up the attribute of each node among the gradients of the
//! library, independent of its value. Measured on TensorFlow 2.12, 2.16 and 2.21.

use crate::attributes::{AttributeValue, Attributes};

/// The result of reading the attribute in Python.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum GradientName {
    /// It can be read, or is absent.
    #[default]
    Read,
    /// It has a value by which Python cannot look up a gradient.
    Unreadable,
    /// It is this type, which the release must know.
    OfType(i32),
}

impl GradientName {
    /// Reads the attribute from those of a node.
    pub fn of(attributes: &Attributes) -> Self {
        match attributes.get("_gradient_op_type") {
            None
            | Some(
                AttributeValue::String(_)
                | AttributeValue::Int(_)
                | AttributeValue::Float(_)
                | AttributeValue::Bool(_),
            ) => Self::Read,
            Some(AttributeValue::Type(number)) => Self::OfType(number),
            Some(_) => Self::Unreadable,
        }
    }
}
