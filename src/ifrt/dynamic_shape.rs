//! Shapes in which some dimensions vary up to a bound.

use std::{fmt, str::FromStr};

use super::{
    IfrtError, Shape,
    list_notation::{not_in_notation, parse_list, write_list},
};
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats,
        fields::{Fields, Joined},
        serde_forms::deserialize_checked,
        wire_format::{Encoded, WireFormat, described_by_bytes},
    },
    proto::xla::ifrt::{BoundedDynamicShapeTagProto, DynamicShapeProto},
    version::SerDesVersion,
    wire::BackwardWriter,
};

const TAG_FORMATS: Formats = Formats::of("BoundedDynamicShapeTag");
const FORMATS: Formats = Formats::of("DynamicShape");

/// The dimensions of a [`DynamicShape`] that vary; the size of such a dimension is its bound.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "Vec<bool>", into = "Vec<bool>"))]
pub struct BoundedDynamicShapeTag {
    dynamic: Box<[bool]>,
}

impl BoundedDynamicShapeTag {
    /// Creates the tag with one flag per dimension.
    ///
    /// # Errors
    /// [`IfrtError::Invalid`] if no dimension is dynamic: such a shape is a [`Shape`].
    pub fn new(dynamic: impl Into<Vec<bool>>) -> Result<Self, IfrtError> {
        let tag = Self { dynamic: dynamic.into().into_boxed_slice() };
        tag.require_one()?;
        Ok(tag)
    }

    fn require_one(&self) -> Result<(), IfrtError> {
        if self.dynamic.contains(&true) {
            return Ok(());
        }
        Err(IfrtError::Invalid(format!(
            "none of {} dimensions is dynamic; expected at least one, a static shape needs no tag",
            self.dynamic.len()
        )))
    }

    /// Returns one flag per dimension.
    pub fn dynamic_dims(&self) -> &[bool] {
        &self.dynamic
    }
}

impl TryFrom<Vec<bool>> for BoundedDynamicShapeTag {
    type Error = IfrtError;

    fn try_from(dynamic: Vec<bool>) -> Result<Self, Self::Error> {
        Self::new(dynamic)
    }
}

impl From<BoundedDynamicShapeTag> for Vec<bool> {
    fn from(tag: BoundedDynamicShapeTag) -> Self {
        tag.dynamic.into_vec()
    }
}

described_by_bytes! {
    /// Writes format 0 at every version.
    ToProto,
    /// Accepts format 0. A tag without a dynamic dimension is refused in strict mode only.
    FromProto for BoundedDynamicShapeTag as BoundedDynamicShapeTagProto
}

impl WireFormat for BoundedDynamicShapeTag {
    const NAME: &'static str = "BoundedDynamicShapeTag";

    fn can_write(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        TAG_FORMATS.for_request(version).map(drop)
    }

    fn write(&self, version: SerDesVersion, out: &mut BackwardWriter) -> Result<(), EncodeError> {
        out.number(2, TAG_FORMATS.for_request(version)?);
        out.packed_from_last(1, self.dynamic.iter().rev().map(|dynamic| i64::from(*dynamic)));
        Ok(())
    }

    fn read(message: Encoded<'_>, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        let (mut dynamic, mut recorded) = (Vec::new(), 0);
        let mut fields = Fields::new(Self::NAME, message.bytes());
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => value.few(|truth: i64| dynamic.push(truth != 0))?,
                2 => recorded = value.number()?,
                _ => {}
            }
        }
        TAG_FORMATS.check_recorded(recorded)?;
        let tag = Self { dynamic: dynamic.into() };
        if options.is_strict() {
            tag.require_one().map_err(|error| error.decoding(Self::NAME))?;
        }
        Ok(tag)
    }
}

/// A shape in which some dimensions vary up to a bound.
///
/// ```
/// use serdes::ifrt::{BoundedDynamicShapeTag, DynamicShape, Shape};
///
/// let tag = BoundedDynamicShapeTag::new([true, false])?;
/// let shape = DynamicShape::new(Shape::new([8, 128])?, tag)?;
/// assert_eq!(shape.to_string(), "[<=8,128]");
/// # Ok::<(), serdes::ifrt::IfrtError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct DynamicShape {
    shape: Shape,
    tag: BoundedDynamicShapeTag,
}

deserialize_checked!(DynamicShape { shape: Shape, tag: BoundedDynamicShapeTag });

impl DynamicShape {
    /// Creates the shape with the bounds `shape`, in which the dimensions in `tag` vary.
    ///
    /// # Errors
    /// [`IfrtError::RankMismatch`] if the tag does not have one flag per dimension.
    pub fn new(shape: Shape, tag: BoundedDynamicShapeTag) -> Result<Self, IfrtError> {
        if shape.rank() != tag.dynamic.len() {
            return Err(IfrtError::RankMismatch {
                what: "the tag",
                found: tag.dynamic.len(),
                other: "the shape",
                expected: shape.rank(),
            });
        }
        Ok(Self { shape, tag })
    }

    /// Returns the bounds.
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the tag with the dimensions that vary.
    pub const fn tag(&self) -> &BoundedDynamicShapeTag {
        &self.tag
    }

    /// Returns the static shape that is large enough for every value: all dimensions at their
    /// bounds.
    pub const fn padded_shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns true if the dimension at `index` varies; false past the last dimension.
    pub fn is_dynamic(&self, index: usize) -> bool {
        self.tag.dynamic.get(index).copied().unwrap_or(false)
    }
}

