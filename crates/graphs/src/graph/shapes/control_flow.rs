//! Shape functions of operations that merge branches and begin loops.
//!
//! The values that return to the head of a loop are unknown when its shape is inferred.

use super::{
    node::ShapedNode,
    shape::{Inferred, Shape, UNKNOWN},
    tensor::Tensor,
};

/// `Merge`: the common shape of all inputs, and the index of the one that was used.
pub(super) fn merge(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let common = |one: Shape, other: &Tensor| {
        let (Some(own), Some(others)) = (one.dimensions(), other.shape.dimensions()) else {
            return Shape::unknown();
        };
        if own.len() != others.len() {
            return Shape::unknown();
        }
        let pairs = own.iter().zip(others);
        let sizes = pairs.map(|(one, two)| if one == two { *one } else { UNKNOWN });
        Shape::of(&sizes.collect::<Vec<_>>())
    };
    let first = node.shape(0).clone();
    Ok(vec![Tensor::of(node.inputs.iter().fold(first, common)), Tensor::scalar()])
}

/// `Enter`: into a loop, in which only loop-invariant values keep their shape.
pub(super) fn enter(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let is_constant = node.flag("is_constant")? == Some(true);
    let shape = if is_constant { node.shape(0).clone() } else { Shape::unknown() };
    Ok(vec![Tensor { shape, value: None, variable: node.input(0).variable.clone() }])
}

/// Passes the input on unchanged.
pub(super) fn identity(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let Tensor { shape, variable, .. } = node.input(0);
    Ok(vec![Tensor { shape: shape.clone(), value: None, variable: variable.clone() }])
}
