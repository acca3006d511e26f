//! Infers the outputs of one node, by its operation.
//!
//! Selects the shape functions. Does not depend on the graph.

use super::{
    functions::{self, ShapeFunction},
    measured::Measured,
    node::ShapedNode,
    shape::{Inferred, Mismatch, Shape},
    tensor::Tensor,
};
use crate::{
    graph::{
        attributes::{AttributeValue, Attributes},
        index::OUTPUT_SHAPES,
    },
    ops::{ArgumentSource, Operation},
};

/// The shape rules of an operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct ShapeRule {
    measured: Option<Measured>,
    function: Option<ShapeFunction>,
    /// True if the rules read attributes of the node.
    pub(super) reads_attributes: bool,
}

impl ShapeRule {
    pub(super) fn of(operation: Operation<'_>) -> Self {
        let (measured, function) =
            (Measured::of(operation.name()), functions::of(operation.name()));
        let is_counted = operation.inputs().any(|argument| {
            argument.number_attribute().is_some()
                || matches!(argument.source(), ArgumentSource::List(_))
        });
        // The types of inputs are called `T` or similar, and no shape function reads them.
        let has_attributes =
            operation.attributes().any(|attribute| !attribute.name().starts_with('T'));
        let reads_attributes = is_counted || (function.is_some() && has_attributes);
        Self { measured, function, reads_attributes }
    }

    /// Returns true if there are no rules: no diagnostic is found, and all outputs are unknown.
    pub(super) fn is_empty(&self) -> bool {
        self.measured.is_none() && self.function.is_none()
    }

    /// Infers the outputs of a node.
    ///
    /// # Errors
    /// If the real function certainly refuses the node.
    pub(super) fn infer(&self, node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
        if let Some(measured) = self.measured {
            measured.check(node)?;
        }
        match (self.function, self.measured) {
            (Some(function), _) => function(node),
            (None, Some(measured)) => Ok(measured.outputs(node)),
            (None, None) => Ok(Vec::new()),
        }
    }
}

/// Merges outputs with the shapes that the node itself declares. Declared shapes that are invalid,
/// or too few, are reported elsewhere.
pub(super) fn with_said_shapes(
    mut outputs: Vec<Tensor>,
    attributes: &Attributes,
) -> Inferred<Vec<Tensor>> {
    let Some(AttributeValue::List(said)) = attributes.get_bytes(OUTPUT_SHAPES) else {
        return Ok(outputs);
    };
    for (place, value) in said.values().enumerate().take(outputs.len()) {
        let AttributeValue::Shape(shape) = value else { return Ok(outputs) };
        if shape.is_unknown_rank || !shape.is_partial_shape() {
            continue;
        }
        let said = Shape::of(shape.dimensions);
        if let Some(output) = outputs.get_mut(place) {
            let mismatch = |mismatch: Box<Mismatch>| {
                let Mismatch { found, expected, .. } = *mismatch;
                Mismatch::new(format!("_output_shapes[{place}]: {found}"), expected)
            };
            output.shape = output.shape.merge(&said).map_err(mismatch)?;
        }
    }
    Ok(outputs)
}

#[cfg(test)]
mod tests;
