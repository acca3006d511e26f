//! What Python makes of the attribute `_gradient_op_type`, which names the function that computes
//! the gradient of a node.
//!
//! Where a function is loaded, Python looks the attribute of each node up among the gradients of
//! the library, whatever its value is. Measured on TensorFlow 2.12, 2.16 and 2.21.

use crate::artifact::graph::attributes::{AttributeValue, Attributes};

/// Whether Python can look an attribute up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) enum GradientName {
    /// It can, or there is none.
    #[default]
    Read,
    /// It has a value that stands in no table of names.
    Unreadable,
    /// It is this type, which a release has to know.
    OfType(i32),
}

impl GradientName {
    /// Of a node with these attributes.
    pub(in super::super) fn of(attributes: &Attributes) -> Self {
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
