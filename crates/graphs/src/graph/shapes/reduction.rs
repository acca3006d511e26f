//! Shape functions of operations that remove dimensions, or search along one of them.
//!
//! Depends on axes given by constants.

use super::{
    node::ShapedNode,
    shape::{Inferred, Mismatch, Shape, UNKNOWN, place},
    tensor::Tensor,
};

fn one(shape: Shape) -> Inferred<Vec<Tensor>> {
    Ok(vec![Tensor::of(shape)])
}

/// The GraphDef version from which the rank of a list of axes is checked.
const CHECKED: i32 = 21;

/// `Sum` and similar operations: the dimensions in the second input are removed, or become 1 if
/// they are kept.
pub(super) fn reduce(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let shape = node.shape(0);
    let axes = node.shape(1);
    let keeps = node.flag("keep_dims")?;
    let is_looked_at = node.producer >= CHECKED;
    if let Some(rank) = axes.rank().filter(|rank| *rank > 1 && is_looked_at) {
        let found = format!("input 1 of rank {rank}");
        return Err(Mismatch::new(found, "a scalar or a vector of axes"));
    }
    let (Some(dimensions), Some(axes), Some(keeps)) =
        (shape.dimensions(), node.input(1).value.as_deref(), keeps)
    else {
        let rank = shape.rank().filter(|_| keeps == Some(true));
        return one(rank.map_or(Shape::unknown(), Shape::of_rank));
    };
    let mut is_left_out = vec![false; dimensions.len()];
    for axis in axes {
        let at = place(*axis, dimensions.len()).ok_or_else(|| {
            Mismatch::new(format!("axis {axis}"), format!("an axis of shape {shape}"))
        })?;
        if let Some(flag) = is_left_out.get_mut(at) {
            *flag = true;
        }
    }
    let left = dimensions.iter().zip(is_left_out);
    let left = left.filter_map(|(size, is_left_out)| match (is_left_out, keeps) {
        (false, _) => Some(*size),
        (true, true) => Some(1),
        (true, false) => None,
    });
    one(Shape::of(&left.collect::<Vec<_>>()))
}

/// `ArgMax`: one dimension is removed.
pub(super) fn arg(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let shape = node.shape(0);
    node.ranked(1, 0)?;
    let Some(dimensions) = shape.dimensions() else { return one(Shape::unknown()) };
    if dimensions.len() <= 1 {
        return one(Shape::scalar());
    }
    let Some(axis) = node.input(1).number() else {
        return one(Shape::of_rank(dimensions.len() - 1));
    };
    let at = place(axis, dimensions.len()).ok_or_else(|| {
        Mismatch::new(format!("axis {axis}"), format!("an axis of shape {shape}"))
    })?;
    let mut rest = dimensions.to_vec();
    rest.remove(at);
    one(Shape::of(&rest))
}

/// `Range`: from, to and by are scalars.
pub(super) fn range(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    for place in 0..3 {
        node.ranked(place, 0)?;
    }
    one(Shape::of(&[UNKNOWN]))
}
