//! Shape functions of operations that introduce shapes: constants, placeholders and variables.
//!
//! Depends on the attributes with shapes, and on the variables of handles.

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

/// The GraphDef version from which the scalar shape of a placeholder means a scalar; before, it
/// means an unknown shape.
const MEANT: i32 = 22;

/// `Placeholder`: its declared shape.
pub(super) fn placeholder(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let shape = node.said_shape("shape")?;
    let is_said = shape.rank() != Some(0) || node.producer >= MEANT;
    Ok(vec![if is_said { Tensor::of(shape) } else { Tensor::nothing() }])
}

/// `PlaceholderV2`, `VariableV2` and others whose declared shape always counts.
pub(super) fn said(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    Ok(vec![Tensor::of(node.said_shape("shape")?)])
}

/// `PlaceholderWithDefault`: the default must have the declared shape, which is the one used.
pub(super) fn placeholder_with_default(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let said = node.said_shape("shape")?;
    node.shape(0).merge(&said)?;
    Ok(vec![Tensor::of(said)])
}

/// `VarHandleOp`: the variable's type and shape.
pub(super) fn variable_handle(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let mut handle = Tensor::scalar();
    if let Some(data_type) = node.data_type("dtype")? {
        handle.variable = Some(Arc::new(Variable { data_type, shape: node.said_shape("shape")? }));
    }
    Ok(vec![handle])
}

/// Returns the variable whose handle is the first input; its type must be the one that the node
/// declares.
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

/// `AssignVariableOp` and similar operations.
pub(super) fn assign_variable(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    if let Some(variable) = held(node)? {
        variable.shape.merge(node.shape(1))?;
    }
    Ok(Vec::new())
}

/// `Variable`: the scalar shape means an unknown shape.
pub(super) fn legacy_variable(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let shape = node.said_shape("shape")?;
    Ok(vec![if shape.rank() == Some(0) { Tensor::nothing() } else { Tensor::of(shape) }])
}

/// `Assign`: the value replaces the previous one, and must have its shape unless the node says
/// otherwise.
pub(super) fn assign(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let value = node.shape(1);
    Ok(vec![match node.flag("validate_shape")? {
        Some(true) => Tensor::of(node.shape(0).merge(value)?),
        Some(false) => Tensor::of(value.clone()),
        None => Tensor::nothing(),
    }])
}

/// `ScatterAdd` and similar operations: updates of the shape of the selected parts of a variable.
pub(super) fn scatter(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    scattered(node, node.shape(0))?;
    Ok(vec![Tensor::of(node.shape(0).clone())])
}

/// The same operations on the handle of the variable.
pub(super) fn scatter_variable(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    if let Some(variable) = held(node)? {
        scattered(node, &variable.shape)?;
    }
    Ok(Vec::new())
}

/// The indices select parts of the first dimension; a scalar changes all of them.
fn scattered(node: &ShapedNode<'_>, variable: &Shape) -> Inferred<()> {
    if variable.rank().is_some_and(|rank| rank > 0) && node.shape(2).rank() != Some(0) {
        node.shape(1).join(&variable.part(1, None)).merge(node.shape(2))?;
    }
    Ok(())
}

/// `EnsureShape`: a tensor with the declared shape. TensorFlow treats a declared unknown rank as a
/// rank that no tensor has.
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
