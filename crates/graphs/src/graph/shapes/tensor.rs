//! The facts inferred about one tensor before execution.
//!
//! Depends on shapes and values of small constants, but not on the way in which they are inferred.

use std::sync::Arc;

use super::shape::Shape;
use crate::graph::attributes::TensorValue;

/// Limit on the elements of a constant that are kept: enough for shapes, axes and permutations.
const MOST_ELEMENTS: i64 = 256;

const INT32: i32 = 3;
const INT64: i32 = 9;

/// The inferred facts of one output of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Tensor {
    pub(super) shape: Shape,
    /// The integers of a small constant, in row-major order.
    pub(super) value: Option<Arc<[i64]>>,
    /// The variable, if the tensor is a handle of one.
    pub(super) variable: Option<Arc<Variable>>,
}

/// The type and shape of a variable's value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Variable {
    pub(super) data_type: i32,
    pub(super) shape: Shape,
}

impl Tensor {
    pub(super) fn of(shape: Shape) -> Self {
        Self { shape, value: None, variable: None }
    }

    /// Creates a tensor with these dimensions, -1 for an unknown one.
    pub(in super::super) fn of_dimensions(dimensions: &[i64]) -> Self {
        Self::of(Shape::of(dimensions))
    }

    /// Creates an unknown tensor.
    pub(in super::super) const fn nothing() -> Self {
        Self { shape: Shape::unknown(), value: None, variable: None }
    }

    pub(super) fn scalar() -> Self {
        Self::of(Shape::scalar())
    }

    /// Returns the value, if it is a known scalar.
    pub(super) fn number(&self) -> Option<i64> {
        match (&self.value, self.shape.rank()) {
            (Some(value), Some(0)) => value.first().copied(),
            _ => None,
        }
    }

    /// Returns the values, if it is a known vector.
    pub(super) fn vector(&self) -> Option<&[i64]> {
        self.value.as_deref().filter(|_| self.shape.rank() == Some(1))
    }

    /// Creates a constant. Its value is known if TensorFlow can read it as well.
    pub(in super::super) fn constant(tensor: TensorValue<'_>) -> Self {
        if tensor.shape.is_unknown_rank || tensor.shape.rank != tensor.shape.dimensions.len() as u64
        {
            return Self::nothing();
        }
        let shape = Shape::of(tensor.shape.dimensions);
        let elements = shape.elements().filter(|count| (0..=MOST_ELEMENTS).contains(count));
        let value = elements.and_then(|count| integers(tensor, count as usize));
        Self { shape, value: value.map(Into::into), variable: None }
    }
}

/// Returns the integers of a tensor of `count` elements: from their bytes, or from a list of
/// numbers whose last one stands for all further elements; zeros if the list is empty.
///
/// TensorFlow reads only the field of the tensor's own type. A tensor with values in other fields
/// as well is undecided.
fn integers(tensor: TensorValue<'_>, count: usize) -> Option<Vec<i64>> {
    let content = tensor.content.bytes.unwrap_or_default();
    if tensor.content.length > content.len() as u64 {
        return None;
    }
    if content.is_empty() {
        let TensorValue { numbers, values, small_integers, .. } = tensor;
        let own = match tensor.data_type {
            INT32 => small_integers,
            INT64 => values.saturating_sub(small_integers),
            _ => return None,
        };
        let is_whole = own == values && numbers.len() as u64 == values;
        if !is_whole || numbers.len() > count {
            return None;
        }
        let mut integers = numbers.to_vec();
        integers.resize(count, numbers.last().copied().unwrap_or_default());
        return Some(integers);
    }
    let values: Vec<i64> = match tensor.data_type {
        INT32 => content.as_chunks::<4>().0.iter().map(|b| i32::from_le_bytes(*b).into()).collect(),
        INT64 => content.as_chunks::<8>().0.iter().map(|b| i64::from_le_bytes(*b)).collect(),
        _ => return None,
    };
    let size = if tensor.data_type == INT32 { 4 } else { 8 };
    (values.len() == count && content.len() == count * size).then_some(values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::{attributes::AttributeValue, tests::attributes_of};

    /// Returns the values of a vector of `count` elements that are encoded as `written`.
    fn values(data_type: &str, count: usize, written: &str) -> Option<Vec<i64>> {
        let shape = format!("tensor_shape {{ dim {{ size: {count} }} }}");
        let text = format!("tensor {{ dtype: {data_type} {shape} {written} }}");
        let attributes = attributes_of(&[("a", &text)]);
        let Some(AttributeValue::Tensor(tensor)) = attributes.get("a") else { panic!("{text}") };
        Tensor::constant(tensor).value.map(|values| values.to_vec())
    }

    #[test]
    fn integers_are_read_from_the_field_of_their_type_and_repeated_to_the_end() {
        assert_eq!(values("DT_INT32", 3, "int_val: 5 int_val: 6"), Some(vec![5, 6, 6]));
        assert_eq!(values("DT_INT64", 3, "int64_val: 5 int64_val: 6"), Some(vec![5, 6, 6]));
        assert_eq!(values("DT_INT32", 2, ""), Some(vec![0, 0]));
        assert_eq!(values("DT_INT64", 0, ""), Some(vec![]));
    }

    #[test]
    fn of_integers_in_the_field_of_another_type_nothing_is_said() {
        assert_eq!(values("DT_INT32", 2, "int64_val: 5 int64_val: 6"), None);
        assert_eq!(values("DT_INT64", 2, "int_val: 5 int_val: 6"), None);
        assert_eq!(values("DT_INT32", 2, "int_val: 5 int64_val: 6"), None);
        assert_eq!(values("DT_INT32", 2, "int_val: 5 float_val: 6"), None);
        assert_eq!(values("DT_INT32", 1, "int_val: 5 int_val: 6"), None, "more than it has");
        assert_eq!(values("DT_FLOAT", 2, "int_val: 5 int_val: 6"), None);
    }
}
