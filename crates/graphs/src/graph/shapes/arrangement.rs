//! Shape functions of operations that rearrange the elements of tensors.
//!
//! Depends on axes, and on the constants that select positions.

use super::{
    node::ShapedNode,
    shape::{Inferred, Mismatch, Shape, UNKNOWN, merge_dimensions, place},
    tensor::Tensor,
};

/// Returns unknown tensors for this number of outputs, up to [`MOST_OUTPUTS`].
pub(super) fn nothing(outputs: usize) -> Vec<Tensor> {
    vec![Tensor::nothing(); outputs.min(MOST_OUTPUTS)]
}

/// Limit on the outputs whose shapes are kept.
const MOST_OUTPUTS: usize = 1024;

fn one(shape: Shape) -> Inferred<Vec<Tensor>> {
    Ok(vec![Tensor::of(shape)])
}

/// Returns the diagnostic of an axis that is out of range.
fn no_axis(axis: i64, shape: &Shape) -> Box<Mismatch> {
    Mismatch::new(format!("axis {axis}"), format!("an axis of shape {shape}"))
}

/// `Reshape`.
pub(super) fn reshape(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let wanted = node.ranked(1, 1)?;
    let Some(sizes) = node.input(1).vector() else {
        return match wanted.dimension(0) {
            UNKNOWN => one(Shape::unknown()),
            rank => one(Shape::of_rank(usize::try_from(rank).unwrap_or(usize::MAX))),
        };
    };
    let invalid =
        || Mismatch::new(format!("a shape of {sizes:?}"), "sizes of 0 or more, and one -1");
    if sizes.iter().any(|size| *size < UNKNOWN) {
        return Err(invalid());
    }
    let open = sizes.iter().filter(|size| **size == UNKNOWN).count();
    let mut known = sizes.iter().filter(|size| **size != UNKNOWN);
    let known = known.try_fold(1_i64, |count, size| count.checked_mul(*size));
    let (Some(elements), Some(known)) = (node.shape(0).elements(), known) else {
        return one(Shape::of(sizes));
    };
    let mismatch = || {
        let found = format!("{elements} elements of shape {}", node.shape(0));
        Mismatch::new(found, format!("as many as shape {} has", Shape::of(sizes)))
    };
    match open {
        0 if known != elements => Err(mismatch()),
        1 if known == 0 => one(Shape::of(sizes)),
        1 if elements % known != 0 => Err(mismatch()),
        1 => {
            let size = |size: &i64| if *size == UNKNOWN { elements / known } else { *size };
            one(Shape::of(&sizes.iter().map(size).collect::<Vec<_>>()))
        }
        _ => one(Shape::of(sizes)),
    }
}

/// `ConcatV2`: tensors, then the axis.
pub(super) fn concat_behind(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let Some(axis) = node.inputs.len().checked_sub(1) else { return one(Shape::unknown()) };
    concat(node, axis, 0..axis)
}

/// `Concat`: the axis, then tensors.
pub(super) fn concat_before(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    concat(node, 0, 1..node.inputs.len())
}

fn concat(
    node: &ShapedNode<'_>,
    axis: usize,
    values: std::ops::Range<usize>,
) -> Inferred<Vec<Tensor>> {
    node.ranked(axis, 0)?;
    let mut known = None;
    for value in values.clone() {
        node.ranked_at_least(value, 1)?;
        let Some(rank) = node.shape(value).rank() else { continue };
        if *known.get_or_insert(rank) != rank {
            let found = format!("input {value} of shape {}", node.shape(value));
            return Err(Mismatch::new(found, "tensors of one rank"));
        }
    }
    let (Some(rank), Some(axis)) = (known, node.input(axis).number()) else {
        return one(known.map_or(Shape::unknown(), Shape::of_rank));
    };
    let at = place(axis, rank).ok_or_else(|| no_axis(axis, &Shape::of_rank(rank)))?;
    let mut together = Shape::unknown();
    let mut sum = 0_i64;
    for value in values {
        let shape = node.shape(value);
        let size = shape.dimension(at as i64);
        sum = match (sum, size) {
            (UNKNOWN, _) | (_, UNKNOWN) => UNKNOWN,
            (sum, size) => sum.checked_add(size).unwrap_or(UNKNOWN),
        };
        together = together.merge(&shape.with_dimension(at, UNKNOWN))?;
    }
    one(together.with_dimension(at, sum))
}

/// `Pack`: tensors of one shape side by side.
pub(super) fn pack(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let mut together = Shape::unknown();
    for input in node.inputs {
        together = together.merge(&input.shape)?;
    }
    // The axis is read only if there are dimensions to compare.
    let Some(dimensions) = together.dimensions() else { return one(Shape::unknown()) };
    let Some(axis) = node.int("axis")? else { return one(Shape::unknown()) };
    let at = place(axis, dimensions.len() + 1)
        .ok_or_else(|| no_axis(axis, &Shape::of_rank(dimensions.len() + 1)))?;
    let mut packed = dimensions.to_vec();
    packed.insert(at, node.inputs.len() as i64);
    let values: Option<Vec<i64>> = node.inputs.iter().map(Tensor::number).collect();
    let mut tensor = Tensor::of(Shape::of(&packed));
    tensor.value = values.filter(|_| packed.len() == 1).map(Into::into);
    Ok(vec![tensor])
}

