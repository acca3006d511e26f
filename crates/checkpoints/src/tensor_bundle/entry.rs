//! The description of a tensor in the index of a bundle.

use std::borrow::Cow;

use serdes_graph_format::data_type::{DataType, describe};

use super::{
    error::BundleError,
    messages::{RawEntry, ShapeError, element_count},
};
use crate::slice::TensorSlice;

/// The entry of a tensor. The values are those of the index, and are checked when the tensor is
/// read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TensorEntry {
    pub(crate) key: Box<[u8]>,
    pub(crate) raw: RawEntry,
}

impl TensorEntry {
    pub(crate) fn parse(key: &[u8], value: &[u8]) -> Result<Self, BundleError> {
        let raw = RawEntry::parse(value)
            .map_err(|source| BundleError::Entry { name: display(key), source })?;
        Ok(Self { key: key.into(), raw })
    }

    /// Returns the name; bytes that are not UTF-8 are replaced.
    #[must_use]
    pub fn name(&self) -> Cow<'_, str> {
        String::from_utf8_lossy(&self.key)
    }

    /// Returns the name in the bytes of the index.
    #[must_use]
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Returns the element type; `None` if TensorFlow 2.21 has no type with that number.
    #[must_use]
    pub fn data_type(&self) -> Option<DataType> {
        DataType::from_number(self.raw.dtype)
    }

    /// Returns the number of the element type as the index has it.
    #[must_use]
    pub fn data_type_number(&self) -> i32 {
        self.raw.dtype
    }

    /// Sizes of the dimensions.
    #[must_use]
    pub fn shape(&self) -> &[i64] {
        &self.raw.shape
    }

    /// Returns the number of elements of the tensor.
    ///
    /// # Errors
    /// If the shape is impossible.
    pub fn element_count(&self) -> Result<u64, ShapeError> {
        element_count(&self.raw.shape)
    }

    /// Returns the number of bytes of the whole tensor in memory: elements times their size; for
    /// strings and variants, which have no fixed size, their stored size. `None` if type or shape
    /// are impossible.
    #[must_use]
    pub fn byte_len(&self) -> Option<u64> {
        let count = self.element_count().ok()?;
        match self.data_type()?.element_size() {
            Some(size) => count.checked_mul(size),
            None => u64::try_from(self.raw.size).ok(),
        }
    }

    /// Returns the number of the data file. Has no meaning for a partitioned tensor.
    #[must_use]
    pub fn shard(&self) -> i32 {
        self.raw.shard
    }

    /// Returns the start of the tensor in its data file, in bytes. Has no meaning for a partitioned
    /// tensor.
    #[must_use]
    pub fn offset(&self) -> i64 {
        self.raw.offset
    }

    /// Returns the number of bytes that the tensor takes in its data file. 0 for a partitioned
    /// tensor.
    #[must_use]
    pub fn stored_len(&self) -> i64 {
        self.raw.size
    }

    /// Returns the checksum as the index has it (masked crc32c).
    #[must_use]
    pub fn masked_crc32c(&self) -> u32 {
        self.raw.crc
    }

    /// Returns true if the tensor is stored in pieces.
    #[must_use]
    pub fn is_partitioned(&self) -> bool {
        !self.raw.slices.is_empty()
    }

    /// Returns the pieces of a partitioned tensor; none if it is stored whole.
    ///
    /// # Errors
    /// If one of them is malformed.
    pub fn slices(&self) -> Result<Vec<TensorSlice>, BundleError> {
        let check = |slice: &super::messages::RawSlice| slice.check();
        let slices: Result<_, _> = self.raw.slices.iter().map(check).collect();
        slices.map_err(|source| BundleError::Slice { name: self.display(), source })
    }

    /// Compares the element type with the one that a caller requests. RestoreV2 makes this check
    /// before all others on the tensor.
    ///
    /// # Errors
    /// [`BundleError::DataTypeMismatch`].
    pub fn expect_type(&self, wanted: DataType) -> Result<(), BundleError> {
        if self.raw.dtype == wanted.number() {
            return Ok(());
        }
        let (found, expected) = (describe(self.raw.dtype), wanted.name().to_owned());
        Err(BundleError::DataTypeMismatch { name: self.display(), found, expected })
    }

    /// Returns the name for use in messages.
    pub(crate) fn display(&self) -> String {
        display(&self.key)
    }

    /// Returns the number of elements, if the shape is possible.
    pub fn checked_count(&self) -> Result<u64, BundleError> {
        self.element_count().map_err(|source| BundleError::Shape { name: self.display(), source })
    }

    /// Returns the element type, if it is known.
    pub(crate) fn checked_type(&self) -> Result<DataType, BundleError> {
        let unknown =
            || BundleError::DataType { name: self.display(), found: describe(self.raw.dtype) };
        self.data_type().ok_or_else(unknown)
    }
}

/// Returns a key for use in messages: the name; the escaped bytes for a piece.
pub(crate) fn display(key: &[u8]) -> String {
    match std::str::from_utf8(key) {
        Ok(name) if !name.starts_with('\0') => name.to_owned(),
        _ => key.escape_ascii().to_string(),
    }
}
