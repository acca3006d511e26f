//! Arrays: a type, and elements in row-major order (the last dimension changes fastest).

use std::sync::Arc;

use serdes_plugin::{
    Result, Status,
    pjrt::{ElementType, Shape},
};

use crate::number;

/// Most elements of an array.
const MOST_ELEMENTS: usize = 1 << 27;

/// Element type and dimensions of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Type {
    pub element: ElementType,
    pub dimensions: Vec<usize>,
    elements: usize,
}

impl Type {
    pub fn new(element: ElementType, dimensions: Vec<usize>) -> Result<Self> {
        // A dimension of size 0 must not hide that the others are too large.
        let sizes = dimensions.iter().map(|size| *size.max(&1));
        let most = sizes.fold(1, usize::saturating_mul);
        if most > MOST_ELEMENTS {
            return Err(Status::resource_exhausted(format!(
                "an array of {dimensions:?} elements; {MOST_ELEMENTS} are the most"
            )));
        }
        let elements = dimensions.iter().product();
        Ok(Self { element, dimensions, elements })
    }

    /// Returns the type with other dimensions.
    pub fn with_dimensions(&self, dimensions: Vec<usize>) -> Result<Self> {
        Self::new(self.element, dimensions)
    }

    pub fn elements(&self) -> usize {
        self.elements
    }

    pub fn rank(&self) -> usize {
        self.dimensions.len()
    }

    pub fn shape(&self) -> Result<Shape> {
        Shape::new(self.element, self.dimensions.iter().map(|size| *size as i64).collect())
    }

    /// Returns the distance between neighbours in each dimension, in elements.
    pub fn strides(&self) -> Vec<usize> {
        let mut strides = vec![1; self.rank()];
        for dimension in (1..self.rank()).rev() {
            strides[dimension - 1] = strides[dimension] * self.dimensions[dimension].max(1);
        }
        strides
    }
}

/// The elements of an array.
#[derive(Clone, Debug, PartialEq)]
pub enum Data {
    Float(Vec<f64>),
    Integer(Vec<i64>),
}

impl Data {
    /// Returns the elements at the given places, in the order of the places.
    pub fn take(&self, places: &[usize]) -> Self {
        match self {
            Self::Float(data) => Self::Float(places.iter().map(|place| data[*place]).collect()),
            Self::Integer(data) => Self::Integer(places.iter().map(|place| data[*place]).collect()),
        }
    }

    /// Writes the elements of `source` to the given places, in the order of the places.
    pub fn put(&mut self, places: &[usize], source: &Self) {
        match (self, source) {
            (Self::Float(data), Self::Float(source)) => {
                places.iter().zip(source).for_each(|(place, value)| data[*place] = *value);
            }
            (Self::Integer(data), Self::Integer(source)) => {
                places.iter().zip(source).for_each(|(place, value)| data[*place] = *value);
            }
            _ => {}
        }
    }

    /// Appends elements.
    pub fn extend(&mut self, more: &Self) {
        match (self, more) {
            (Self::Float(data), Self::Float(more)) => data.extend(more),
            (Self::Integer(data), Self::Integer(more)) => data.extend(more),
            _ => {}
        }
    }

    pub fn floats(&self) -> Vec<f64> {
        match self {
            Self::Float(data) => data.clone(),
            Self::Integer(data) => data.iter().map(|value| *value as f64).collect(),
        }
    }
}

/// An array; copies of it share the elements.
#[derive(Clone, Debug)]
pub struct Array {
    pub of: Type,
    pub data: Arc<Data>,
}

impl Array {
    pub fn new(of: Type, data: Data) -> Self {
        Self { of, data: Arc::new(data) }
    }

    /// Returns an array from its bytes on the device, or from one element that fills the array.
    pub fn read(of: &Type, bytes: &[u8]) -> Result<Self> {
        let size = of.element.bits() / 8;
        let is_splat = bytes.len() == size && of.elements() != 1;
        if !is_splat && bytes.len() != of.elements() * size {
            return Err(Status::invalid_argument(format!(
                "found {} bytes, expected {} of {:?}",
                bytes.len(),
                of.elements() * size,
                of.dimensions
            )));
        }
        let elements = || bytes.chunks_exact(size).cycle().take(of.elements());
        let data = if number::is_float(of.element) {
            Data::Float(elements().map(|bytes| number::float_from(of.element, bytes)).collect())
        } else {
            Data::Integer(elements().map(|bytes| number::integer_from(of.element, bytes)).collect())
        };
        Ok(Self::new(of.clone(), data))
    }

    /// Writes the elements in the layout of the device.
    pub fn write(&self, bytes: &mut [u8]) {
        let elements = bytes.chunks_exact_mut(self.of.element.bits() / 8);
        match &*self.data {
            Data::Float(data) => elements
                .zip(data)
                .for_each(|(bytes, value)| number::write_float(self.of.element, *value, bytes)),
            Data::Integer(data) => {
                elements.zip(data).for_each(|(bytes, value)| number::write_integer(*value, bytes));
            }
        }
    }

    /// Returns the only element of a scalar, if it is an integer.
    pub fn scalar(&self) -> Option<i64> {
        match &*self.data {
            Data::Integer(data) => data.first().copied(),
            Data::Float(_) => None,
        }
    }
}

/// Returns the places of the elements of an array, from its dimensions and the distance between
/// neighbours in each of them.
pub fn places(first: usize, dimensions: &[usize], strides: &[usize]) -> Vec<usize> {
    let mut places = vec![first];
    for (size, stride) in dimensions.iter().zip(strides) {
        places = places
            .iter()
            .flat_map(|place| (0..*size).map(move |index| place + index * stride))
            .collect();
    }
    places
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_follow_the_dimensions() {
        assert_eq!(places(1, &[2, 3], &[10, 2]), [1, 3, 5, 11, 13, 15]);
        assert_eq!(places(7, &[], &[]), [7]);
        assert!(places(0, &[2, 0], &[1, 1]).is_empty());
    }

    #[test]
    fn too_many_elements_are_refused() {
        assert!(Type::new(ElementType::F32, vec![1 << 20, 1 << 20]).is_err());
        assert!(Type::new(ElementType::F32, vec![usize::MAX, usize::MAX]).is_err());
        assert_eq!(Type::new(ElementType::F32, vec![2, 3]).unwrap().strides(), [3, 1]);
    }

    #[test]
    fn splat_element_fills_an_array() {
        let of = Type::new(ElementType::S16, vec![3]).unwrap();
        let array = Array::read(&of, &[0xff, 0xff]).unwrap();
        assert_eq!(*array.data, Data::Integer(vec![-1; 3]));
        let mut bytes = [0; 6];
        array.write(&mut bytes);
        assert_eq!(bytes, [0xff; 6]);
        assert!(Array::read(&of, &[0; 5]).is_err());
    }
}
