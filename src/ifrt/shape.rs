//! Shapes: the sizes of the dimensions of an array.

use std::{fmt, str::FromStr};

use smallvec::SmallVec;

use super::{
    IfrtError,
    list_notation::{not_in_notation, parse_list, write_list},
};
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats,
        fields::Fields,
        wire_format::{Encoded, WireFormat, described_by_bytes},
    },
    proto::xla::ifrt::ShapeProto,
    version::SerDesVersion,
    wire::BackwardWriter,
};

const FORMATS: Formats = Formats::of("Shape");

/// The shape of an array: the number of elements in each dimension, the outermost first.
///
/// ```
/// use serdes::ifrt::Shape;
///
/// let shape = Shape::new([512, 128])?;
/// assert_eq!(shape.to_string(), "[512,128]");
/// assert_eq!(shape.element_count()?, 65536);
/// assert_eq!(Shape::scalar().element_count()?, 1);
/// # Ok::<(), serdes::ifrt::IfrtError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "Vec<i64>", into = "Vec<i64>"))]
pub struct Shape {
    dims: SmallVec<[i64; 4]>,
}

impl Shape {
    /// Creates the shape with these dimensions, each of 0 or more elements.
    ///
    /// # Errors
    /// [`IfrtError::NegativeDimension`].
    pub fn new(dims: impl AsRef<[i64]>) -> Result<Self, IfrtError> {
        let dims = dims.as_ref();
        match dims.iter().enumerate().find(|(_, dimension)| **dimension < 0) {
            Some((index, found)) => Err(IfrtError::NegativeDimension { index, found: *found }),
            None => Ok(Self { dims: SmallVec::from_slice(dims) }),
        }
    }

    /// Returns the shape of a single element, which has no dimensions.
    pub fn scalar() -> Self {
        Self::default()
    }

    /// Returns the dimensions, in elements.
    pub fn dims(&self) -> &[i64] {
        &self.dims
    }

    /// Returns the number of dimensions.
    pub fn rank(&self) -> usize {
        self.dims.len()
    }

    /// Returns the number of elements: the product of the dimensions, or 1 if there are none.
    ///
    /// # Errors
    /// [`IfrtError::Overflow`] if it does not fit an `i64`.
    pub fn element_count(&self) -> Result<i64, IfrtError> {
        if self.dims.contains(&0) {
            return Ok(0);
        }
        let product = self.dims.iter().try_fold(1_i64, |product, dim| product.checked_mul(*dim));
        product.ok_or(IfrtError::Overflow { what: "the number of elements", bits: 63 })
    }
}

impl AsRef<[i64]> for Shape {
    fn as_ref(&self) -> &[i64] {
        &self.dims
    }
}

impl TryFrom<Vec<i64>> for Shape {
    type Error = IfrtError;

    fn try_from(dims: Vec<i64>) -> Result<Self, Self::Error> {
        Self::new(dims)
    }
}

impl From<Shape> for Vec<i64> {
    fn from(shape: Shape) -> Self {
        shape.dims.into_vec()
    }
}

/// Formats as `[512,128]`, or as `[]` without dimensions.
impl fmt::Display for Shape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_list(f, &self.dims)
    }
}

impl FromStr for Shape {
    type Err = IfrtError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let dims: Vec<i64> = parse_list(text)
            .map_err(|rest| not_in_notation("Shape", text, rest, "dimensions such as [512,128]"))?;
        Self::new(dims)
    }
}

described_by_bytes! {
    /// Writes format 0 at every version.
    ToProto,
    /// Accepts format 0. A negative dimension is an error.
    FromProto for Shape as ShapeProto
}

impl WireFormat for Shape {
    const NAME: &'static str = "Shape";

    fn can_write(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        FORMATS.for_request(version).map(drop)
    }

    fn write(&self, version: SerDesVersion, out: &mut BackwardWriter) -> Result<(), EncodeError> {
        out.number(2, FORMATS.for_request(version)?);
        out.packed_from_last(1, self.dims.iter().rev().copied());
        Ok(())
    }

    fn read(message: Encoded<'_>, _: &DeserializeOptions) -> Result<Self, DecodeError> {
        let (mut dims, mut recorded) = (SmallVec::<[i64; 8]>::new(), 0);
        let mut fields = Fields::new(Self::NAME, message.bytes());
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => value.few(|size| dims.push(size))?,
                2 => recorded = value.number()?,
                _ => {}
            }
        }
        FORMATS.check_recorded(recorded)?;
        Self::new(dims).map_err(|error| error.decoding(Self::NAME))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::FromProto as _;

    #[test]
    fn arrays_vectors_and_slices_make_a_shape() {
        let shape = Shape::new([2, 3]).unwrap();
        assert_eq!(Shape::new(vec![2, 3]), Ok(shape.clone()));
        assert_eq!(Shape::new(&[2, 3][..]), Ok(shape.clone()));
        assert_eq!(Shape::new(&shape), Ok(shape));
        assert_eq!(Shape::new([0; 0]), Ok(Shape::scalar()));
    }

    #[test]
    fn a_negative_dimension_is_named() {
        let error = Shape::new([2, -3]).unwrap_err();
        assert_eq!(error.to_string(), "dimension 1 is -3; expected 0 or more elements");
        let proto = ShapeProto { dims: vec![-1], version_number: 0 };
        let error = Shape::from_proto(&proto, &DeserializeOptions::new()).unwrap_err();
        assert_eq!(error.code(), crate::codec::StatusCode::InvalidArgument);
        assert!(error.to_string().contains("dimension 0 is -1"), "{error}");
    }

    #[test]
    fn the_number_of_elements_never_overflows() {
        assert_eq!(Shape::new([2, 3]).unwrap().element_count(), Ok(6));
        assert_eq!(Shape::new([i64::MAX, 0, i64::MAX]).unwrap().element_count(), Ok(0));
        assert!(Shape::new([i64::MAX, 2]).unwrap().element_count().is_err());
    }

    #[test]
    fn the_text_form_makes_the_round_trip() {
        for text in ["[]", "[7]", "[2,0,9223372036854775807]"] {
            assert_eq!(text.parse::<Shape>().unwrap().to_string(), text);
        }
        for wrong in ["", "2,3", "[2,,3]", "[2,3", "[a]", "[-1]", "[9223372036854775808]"] {
            assert!(wrong.parse::<Shape>().is_err(), "{wrong}");
        }
    }
}
