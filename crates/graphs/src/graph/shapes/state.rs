//! Shape functions of operations that introduce shapes: constants, placeholders and variables.
//!
//! Knows which attribute says a shape, and what the handle of a variable tells of it.

use std::sync::Arc;

use super::{
    node::ShapedNode,
    shape::{Inferred, Mismatch, Shape},
    tensor::{Tensor, Variable},
};
use crate::{graph::attributes::AttributeValue, ops::type_name};

/// `Const`.
pub(super) fn constant(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    Ok(vec![match node.attributes.get("value") {
        Some(AttributeValue::Tensor(tensor)) => Tensor::constant(tensor),
        _ => Tensor::nothing(),
    }])
}

/// The GraphDef version from which on a placeholder that says the shape of a scalar means it;
/// before, it means that nothing is known.
const MEANT: i32 = 22;

/// `Placeholder`: the shape that it says.
pub(super) fn placeholder(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let shape = node.said_shape("shape")?;
    let is_said = shape.rank() != Some(0) || node.producer >= MEANT;
    Ok(vec![if is_said { Tensor::of(shape) } else { Tensor::nothing() }])
}

/// `PlaceholderV2`, `VariableV2` and others that mean what they say.
pub(super) fn said(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    Ok(vec![Tensor::of(node.said_shape("shape")?)])
}

/// `PlaceholderWithDefault`: the default has to be of the shape that is said, which is the one that
/// counts.
pub(super) fn placeholder_with_default(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let said = node.said_shape("shape")?;
    node.shape(0).merge(&said)?;
    Ok(vec![Tensor::of(said)])
}

/// `VarHandleOp`: what the variable holds.
pub(super) fn variable_handle(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let mut handle = Tensor::scalar();
    if let Some(data_type) = node.data_type("dtype")? {
        handle.variable = Some(Arc::new(Variable { data_type, shape: node.said_shape("shape")? }));
    }
    Ok(vec![handle])
}

/// Returns the variable that the first input is the handle of, which holds what the node says.
fn held<'n>(node: &ShapedNode<'n>) -> Inferred<Option<&'n Variable>> {
    // The operation does not compare the type if nothing is known of the variable.
    let Some(variable) = node.input(0).variable.as_deref() else { return Ok(None) };
    match node.data_type("dtype")? {
        Some(said) if variable.data_type != said => {
            let found = format!("a variable of {}", type_name(variable.data_type));
            Err(Mismatch::new(found, format!("a variable of {}", type_name(said))))
        }
        _ => Ok(Some(variable)),
    }
}

/// `ReadVariableOp`.
pub(super) fn read_variable(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let shape = held(node)?.map_or(Shape::unknown(), |variable| variable.shape.clone());
    Ok(vec![Tensor::of(shape)])
}

/// `AssignVariableOp` and its kin.
pub(super) fn assign_variable(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    if let Some(variable) = held(node)? {
        variable.shape.merge(node.shape(1))?;
    }
    Ok(Vec::new())
}

/// `Variable`: one that says the shape of a scalar means that nothing is known.
pub(super) fn legacy_variable(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let shape = node.said_shape("shape")?;
    Ok(vec![if shape.rank() == Some(0) { Tensor::nothing() } else { Tensor::of(shape) }])
}

/// `Assign`: the value takes the place of what is there, which has to be of its shape unless the
/// node says otherwise.
pub(super) fn assign(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let value = node.shape(1);
    Ok(vec![match node.flag("validate_shape")? {
        Some(true) => Tensor::of(node.shape(0).merge(value)?),
        Some(false) => Tensor::of(value.clone()),
        None => Tensor::nothing(),
    }])
}

/// `ScatterAdd` and its kin: parts of a variable, which updates of their shape change.
pub(super) fn scatter(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    scattered(node, node.shape(0))?;
    Ok(vec![Tensor::of(node.shape(0).clone())])
}

/// Returns the same by the handle of the variable.
pub(super) fn scatter_variable(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    if let Some(variable) = held(node)? {
        scattered(node, &variable.shape)?;
    }
    Ok(Vec::new())
}

/// The indices say which parts of the first dimension; a scalar changes all of them.
fn scattered(node: &ShapedNode<'_>, variable: &Shape) -> Inferred<()> {
    if variable.rank().is_some_and(|rank| rank > 0) && node.shape(2).rank() != Some(0) {
        node.shape(1).join(&variable.part(1, None)).merge(node.shape(2))?;
    }
    Ok(())
}

/// `EnsureShape`: a tensor of the shape that is said. TensorFlow takes a rank that is not known for
/// one that no tensor has.
pub(super) fn ensure_shape(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    if let Some(AttributeValue::Shape(said)) = node.attributes.get("shape")
        && said.is_unknown_rank
        && node.shape(0).rank().is_some()
    {
        let found = format!("shape {}", node.shape(0));
        return Err(Mismatch::new(found, "a shape of unknown rank, as the node says"));
    }
    Ok(vec![Tensor::of(node.shape(0).merge(&node.said_shape("shape")?)?)])
}
