//! Dense layouts: only the order of the dimensions.

use std::fmt;

use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, Registered,
        fields::Fields,
        wire_format::{Encoded, WireFormat, described_by_bytes},
    },
    ifrt::{
        DType, IfrtError, Shape, list_notation::write_list, permutation::check_permutation, xla,
    },
    proto::xla::ifrt,
    version::SerDesVersion,
    wire::BackwardWriter,
};

/// A dense layout without padding: the dimensions from the slowest to the fastest
/// (`xla::ifrt::CompactLayout`).
///
/// Invariant: the dimensions are a permutation of 0 to n - 1.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "Vec<i32>", into = "Vec<i32>"))]
pub struct CompactLayout {
    major_to_minor: Vec<i32>,
}

const FORMATS: Formats = Formats::of("CompactLayout");

impl CompactLayout {
    /// Creates the layout with these dimensions, from the slowest to the fastest.
    ///
    /// # Errors
    /// [`IfrtError::Invalid`], naming the list and its length, if they are not a permutation of 0
    /// to n - 1.
    pub fn new(major_to_minor: impl Into<Vec<i32>>) -> Result<Self, IfrtError> {
        let major_to_minor = major_to_minor.into();
        check_permutation("major_to_minor", &major_to_minor)?;
        Ok(Self { major_to_minor })
    }

    /// Returns the row-major layout of `rank` dimensions: the last dimension is the fastest.
    pub fn c_order(rank: u16) -> Self {
        Self { major_to_minor: (0..i32::from(rank)).collect() }
    }

    /// Returns the dimensions from the slowest to the fastest.
    pub fn major_to_minor(&self) -> &[i32] {
        &self.major_to_minor
    }

    /// Returns the size in bytes of an array of `shape` in this layout, with its elements packed
    /// bit by bit; `None` for element types without a fixed size.
    ///
    /// # Errors
    /// [`IfrtError::RankMismatch`] if the array has another rank than the layout,
    /// [`IfrtError::Overflow`].
    pub fn byte_size(&self, dtype: DType, shape: &Shape) -> Result<Option<i64>, IfrtError> {
        if shape.rank() != self.major_to_minor.len() {
            return Err(IfrtError::RankMismatch {
                what: "the shape",
                found: shape.rank(),
                other: "layout",
                expected: self.major_to_minor.len(),
            });
        }
        let Some(bits) = dtype.bits() else { return Ok(None) };
        let bits = i128::from(shape.element_count()?) * i128::from(bits);
        let bytes = (bits + 7) / 8;
        let overflow = IfrtError::Overflow { what: "the size of the array", bits: 63 };
        i64::try_from(bytes).map(Some).map_err(|_| overflow)
    }

    /// Returns the layout of XLA with the same order of dimensions, without tiles.
    pub fn to_xla_layout(&self) -> xla::Layout {
        let minor_to_major =
            self.major_to_minor.iter().rev().map(|dimension| i64::from(*dimension));
        // Our invariant makes this a permutation, so the default is never used.
        xla::Layout::new(minor_to_major.collect::<Vec<_>>()).unwrap_or_default()
    }
}

impl Registered for CompactLayout {
    const TYPE_NAME: &'static str = "xla::ifrt::CompactLayout";
}

described_by_bytes! {
    /// Writes format 0 at every version.
    ToProto,
    /// Accepts format 0. A list that is not a permutation is an error.
    FromProto for CompactLayout as ifrt::CompactLayoutProto
}

impl WireFormat for CompactLayout {
    const NAME: &'static str = "CompactLayout";

    fn can_write(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        FORMATS.for_request(version).map(drop)
    }

    fn write(&self, version: SerDesVersion, out: &mut BackwardWriter) -> Result<(), EncodeError> {
        out.number(2, FORMATS.for_request(version)?);
        out.packed(1, &self.major_to_minor);
        Ok(())
    }

    fn read(message: Encoded<'_>, _: &DeserializeOptions) -> Result<Self, DecodeError> {
        let (mut major_to_minor, mut recorded) = (Vec::new(), 0);
        let mut fields = Fields::new(Self::NAME, message.bytes());
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => value.many(&mut major_to_minor)?,
                2 => recorded = value.number()?,
                _ => {}
            }
        }
        FORMATS.check_recorded(recorded)?;
        Self::new(major_to_minor).map_err(|error| error.decoding(Self::NAME))
    }
}

impl TryFrom<Vec<i32>> for CompactLayout {
    type Error = IfrtError;

    fn try_from(major_to_minor: Vec<i32>) -> Result<Self, Self::Error> {
        Self::new(major_to_minor)
    }
}

impl From<CompactLayout> for Vec<i32> {
    fn from(layout: CompactLayout) -> Self {
        layout.major_to_minor
    }
}

/// Formats the order from the slowest dimension, as in `[0,1]`.
impl fmt::Display for CompactLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_list(f, &self.major_to_minor)
    }
}
