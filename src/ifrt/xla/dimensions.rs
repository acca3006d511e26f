//! Properties of single dimensions in a layout of XLA: storage, tiles and splits.

use crate::codec::DecodeError;

/// The storage of one dimension (`xla.DimLevelType`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum DimLevelType {
    /// Every element is stored.
    #[default]
    Dense,
    /// Only some elements are stored; positions and indices locate them.
    Compressed,
    /// One stored element per parent.
    Singleton,
    /// Like compressed, with gaps between the segments.
    LooseCompressed,
}

impl DimLevelType {
    const ALL: [Self; 4] = [Self::Dense, Self::Compressed, Self::Singleton, Self::LooseCompressed];

    /// Returns the number on the wire.
    pub const fn number(self) -> i32 {
        self as i32
    }

    /// Returns the letter for this storage in the text of a layout.
    pub const fn letter(self) -> char {
        match self {
            Self::Dense => 'D',
            Self::Compressed => 'C',
            Self::Singleton => 'S',
            Self::LooseCompressed => 'H',
        }
    }

    pub(super) fn from_letter(letter: char) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.letter() == letter)
    }

    pub(super) fn from_number(number: i32) -> Result<Self, DecodeError> {
        Self::ALL.into_iter().find(|kind| kind.number() == number).ok_or_else(|| {
            DecodeError::invalid_value(
                "xla.Layout",
                format!("the dimension level type {number} is unknown; expected 0 to 3"),
            )
        })
    }
}

/// A tile of a layout (`xla.TileProto`), its sizes from the slowest to the fastest dimension, in
/// elements.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Tile(Vec<i64>);

impl Tile {
    /// A dimension that is merged with the next faster one before tiling; printed as `*`.
    pub const COMBINE_DIMENSION: i64 = i64::MIN;

    /// Creates a tile of these sizes.
    pub fn new(dimensions: impl Into<Vec<i64>>) -> Self {
        Self(dimensions.into())
    }

    /// Returns the sizes.
    pub fn dimensions(&self) -> &[i64] {
        &self.0
    }
}

/// The split of a dimension over memories (`xla.SplitConfigProto`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SplitConfig {
    dimension: i64,
    split_indices: Vec<i64>,
}

impl SplitConfig {
    /// Creates a split of `dimension` before each of `split_indices`.
    pub fn new(dimension: i64, split_indices: impl Into<Vec<i64>>) -> Self {
        Self { dimension, split_indices: split_indices.into() }
    }

    /// Returns the dimension.
    pub const fn dimension(&self) -> i64 {
        self.dimension
    }

    /// Returns the indices, in elements.
    pub fn split_indices(&self) -> &[i64] {
        &self.split_indices
    }
}
