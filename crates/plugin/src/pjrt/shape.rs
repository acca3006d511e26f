//! The shape of an array, and its size in memory.

use std::fmt;

use serdes_abi::pjrt::ElementType;

use crate::{Result, Status};

/// The maximum number of dimensions of an array, far above that of any framework.
const MOST_DIMENSIONS: usize = 256;

/// The element type of an array, and its number of elements in each dimension.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    element_type: ElementType,
    dimensions: Vec<i64>,
    elements: usize,
}

impl Shape {
    /// Creates a shape with this type and these dimensions; none for a single element.
    ///
    /// # Errors
    /// `INVALID_ARGUMENT` if a dimension is negative, there are too many, or the array would be
    /// larger than an address space.
    pub fn new(element_type: ElementType, dimensions: Vec<i64>) -> Result<Self> {
        let refuse = |why: &str| {
            Err(Status::invalid_argument(format!(
                "an array of {element_type}{dimensions:?}: {why}"
            )))
        };
        if dimensions.len() > MOST_DIMENSIONS {
            let found = dimensions.len();
            return Err(Status::invalid_argument(format!(
                "an array of {found} dimensions; {MOST_DIMENSIONS} is the most"
            )));
        }
        let mut elements = 1_usize;
        let mut bytes = element_type.host_bytes();
        for &dimension in &dimensions {
            let Ok(dimension) = usize::try_from(dimension) else {
                return refuse("a dimension is negative");
            };
            // A dimension without elements must not hide that the others are too large: strides are
            // computed from them.
            let (Some(product), Some(size)) =
                (elements.checked_mul(dimension), bytes.checked_mul(dimension.max(1)))
            else {
                return refuse("more bytes than an address space has");
            };
            (elements, bytes) = (product, size);
        }
        if isize::try_from(bytes).is_err() {
            return refuse("more bytes than an address space has");
        }
        Ok(Self { element_type, dimensions, elements })
    }

    /// Returns the type of the elements.
    #[must_use]
    pub fn element_type(&self) -> ElementType {
        self.element_type
    }

    /// Returns the number of elements in each dimension, none of them negative.
    #[must_use]
    pub fn dimensions(&self) -> &[i64] {
        &self.dimensions
    }

    /// Returns the number of elements.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.elements
    }

    /// Returns the number of bytes of the contiguous elements in host memory.
    #[must_use]
    pub fn host_bytes(&self) -> usize {
        self.elements * self.element_type.host_bytes()
    }

    /// Returns the number of bytes of the contiguous elements in device memory.
    #[must_use]
    pub fn device_bytes(&self) -> usize {
        match self.element_type.device_bits() {
            bits @ (1 | 2 | 4) => self.elements.div_ceil(8 / bits),
            _ => self.host_bytes(),
        }
    }

    /// Returns the order of the dimensions in memory, the fastest first, which is the last one.
    #[must_use]
    pub fn minor_to_major(&self) -> Vec<i64> {
        (0_i64..).take(self.dimensions.len()).collect::<Vec<_>>().into_iter().rev().collect()
    }
}

impl fmt::Display for Shape {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{:?}", self.element_type, self.dimensions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_types_take_whole_bytes_on_a_device() {
        let shape = Shape::new(ElementType::S4, vec![3, 5]).unwrap();
        assert_eq!((shape.elements(), shape.host_bytes(), shape.device_bytes()), (15, 15, 8));
        let shape = Shape::new(ElementType::U1, vec![9]).unwrap();
        assert_eq!(shape.device_bytes(), 2);
        let shape = Shape::new(ElementType::C128, vec![]).unwrap();
        assert_eq!((shape.host_bytes(), shape.device_bytes()), (16, 16));
        assert!(shape.minor_to_major().is_empty());
    }

    #[test]
    fn impossible_shapes_are_refused_also_with_a_zero_dimension() {
        for dimensions in [vec![-1], vec![i64::MAX, 2], vec![0, i64::MAX, 2], vec![1; 257]] {
            assert!(Shape::new(ElementType::F32, dimensions).is_err());
        }
        let empty = Shape::new(ElementType::F32, vec![3, 0]).unwrap();
        assert_eq!((empty.elements(), empty.device_bytes()), (0, 0));
        assert_eq!(empty.minor_to_major(), [1, 0]);
    }
}
