//! Convolutions and pooling: windows that move over images.
//!
//! Depends on layouts, strides and padding.

use super::{
    node::ShapedNode,
    shape::{Inferred, Mismatch, Shape, UNKNOWN},
    tensor::Tensor,
};

/// The indices of the dimensions of an image.
struct Layout {
    channels: usize,
    /// The first of the dimensions along which the window moves.
    spatial: usize,
}

impl Layout {
    /// `None` for layouts that pack several channels into one element.
    ///
    /// The layout of a three-dimensional image is compared with one name; any other value means the
    /// other layout.
    fn of(format: &[u8], rank: usize) -> Option<Self> {
        match (format, rank) {
            (b"NCDHW", _) | (b"NCHW", ..5) => Some(Self { channels: 1, spatial: 2 }),
            (b"NHWC" | b"NDHWC", _) | (_, 5..) => Some(Self { channels: rank - 1, spatial: 1 }),
            _ => None,
        }
    }
}

/// The stride and dilation of a window along one dimension.
#[derive(Clone, Copy)]
struct Step {
    stride: i64,
    dilation: i64,
}

/// Returns the number of positions of a window along a dimension, which is 0 or more.
fn places(input: i64, window: i64, step: Step, padding: &[u8]) -> Inferred<i64> {
    let Step { stride, dilation } = step;
    if stride <= 0 {
        return Err(Mismatch::new(format!("a stride of {stride}"), "a stride of at least 1"));
    }
    if dilation < 1 {
        return Err(Mismatch::new(format!("a dilation of {dilation}"), "a dilation of at least 1"));
    }
    if input == UNKNOWN || window == UNKNOWN {
        return Ok(UNKNOWN);
    }
    // An i128 holds every sum and product of two sizes.
    let (input_size, stride) = (i128::from(input), i128::from(stride));
    let size = match padding {
        b"VALID" => {
            let covered = (i128::from(window) - 1) * i128::from(dilation) + 1;
            if covered > input_size {
                let found =
                    format!("a window of {window}, dilated by {dilation}, over {input} elements");
                return Err(Mismatch::new(found, "a window that is not larger than the image"));
            }
            (input_size - covered + stride) / stride
        }
        b"SAME" => (input_size + stride - 1) / stride,
        _ => return Ok(UNKNOWN),
    };
    Ok(i64::try_from(size).unwrap_or(UNKNOWN))
}

/// Returns a list of an attribute that has a number for each dimension.
fn per_dimension(node: &ShapedNode<'_>, name: &str, rank: usize) -> Inferred<Option<Vec<i64>>> {
    let Some(numbers) = node.ints(name)? else { return Ok(None) };
    if numbers.len() != rank {
        let found = format!("{name} of {} values", numbers.len());
        return Err(Mismatch::new(found, format!("{rank} values")));
    }
    Ok(Some(numbers))
}

/// `Conv2D`.
pub(super) fn convolution_2d(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    convolution(node, 4, false)
}

/// `Conv3D`.
pub(super) fn convolution_3d(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    convolution(node, 5, false)
}

/// `DepthwiseConv2dNative`.
pub(super) fn depthwise(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    convolution(node, 4, true)
}

/// Returns the layout of an image: channels last if the operation has no such attribute, or the
/// attribute is of another kind.
fn format<'n>(node: &ShapedNode<'n>) -> Option<&'n [u8]> {
    match node.operation.attribute("data_format") {
        Some(_) => node.text("data_format").unwrap_or(Some(b"NHWC")),
        None => Some(b"NHWC"),
    }
}

