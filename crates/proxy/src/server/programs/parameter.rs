//! Parameters of a program: the type and shape of each argument on a device.

use serdes::{
    codec::Status,
    ifrt::{DType, Shape, xla::PrimitiveType},
    proto::xla,
};

use crate::status::status;

/// A parameter of a program: its required type and shape on each device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Parameter {
    /// IFRT's name of the element type; `None` if the parameter is not an array.
    element: Option<String>,
    dims: Vec<i64>,
    /// Dimensions along which the argument may be smaller.
    dynamic: Vec<bool>,
}

impl Parameter {
    pub(super) fn of(shape: &xla::ShapeProto) -> Self {
        let element = PrimitiveType::from_number(shape.element_type).name();
        let element = element.map(str::to_ascii_uppercase);
        Self {
            // Tuples and tokens are not arrays.
            element: element
                .filter(|name| name.parse::<DType>().is_ok_and(|dtype| dtype.bits().is_some())),
            dims: shape.dimensions.clone(),
            dynamic: shape.is_dynamic_dimension.clone(),
        }
    }

    /// # Errors
    /// INVALID_ARGUMENT with the found and the expected value: plug-ins do not check, and would
    /// reinterpret the bytes.
    pub(super) fn check(&self, number: usize, dtype: DType, shard: &Shape) -> Result<(), Status> {
        let Some(element) = &self.element else { return Ok(()) };
        let is_fit = |(at, (expected, found)): (usize, (&i64, &i64))| {
            expected == found
                || (self.dynamic.get(at) == Some(&true) && (0..=*expected).contains(found))
        };
        let dims = shard.dims();
        if dtype.name() == element
            && self.dims.len() == dims.len()
            && self.dims.iter().zip(dims).enumerate().all(is_fit)
        {
            return Ok(());
        }
        Err(status!(
            InvalidArgument,
            "argument {number} of the program is {dtype}{shard} on a device; expected {element}{:?}",
            self.dims
        ))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serdes::codec::StatusCode;

    fn parameter(element_type: xla::PrimitiveType, dims: &[i64], dynamic: &[bool]) -> Parameter {
        Parameter::of(&xla::ShapeProto {
            element_type: element_type.into(),
            dimensions: dims.to_vec(),
            is_dynamic_dimension: dynamic.to_vec(),
            ..Default::default()
        })
    }

    #[test]
    fn parameter_takes_its_own_type_and_shape_alone() {
        let own = parameter(xla::PrimitiveType::F32, &[2, 3], &[]);
        let shape = |dims: &[i64]| Shape::new(dims).unwrap();
        own.check(0, DType::F32, &shape(&[2, 3])).unwrap();
        for (dtype, dims) in [
            (DType::S32, &[2, 3][..]),
            (DType::F32, &[3, 2]),
            (DType::F32, &[6]),
            (DType::F32, &[]),
            (DType::BF16, &[2, 3]),
        ] {
            let error = own.check(7, dtype, &shape(dims)).unwrap_err();
            assert_eq!(error.code(), StatusCode::InvalidArgument);
            let words = error.message();
            assert!(words.contains("argument 7") && words.contains("F32[2, 3]"), "{words}");
        }
    }

    #[test]
    fn parameter_with_a_dynamic_dimension_takes_less_of_it() {
        let own = parameter(xla::PrimitiveType::Bf16, &[4, 3], &[true, false]);
        let shape = |dims: &[i64]| Shape::new(dims).unwrap();
        for dims in [[4, 3], [0, 3]] {
            own.check(0, DType::BF16, &shape(&dims)).unwrap();
        }
        for dims in [[5, 3], [4, 2]] {
            own.check(0, DType::BF16, &shape(&dims)).unwrap_err();
        }
    }

    #[test]
    fn parameter_that_is_no_array_is_left_to_the_plugin() {
        let shape = Shape::new([2]).unwrap();
        for kind in [xla::PrimitiveType::Tuple, xla::PrimitiveType::Token] {
            parameter(kind, &[], &[]).check(0, DType::F32, &shape).unwrap();
        }
    }
}