/// Formats as `[<=8,128]`.
impl fmt::Display for DynamicShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dims = self.shape.dims().iter().enumerate();
        write_list(
            f,
            dims.map(|(index, dimension)| {
                format!("{}{dimension}", if self.is_dynamic(index) { "<=" } else { "" })
            }),
        )
    }
}

/// A dimension and its flag, formatted as `<=8` if it varies, else as `128`.
struct Bound(i64, bool);

impl FromStr for Bound {
    type Err = std::num::ParseIntError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let bound = text.strip_prefix("<=");
        Ok(Self(bound.unwrap_or(text).trim_start().parse()?, bound.is_some()))
    }
}

impl FromStr for DynamicShape {
    type Err = IfrtError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let dims: Vec<Bound> = parse_list(text).map_err(|rest| {
            not_in_notation("DynamicShape", text, rest, "dimensions such as [<=8,128]")
        })?;
        let (bounds, dynamic): (Vec<_>, Vec<_>) =
            dims.into_iter().map(|Bound(bound, varies)| (bound, varies)).unzip();
        Self::new(Shape::new(bounds)?, BoundedDynamicShapeTag::new(dynamic)?)
    }
}

described_by_bytes! {
    /// Writes format 0 at every version.
    ToProto,
    /// Accepts format 0. A missing tag and a tag of another rank are errors.
    FromProto for DynamicShape as DynamicShapeProto
}

impl WireFormat for DynamicShape {
    const NAME: &'static str = "DynamicShape";

    fn can_write(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        self.shape.can_write(version)?;
        self.tag.can_write(version)?;
        FORMATS.for_request(version).map(drop)
    }

    fn write(&self, version: SerDesVersion, out: &mut BackwardWriter) -> Result<(), EncodeError> {
        out.number(3, FORMATS.for_request(version)?);
        out.message(2, |out| self.tag.write(version, out))?;
        out.message(1, |out| self.shape.write(version, out))
    }

    fn read(message: Encoded<'_>, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        let (mut shape, mut tag, mut recorded) = (Joined::default(), Joined::default(), 0);
        let mut fields = Fields::new(Self::NAME, message.bytes());
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => shape.add(value.bytes()?),
                2 => tag.add(value.bytes()?),
                3 => recorded = value.number()?,
                _ => {}
            }
        }
        FORMATS.check_recorded(recorded)?;
        let shape = Shape::read(message.part(shape.bytes()), options)?;
        let Some(tag) = tag.given() else {
            return Err(DecodeError::invalid_value(
                Self::NAME,
                "found no tag; expected a bounded_dynamic_shape_tag, the only kind of dynamic shape",
            ));
        };
        let tag = BoundedDynamicShapeTag::read(message.part(tag), options)?;
        Self::new(shape, tag).map_err(|error| error.decoding(Self::NAME))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        codec::{FromProto as _, StatusCode, Validation},
        proto::xla::ifrt::dynamic_shape_proto::Tag,
    };

    fn read(
        proto: &DynamicShapeProto,
        validation: Validation,
    ) -> Result<DynamicShape, DecodeError> {
        DynamicShape::from_proto(proto, &DeserializeOptions::new().with_validation(validation))
    }

    fn proto(dims: &[i64], dynamic: Option<&[bool]>) -> DynamicShapeProto {
        DynamicShapeProto {
            shape: Some(crate::proto::xla::ifrt::ShapeProto {
                dims: dims.to_vec(),
                version_number: 0,
            }),
            version_number: 0,
            tag: dynamic.map(|dynamic| {
                Tag::BoundedDynamicShapeTag(BoundedDynamicShapeTagProto {
                    is_dynamic_dims: dynamic.to_vec(),
                    version_number: 0,
                })
            }),
        }
    }

    #[test]
    fn missing_tag_or_one_of_another_rank_is_an_invalid_argument() {
        for wrong in [proto(&[2], None), proto(&[2], Some(&[true, false]))] {
            let error = read(&wrong, Validation::Parity).unwrap_err();
            assert_eq!(error.code(), StatusCode::InvalidArgument);
        }
        let error = read(&proto(&[2], Some(&[true, false])), Validation::Parity).unwrap_err();
        assert!(error.to_string().contains("rank 2; expected rank 1"), "{error}");
    }

    #[test]
    fn tag_without_a_dynamic_dimension_fails_only_in_strict_mode() {
        let all_static = proto(&[2], Some(&[false]));
        assert!(read(&all_static, Validation::Parity).is_ok());
        assert!(read(&all_static, Validation::Strict).is_err());
        assert!(BoundedDynamicShapeTag::new([false]).is_err());
        assert!(BoundedDynamicShapeTag::new([]).is_err());
    }

    #[test]
    fn a_wrong_recorded_version_is_seen_before_a_missing_tag() {
        let mut wrong = proto(&[2], None);
        wrong.version_number = 7;
        let error = read(&wrong, Validation::Parity).unwrap_err();
        assert_eq!(error.kind(), crate::codec::ErrorKind::TooNew);
    }

    #[test]
    fn the_text_form_makes_the_round_trip() {
        for text in ["[<=8,128]", "[<=0]", "[3,<=4,<=5]"] {
            let shape: DynamicShape = text.parse().unwrap();
            assert_eq!(shape.to_string(), text);
            assert_eq!(shape.padded_shape(), shape.shape());
        }
        for wrong in ["[8]", "[]", "[8<=]", "[<=<=8]", "[<=-1]", "<=8"] {
            assert!(wrong.parse::<DynamicShape>().is_err(), "{wrong}");
        }
    }
}
