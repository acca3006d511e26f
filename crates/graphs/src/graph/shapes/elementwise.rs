//! Shape functions of operations that work element by element, or choose between tensors.
//!
//! Depends on the rules of broadcasting.

use super::{
    node::ShapedNode,
    shape::{Inferred, Shape},
    tensor::Tensor,
};

/// Broadcasts two tensors.
pub(super) fn broadcast(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    Ok(vec![Tensor::of(node.shape(0).broadcast(node.shape(1))?)])
}

/// Broadcasts two tensors, where an attribute can allow incompatible shapes.
pub(super) fn equality(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    if node.flag("incompatible_shape_error")? == Some(true) {
        return broadcast(node);
    }
    Ok(vec![Tensor::nothing()])
}

/// Any number of tensors of one shape.
pub(super) fn same(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let mut merged = Shape::unknown();
    for input in node.inputs {
        merged = merged.merge(&input.shape)?;
    }
    Ok(vec![Tensor::of(merged)])
}

/// Returns two tensors of one shape, of which only the first is kept.
pub(super) fn compared(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    node.shape(0).merge(node.shape(1))?;
    Ok(vec![Tensor::of(node.shape(0).clone())])
}

/// Returns two tensors of one shape, ignoring further outputs.
pub(super) fn same_two(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    Ok(vec![Tensor::of(node.shape(0).merge(node.shape(1))?)])
}

/// `Betainc`: tensors of one shape, except scalars.
pub(super) fn same_but_scalars(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let mut merged = Shape::unknown();
    for input in node.inputs.iter().filter(|input| input.shape.rank() != Some(0)) {
        merged = merged.merge(&input.shape)?;
    }
    let are_known = node.inputs.iter().all(|input| input.shape.rank().is_some());
    Ok(vec![if are_known && merged.rank().is_some() {
        Tensor::of(merged)
    } else {
        Tensor::nothing()
    }])
}

/// `SelectV2`: three tensors that are broadcast.
pub(super) fn select_broadcast(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let values = node.shape(1).broadcast(node.shape(2))?;
    Ok(vec![Tensor::of(node.shape(0).broadcast(&values)?)])
}

/// `Select`: the condition is a scalar, a vector along the first dimension, or of the same shape.
pub(super) fn select(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let (condition, values) = (node.shape(0), node.shape(1).merge(node.shape(2))?);
    match (condition.rank(), values.rank()) {
        (None, _) | (_, None) | (Some(0), _) => {}
        (Some(1), Some(rank)) if rank > 1 => {
            condition.merge(&values.part(0, Some(1)))?;
        }
        _ => {
            condition.merge(&values)?;
        }
    }
    Ok(vec![Tensor::of(values)])
}

/// `BiasAdd`: a vector along the dimension of channels.
pub(super) fn bias_add(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    // Channels are also last if the attribute is of another kind.
    let channels_first = matches!(node.text("data_format"), Ok(Some(b"NCHW")));
    let input = node.ranked_at_least(0, if channels_first { 3 } else { 2 })?;
    let bias = node.ranked(1, 1)?;
    let Some(rank) = input.rank() else { return Ok(vec![Tensor::nothing()]) };
    let channels = if channels_first { 1 } else { rank - 1 };
    let size = super::shape::merge_dimensions(
        input.dimension(channels as i64),
        bias.dimension(0),
        "number of channels",
    )?;
    Ok(vec![Tensor::of(input.with_dimension(channels, size))])
}