/// `Unpack`: the parts of a tensor along an axis.
pub(super) fn unpack(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let Some(parts) = node.int("num")? else { return Ok(nothing(0)) };
    let outputs = usize::try_from(parts).unwrap_or_default().min(MOST_OUTPUTS);
    let shape = node.ranked_at_least(0, 1)?;
    let Some(dimensions) = shape.dimensions() else { return Ok(nothing(outputs)) };
    let Some(axis) = node.int("axis")? else { return Ok(nothing(outputs)) };
    let at = place(axis, dimensions.len()).ok_or_else(|| no_axis(axis, shape))?;
    merge_dimensions(shape.dimension(at as i64), parts, "number of parts")?;
    let mut rest = dimensions.to_vec();
    rest.remove(at);
    Ok(vec![Tensor::of(Shape::of(&rest)); outputs])
}

/// `Split`: equal parts along an axis.
pub(super) fn split(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let Some(parts) = node.int("num_split")?.filter(|parts| *parts > 0) else {
        return Ok(nothing(0));
    };
    let outputs = usize::try_from(parts).unwrap_or_default().min(MOST_OUTPUTS);
    // Its rank is checked only if it is a constant.
    if node.input(0).value.is_some() {
        node.ranked(0, 0)?;
    }
    let shape = node.shape(1);
    let (Some(rank), Some(axis)) = (shape.rank(), node.input(0).number()) else {
        return Ok(nothing(outputs));
    };
    let at = place(axis, rank).ok_or_else(|| no_axis(axis, shape))?;
    let size = shape.dimension(at as i64);
    if size != UNKNOWN && size % parts != 0 {
        let found = format!("{parts} parts of a dimension of {size}");
        return Err(Mismatch::new(found, "parts of one size"));
    }
    let size = if size == UNKNOWN { UNKNOWN } else { size / parts };
    Ok(vec![Tensor::of(shape.with_dimension(at, size)); outputs])
}

/// `Squeeze`: dimensions of 1 are left out, all or those that are listed.
pub(super) fn squeeze(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let shape = node.shape(0);
    let Some(dimensions) = shape.dimensions() else { return one(Shape::unknown()) };
    let Some(listed) = node.ints("squeeze_dims")? else { return one(Shape::unknown()) };
    let mut is_listed = vec![false; dimensions.len()];
    for axis in &listed {
        let at = place(*axis, dimensions.len()).ok_or_else(|| no_axis(*axis, shape))?;
        if let Some(flag) = is_listed.get_mut(at) {
            *flag = true;
        }
    }
    let mut left = Vec::new();
    for (size, is_listed) in dimensions.iter().zip(is_listed) {
        match (listed.is_empty(), is_listed, *size) {
            (true, _, UNKNOWN) => return one(Shape::unknown()),
            (true, _, 1) | (false, true, 1 | UNKNOWN) => {}
            (false, true, size) => {
                return Err(Mismatch::new(format!("a dimension of {size}"), "a dimension of 1"));
            }
            (_, _, size) => left.push(size),
        }
    }
    one(Shape::of(&left))
}

/// `ExpandDims`: adds a dimension of 1.
pub(super) fn expand_dims(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let (shape, axis) = (node.shape(0), node.input(1));
    let number = match axis.value.as_deref() {
        Some([number]) => Some(*number),
        Some(numbers) => {
            let found = format!("an axis of {} numbers", numbers.len());
            return Err(Mismatch::new(found, "one number"));
        }
        None => None,
    };
    let (Some(dimensions), Some(number)) = (shape.dimensions(), number) else {
        return one(Shape::unknown());
    };
    let rank = dimensions.len() + 1;
    let at = place(number, rank).ok_or_else(|| no_axis(number, &Shape::of_rank(rank)))?;
    let mut more = dimensions.to_vec();
    more.insert(at, 1);
    one(Shape::of(&more))
}

/// `Transpose`: an axis for each dimension.
pub(super) fn transpose(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let shape = node.shape(0);
    let Some(dimensions) = shape.dimensions() else {
        // With two or more numbers the rank is known, and only then are the axes checked.
        if node.shape(1).elements().is_some_and(|elements| elements > 1) {
            node.ranked(1, 1)?;
        }
        return one(Shape::unknown());
    };
    let axes = node.ranked(1, 1)?.dimension(0);
    merge_dimensions(dimensions.len() as i64, axes, "number of dimensions")?;
    let Some(order) = node.input(1).vector() else { return one(Shape::of_rank(dimensions.len())) };
    let mut turned = Vec::with_capacity(order.len());
    for axis in order {
        let at = place(*axis, dimensions.len()).ok_or_else(|| no_axis(*axis, shape))?;
        turned.push(dimensions.get(at).copied().unwrap_or(UNKNOWN));
    }
    one(Shape::of(&turned))
}

