//! Products of matrices.
//!
//! Depends on the contracted dimensions of both sides.

use super::{
    node::ShapedNode,
    shape::{Inferred, Mismatch, Shape, merge_dimensions, merged},
    tensor::Tensor,
};

/// Returns the two last dimensions of a matrix, swapped if it is transposed.
fn sides(shape: &Shape, is_turned: bool) -> (i64, i64) {
    let (rows, columns) = (shape.dimension(-2), shape.dimension(-1));
    if is_turned { (columns, rows) } else { (rows, columns) }
}

fn is_turned(node: &ShapedNode<'_>, attribute: &str) -> Inferred<bool> {
    Ok(node.flag(attribute)?.unwrap_or(false))
}

/// `MatMul`: two matrices.
pub(super) fn matmul(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let (a, b) = (node.ranked(0, 2)?, node.ranked(1, 2)?);
    let (rows, inner) = sides(&a, is_turned(node, "transpose_a")?);
    let (other_inner, columns) = sides(&b, is_turned(node, "transpose_b")?);
    merge_dimensions(inner, other_inner, "size of what is summed over")?;
    Ok(vec![Tensor::of(Shape::of(&[rows, columns]))])
}

/// `BatchMatMul`: stacks of matrices of one shape.
pub(super) fn batch_matmul(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    stacked(node, Shape::merge)
}

/// `BatchMatMulV2`: stacks of matrices, which are broadcast.
pub(super) fn batch_matmul_broadcast(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    stacked(node, Shape::broadcast)
}

fn stacked(
    node: &ShapedNode<'_>,
    together: fn(&Shape, &Shape) -> Inferred<Shape>,
) -> Inferred<Vec<Tensor>> {
    let (x, y) = (node.ranked_at_least(0, 2)?, node.ranked_at_least(1, 2)?);
    let (rows, inner) = sides(x, is_turned(node, "adj_x")?);
    let (other_inner, columns) = sides(y, is_turned(node, "adj_y")?);
    let stack = together(&x.part(0, Some(-2)), &y.part(0, Some(-2)))?;
    merge_dimensions(inner, other_inner, "size of what is summed over")?;
    Ok(vec![Tensor::of(stack.join(&Shape::of(&[rows, columns])))])
}

/// `Einsum` with one or two inputs: labels of one letter, of which equal ones have equal sizes.
pub(super) fn einsum(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let Some(equation) = node.text("equation")?.and_then(|text| std::str::from_utf8(text).ok())
    else {
        return Ok(vec![Tensor::nothing()]);
    };
    let given = node.inputs.len();
    let sides = equation.split_once("->").map_or(given, |(inputs, _)| inputs.split(',').count());
    if !(1..=2).contains(&given) || sides != given {
        let expected = format!("one or two, as many as in {equation:?}");
        return Err(Mismatch::new(format!("{given} inputs"), expected));
    }
    let Some(Equation { inputs, output }) = Equation::of(equation) else {
        return Ok(vec![Tensor::nothing()]);
    };
    let mut sizes: Vec<(u8, i64)> = Vec::new();
    for (place, labels) in inputs.iter().enumerate() {
        let shape = node.ranked(place, labels.len())?;
        for (label, size) in labels.iter().zip(shape.dimensions().unwrap_or_default()) {
            match sizes.iter_mut().find(|(known, _)| known == label) {
                None => sizes.push((*label, *size)),
                Some((_, known)) => {
                    *known = merged(*known, *size).ok_or_else(|| {
                        let label = char::from(*label);
                        let found =
                            format!("sizes {known} and {size} of {label:?} in {equation:?}");
                        Mismatch::new(found, "one size of each label")
                    })?;
                }
            }
        }
    }
    let size = |label: &u8| sizes.iter().find(|(known, _)| known == label).map(|(_, size)| *size);
    let output: Option<Vec<i64>> = output.iter().map(size).collect();
    Ok(vec![output.map_or_else(Tensor::nothing, |output| Tensor::of(Shape::of(&output)))])
}

/// An equation without an ellipsis.
struct Equation<'e> {
    inputs: Vec<&'e [u8]>,
    output: &'e [u8],
}

impl<'e> Equation<'e> {
    /// Returns `None` for an equation in another form, which is left to TensorFlow.
    fn of(text: &'e str) -> Option<Self> {
        let (inputs, output) = text.split_once("->")?;
        let inputs: Vec<&[u8]> = inputs.split(',').map(str::as_bytes).collect();
        let output = output.as_bytes();
        let are_distinct_letters = |labels: &[u8]| {
            labels.len() <= 52
                && labels.iter().all(u8::is_ascii_alphabetic)
                && (1..labels.len()).all(|at| {
                    labels.split_at_checked(at).is_some_and(|(before, rest)| {
                        rest.first().is_some_and(|label| !before.contains(label))
                    })
                })
        };
        let is_known = |label: &u8| inputs.iter().any(|labels| labels.contains(label));
        let fits = (1..=2).contains(&inputs.len())
            && inputs.iter().all(|labels| are_distinct_letters(labels))
            && are_distinct_letters(output)
            && output.iter().all(is_known);
        fits.then_some(Self { inputs, output })
    }
}

/// `MatrixDiagPart` and others keep the batch dimensions; an unknown one is not checked.
pub(super) fn square(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let input = node.ranked_at_least(0, 2)?;
    if input.rank().is_none() {
        return Ok(vec![Tensor::nothing()]);
    }
    let size = merge_dimensions(input.dimension(-1), input.dimension(-2), "size of both sides")?;
    let stack = input.part(0, Some(-2));
    Ok(vec![Tensor::of(stack.join(&Shape::of(&[size, size])))])
}

/// `MatrixDeterminant` and others return one value for each square matrix of a stack.
pub(super) fn of_squares(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let input = node.ranked_at_least(0, 2)?;
    merge_dimensions(input.dimension(-1), input.dimension(-2), "size of both sides")?;
    let stack = Tensor::of(input.part(0, Some(-2)));
    Ok(vec![stack; node.operation.outputs().count()])
}
