//! Operations that move elements and compute nothing.

use crate::{
    array::{Array, Data, Type, places},
    number,
};

/// Returns the elements, transposed to an order of the dimensions.
pub fn ordered(array: &Array, order: &[usize]) -> Data {
    let strides = array.of.strides();
    let sizes: Vec<usize> = order.iter().map(|at| array.of.dimensions[*at]).collect();
    let strides: Vec<usize> = order.iter().map(|at| strides[*at]).collect();
    array.data.take(&places(0, &sizes, &strides))
}

pub fn view(array: &Array, first: usize, strides: &[usize], of: &Type) -> Data {
    array.data.take(&places(first, &of.dimensions, strides))
}

pub fn broadcast(array: &Array, dimensions: &[usize], of: &Type) -> Data {
    let mut strides = vec![0; of.rank()];
    for ((at, size), stride) in dimensions.iter().zip(&array.of.dimensions).zip(array.of.strides())
    {
        strides[*at] = if *size == 1 { 0 } else { stride };
    }
    view(array, 0, &strides, of)
}

pub fn iota(of: &Type, dimension: usize) -> Data {
    let mut strides = vec![0; of.rank()];
    strides[dimension] = 1;
    let places = places(0, &of.dimensions, &strides);
    if number::is_float(of.element) {
        return Data::Float(
            places.iter().map(|at| number::round(of.element, *at as f64)).collect(),
        );
    }
    Data::Integer(places.iter().map(|at| number::wrap(of.element, *at as i64)).collect())
}

/// Returns the place of the first element of a part, whose indices are clamped so that the part
/// lies inside the whole.
fn begin(whole: &Type, part: &Type, starts: &[Array]) -> usize {
    let sizes = whole.dimensions.iter().zip(&part.dimensions);
    let starts = starts.iter().zip(sizes).map(|(start, (whole, part))| {
        let start = usize::try_from(start.scalar().unwrap_or(0)).unwrap_or(0);
        start.min(whole - part)
    });
    starts.zip(whole.strides()).map(|(start, stride)| start * stride).sum()
}

pub fn dynamic_slice(array: &Array, starts: &[Array], of: &Type) -> Data {
    view(array, begin(&array.of, of, starts), &array.of.strides(), of)
}

pub fn dynamic_update_slice(array: &Array, update: &Array, starts: &[Array]) -> Data {
    let first = begin(&array.of, &update.of, starts);
    let mut data = Data::clone(&array.data);
    data.put(&places(first, &update.of.dimensions, &array.of.strides()), &update.data);
    data
}

pub fn pad(array: &Array, value: &Array, low: &[usize], interior: &[usize], of: &Type) -> Data {
    let mut data = value.data.take(&vec![0; of.elements()]);
    let strides = of.strides();
    let first = low.iter().zip(&strides).map(|(low, stride)| low * stride).sum();
    let steps = interior.iter().zip(&strides).map(|(between, stride)| (between + 1) * stride);
    let steps: Vec<usize> = steps.collect();
    data.put(&places(first, &array.of.dimensions, &steps), &array.data);
    data
}

pub fn concatenate(parts: &[Array], dimension: usize, of: &Type) -> Data {
    let strides = of.strides();
    let mut data = match number::is_float(of.element) {
        true => Data::Float(vec![0.0; of.elements()]),
        false => Data::Integer(vec![0; of.elements()]),
    };
    let mut at = 0;
    for part in parts {
        let targets = places(at * strides[dimension], &part.of.dimensions, &strides);
        data.put(&targets, &part.data);
        at += part.of.dimensions[dimension];
    }
    data
}