fn convolution(node: &ShapedNode<'_>, rank: usize, is_depthwise: bool) -> Inferred<Vec<Tensor>> {
    let (format, padding) = (format(node), node.text("padding")?);
    let layout = format.and_then(|format| Layout::of(format, rank));
    let (Some(layout), Some(padding)) = (layout, padding) else {
        return Ok(vec![Tensor::nothing()]);
    };
    let (input, filter) = (node.ranked(0, rank)?, node.ranked(1, rank)?);
    let dilations = match node.operation.attribute("dilations") {
        // Only this operation treats a value of another kind as missing.
        Some(_) if is_depthwise && node.ints("dilations").is_err() => Some(vec![1; rank]),
        Some(_) => per_dimension(node, "dilations", rank)?,
        None => Some(vec![1; rank]),
    };
    let strides = per_dimension(node, "strides", rank)?;
    let (Some(strides), Some(dilations)) = (strides, dilations) else {
        return Ok(vec![Tensor::nothing()]);
    };
    let depth = input.dimension(layout.channels as i64);
    let (expected, given) = (filter.dimension(-2), filter.dimension(-1));
    let given = if is_depthwise {
        super::shape::merge_dimensions(depth, expected, "number of channels")?;
        product(expected.max(depth), given)
    } else {
        grouped(depth, expected, given)?;
        given
    };
    let mut output = vec![UNKNOWN; rank];
    for place in 0..rank - 2 {
        let at = layout.spatial + place;
        let number = |list: &[i64], at: usize| list.get(at).copied().unwrap_or(1);
        // With three dimensions, TensorFlow swaps the dilations of the last two.
        let dilated = match (rank, place) {
            (5, 1) => at + 1,
            (5, 2) => at - 1,
            _ => at,
        };
        let step = Step { stride: number(&strides, at), dilation: number(&dilations, dilated) };
        let size =
            places(input.dimension(at as i64), filter.dimension(place as i64), step, padding)?;
        set(&mut output, at, size);
    }
    set(&mut output, 0, input.dimension(0));
    set(&mut output, layout.channels, given);
    Ok(vec![Tensor::of(Shape::of(&output))])
}

fn set(dimensions: &mut [i64], at: usize, size: i64) {
    if let Some(old) = dimensions.get_mut(at) {
        *old = size;
    }
}

fn product(one: i64, two: i64) -> i64 {
    if one == UNKNOWN || two == UNKNOWN { UNKNOWN } else { one.checked_mul(two).unwrap_or(UNKNOWN) }
}

/// Checks that the channels of an image are a multiple of the filter's input channels, and the
/// number of filters a multiple of the resulting groups.
fn grouped(depth: i64, expected: i64, given: i64) -> Inferred<()> {
    if depth == UNKNOWN || expected <= 0 {
        return Ok(());
    }
    if depth % expected != 0 {
        let found = format!("an image of {depth} channels");
        return Err(Mismatch::new(found, format!("a multiple of the filter's {expected}")));
    }
    let groups = depth / expected;
    if groups > 0 && given > 0 && given % groups != 0 {
        let found = format!("{given} filters");
        return Err(Mismatch::new(found, format!("a multiple of the {groups} groups")));
    }
    Ok(())
}

/// `AvgPool`, `MaxPool`.
pub(super) fn pool_2d(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    pool(node, 4)
}

/// `AvgPool3D`, `MaxPool3D`.
pub(super) fn pool_3d(node: &ShapedNode<'_>) -> Inferred<Vec<Tensor>> {
    pool(node, 5)
}

fn pool(node: &ShapedNode<'_>, rank: usize) -> Inferred<Vec<Tensor>> {
    let (format, padding) = (format(node), node.text("padding")?);
    let layout = format.and_then(|format| Layout::of(format, rank));
    let (Some(layout), Some(padding)) = (layout, padding) else {
        return Ok(vec![Tensor::nothing()]);
    };
    let input = node.ranked(0, rank)?;
    let strides = per_dimension(node, "strides", rank)?;
    let windows = per_dimension(node, "ksize", rank)?;
    let (Some(strides), Some(windows)) = (strides, windows) else {
        return Ok(vec![Tensor::nothing()]);
    };
    let mut output = input.dimensions().map_or_else(Vec::new, <[i64]>::to_vec);
    for at in layout.spatial..layout.spatial + rank - 2 {
        let number = |list: &[i64]| list.get(at).copied().unwrap_or(1);
        let step = Step { stride: number(&strides), dilation: 1 };
        let size = places(input.dimension(at as i64), number(&windows), step, padding)?;
        set(&mut output, at, size);
    }
    // A window over channels is left to TensorFlow.
    if windows.get(layout.channels) != Some(&1) || strides.get(layout.channels) != Some(&1) {
        set(&mut output, layout.channels, UNKNOWN);
    }
    Ok(vec![Tensor::of(Shape::of(&output))])
}