/// `Tile`: a tensor, repeated along each dimension; a vector has the numbers.
pub(super) fn tile(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let counts = node.ranked(1, 1)?;
    let shape = node.shape(0);
    let rank = match (shape.rank(), counts.dimension(0)) {
        (Some(rank), UNKNOWN) => rank,
        (None, UNKNOWN) => return one(Shape::unknown()),
        (None, rank) => return one(Shape::of_rank(usize::try_from(rank).unwrap_or(usize::MAX))),
        (Some(rank), count) if count == rank as i64 => rank,
        (Some(_), count) => {
            let found = format!("input 1 of {count} elements");
            return Err(Mismatch::new(found, format!("one for each dimension of {shape}")));
        }
    };
    let times = |at: usize| node.input(1).vector().and_then(|v| v.get(at).copied());
    if let Some(times) = node.input(1).vector().and_then(|v| v.iter().find(|t| **t < UNKNOWN)) {
        return Err(Mismatch::new(format!("{times} times"), "a number of 0 or more"));
    }
    let size = |at: usize| match (shape.dimension(at as i64), times(at)) {
        (UNKNOWN, _) | (_, None) => UNKNOWN,
        (size, Some(times)) => size.checked_mul(times).filter(|size| *size >= 0).unwrap_or(UNKNOWN),
    };
    one(Shape::of(&(0..rank).map(size).collect::<Vec<_>>()))
}

/// `Pad` and similar operations: a matrix with two numbers per dimension.
pub(super) fn pad(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let paddings = node.ranked(1, 2)?;
    merge_dimensions(paddings.dimension(1), 2, "number of paddings a dimension")?;
    let shape = node.shape(0);
    let rows = paddings.dimension(0);
    let Some(rank) = shape.rank() else {
        return match usize::try_from(rows) {
            Ok(rank) => one(Shape::of_rank(rank)),
            Err(_) => one(Shape::unknown()),
        };
    };
    merge_dimensions(rank as i64, rows, "number of dimensions")?;
    one(Shape::of_rank(rank))
}

/// `GatherV2`: parts of the first tensor along an axis, by the numbers of the second.
pub(super) fn gather(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let (params, indices) = (node.ranked_at_least(0, 1)?, node.shape(1));
    node.ranked(2, 0)?;
    let Some(axis) = node.input(2).number() else { return one(Shape::unknown()) };
    let Some(batch) = node.int("batch_dims")? else { return one(Shape::unknown()) };
    let Some(rank) = params.rank() else { return one(Shape::unknown()) };
    let at = place(axis, rank).ok_or_else(|| no_axis(axis, params))?;
    if batch != 0 {
        return one(Shape::unknown());
    }
    let (before, behind) = (params.part(0, Some(at as i64)), params.part(at as i64 + 1, None));
    one(before.join(indices).join(&behind))
}

/// `Gather`, along the first axis.
pub(super) fn gather_first(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let params = node.ranked_at_least(0, 1)?;
    one(node.shape(1).join(&params.part(1, None)))
}

/// `Shape`: a vector whose length is the rank of the tensor.
pub(super) fn shape_of(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let shape = node.shape(0);
    let rank = shape.rank().map_or(UNKNOWN, |rank| rank as i64);
    Ok(vec![Tensor::of(Shape::of(&[rank]))])
}

/// `Fill`: the first input is the shape.
pub(super) fn fill(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let dims = node.ranked(0, 1)?;
    node.ranked(1, 0)?;
    if let Some(sizes) = node.input(0).vector() {
        return one(Shape::of(sizes));
    }
    one(match usize::try_from(dims.dimension(0)) {
        Ok(rank) => Shape::of_rank(rank),
        Err(_) => Shape::unknown(),
    })
}

/// `Slice`: a tensor, the start and the size of the slice.
pub(super) fn slice(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    let (begin, size) = (node.ranked(1, 1)?, node.ranked(2, 1)?);
    let count = merge_dimensions(begin.dimension(0), size.dimension(0), "number of dimensions")?;
    let rank = match (node.shape(0).rank(), usize::try_from(count)) {
        (Some(rank), Ok(count)) if rank != count => {
            let found = format!("a slice of {count} dimensions");
            let expected = format!("one for each dimension of {}", node.shape(0));
            return Err(Mismatch::new(found, expected));
        }
        (Some(rank), _) => rank,
        (None, Ok(count)) => count,
        (None, Err(_)) => return one(Shape::unknown()),
    };
    let (Some(begins), Some(sizes)) = (node.input(1).vector(), node.input(2).vector()) else {
        return one(Shape::of_rank(rank));
    };
    let size = |(at, (begin, size)): (usize, (&i64, &i64))| match (
        *size,
        node.shape(0).dimension(at as i64),
    ) {
        (-1, UNKNOWN) => UNKNOWN,
        (-1, whole) => whole.checked_sub(*begin).filter(|size| *size >= 0).unwrap_or(UNKNOWN),
        (size, _) => size.max(UNKNOWN),
    };
    one(Shape::of(&begins.iter().zip(sizes).enumerate().map(size).collect::<Vec<_>>()))
}
