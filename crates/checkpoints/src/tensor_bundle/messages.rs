//! The messages in a bundle's index: the header under the empty key, and one entry per tensor.

use bytes::Bytes;
use serdes_version_registry::VersionDef;
use serdes_wire::{BackwardWriter, Dialect, Field, FieldValue, Malformed, WireReader};

use crate::{
    ErrorKind,
    slice::{Extent, MAX_RANK, SliceError, TensorSlice},
};

/// The byte order of the data files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub enum Endianness {
    /// Lowest byte first.
    #[default]
    Little,
    /// Highest byte first.
    Big,
}

/// The header of a bundle.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub struct Header {
    /// Number of data files according to the header, which is part of their names. Not checked when
    /// a bundle is opened.
    pub num_shards: i32,
    /// Byte order of the data; an unknown value is read as little-endian, as in TensorFlow.
    pub endianness: Endianness,
    /// The versions that decide whether the bundle may be read.
    pub versions: VersionDef,
    /// True if the header has versions.
    pub has_versions: bool,
}

impl Header {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut header = Self::default();
        let mut fields = WireReader::new(Dialect::Tensorflow, bytes);
        while let Some(Field { number, value, .. }) = fields.next_field()? {
            match (number, value) {
                (1, FieldValue::Varint(value)) => header.num_shards = value as i32,
                (2, FieldValue::Varint(value)) => {
                    header.endianness =
                        if value as i32 == 1 { Endianness::Big } else { Endianness::Little };
                }
                (3, FieldValue::Bytes(bytes)) => {
                    merge_versions(&mut header.versions, fields.nested(bytes)?)?;
                    header.has_versions = true;
                }
                _ => {}
            }
        }
        Ok(header)
    }

    pub(crate) fn encode(&self) -> Bytes {
        let mut out = BackwardWriter::with_capacity(0);
        if self.has_versions {
            out.nested(3, |out| write_versions(&self.versions, out));
        }
        out.number(2, i32::from(self.endianness == Endianness::Big));
        out.number(1, self.num_shards);
        out.finish()
    }
}

/// Reads a VersionDef into an existing one, because repeated occurrences of the field merge.
pub(crate) fn merge_versions(
    versions: &mut VersionDef,
    mut fields: WireReader<'_>,
) -> Result<(), Malformed> {
    while let Some(Field { number, value, .. }) = fields.next_field()? {
        match (number, value) {
            (1, FieldValue::Varint(value)) => versions.producer = value as i32,
            (2, FieldValue::Varint(value)) => versions.min_consumer = value as i32,
            (3, value) => value
                .each_varint(Dialect::Tensorflow, |bad| versions.bad_consumers.push(bad as i32))?,
            _ => {}
        }
    }
    Ok(())
}

fn write_versions(versions: &VersionDef, out: &mut BackwardWriter) {
    out.packed(3, &versions.bad_consumers);
    out.number(2, versions.min_consumer);
    out.number(1, versions.producer);
}

/// An error of a shape.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ShapeError {
    /// A dimension is negative.
    #[error("dimension {dimension} has size {size}")]
    Negative {
        /// The dimension, counted from 0.
        dimension: usize,
        /// Its size.
        size: i64,
    },
    /// There are more elements than a 63-bit number can count.
    #[error("it has more elements than can be counted")]
    TooManyElements,
    /// There are more dimensions than TensorFlow supports.
    #[error("it has {rank} dimensions, and at most 254 are possible")]
    Rank {
        /// Dimensions found.
        rank: usize,
    },
}

impl ShapeError {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        match self {
            Self::Negative { .. } => ErrorKind::InvalidInput,
            Self::TooManyElements | Self::Rank { .. } => ErrorKind::Limit,
        }
    }
}

/// Returns the number of elements of a tensor of `shape`, by TensorFlow's rule: the sizes are
/// multiplied from the first, and an overflow on the way is an error even if a later dimension is
/// 0.
///
/// # Errors
/// [`ShapeError`].
pub fn element_count(shape: &[i64]) -> Result<u64, ShapeError> {
    if shape.len() > MAX_RANK {
        return Err(ShapeError::Rank { rank: shape.len() });
    }
    let mut count = 1i64;
    for (dimension, size) in shape.iter().enumerate() {
        if *size < 0 {
            return Err(ShapeError::Negative { dimension, size: *size });
        }
        count = count.checked_mul(*size).ok_or(ShapeError::TooManyElements)?;
    }
    Ok(count as u64)
}

/// Reads a TensorShapeProto, appending to the existing dimensions.
pub(crate) fn merge_shape(
    shape: &mut Vec<i64>,
    mut fields: WireReader<'_>,
) -> Result<(), Malformed> {
    while let Some(Field { number, value, .. }) = fields.next_field()? {
        // Field 3, an unknown rank, is ignored where a whole shape is expected.
        if let (2, FieldValue::Bytes(bytes)) = (number, value) {
            let mut size = 0;
            let mut dimension = fields.nested(bytes)?;
            while let Some(Field { number, value, .. }) = dimension.next_field()? {
                match (number, value) {
                    (1, FieldValue::Varint(value)) => size = value as i64,
                    (2, FieldValue::Bytes(name)) if std::str::from_utf8(name).is_err() => {
                        return Err(Malformed {
                            reason: "the name of a dimension that is not UTF-8",
                            at: 0,
                        });
                    }
                    _ => {}
                }
            }
            shape.push(size);
        }
    }
    Ok(())
}

fn write_shape(shape: &[i64], out: &mut BackwardWriter) {
    for size in shape.iter().rev() {
        out.nested(2, |out| out.number(1, *size));
    }
}

/// An extent as in a message: start, and length if present.
type RawExtent = (i64, Option<i64>);

/// A TensorSliceProto before validation.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct RawSlice(Vec<RawExtent>);

impl RawSlice {
    pub(crate) fn parse(mut fields: WireReader<'_>) -> Result<Self, Malformed> {
        let mut slice = Self::default();
        slice.merge(&mut fields)?;
        Ok(slice)
    }

    pub(crate) fn merge(&mut self, fields: &mut WireReader<'_>) -> Result<(), Malformed> {
        while let Some(Field { number, value, .. }) = fields.next_field()? {
            if let (1, FieldValue::Bytes(bytes)) = (number, value) {
                let mut extent = (0, None);
                let mut inner = fields.nested(bytes)?;
                while let Some(Field { number, value, .. }) = inner.next_field()? {
                    match (number, value) {
                        (1, FieldValue::Varint(value)) => extent.0 = value as i64,
                        (2, FieldValue::Varint(value)) => extent.1 = Some(value as i64),
                        _ => {}
                    }
                }
                self.0.push(extent);
            }
        }
        Ok(())
    }

    /// Returns the slice, if its values are valid.
    pub(crate) fn check(&self) -> Result<TensorSlice, SliceError> {
        let extents = self.0.iter().map(|(start, length)| match (*start, length.unwrap_or(-1)) {
            (0, -1) => Extent::Full,
            (start, length) => Extent::Range { start, length },
        });
        TensorSlice::new(extents.collect())
    }
}

fn write_slice(slice: &TensorSlice, out: &mut BackwardWriter) {
    for extent in slice.extents().iter().rev() {
        out.nested(1, |out| {
            if let Extent::Range { start, length } = *extent {
                out.number(2, length);
                out.number(1, start);
            }
        });
    }
}

/// The entry of a tensor as in the index; only its wire format was checked.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub(crate) struct RawEntry {
    pub(crate) dtype: i32,
    pub(crate) shape: Vec<i64>,
    pub(crate) shard: i32,
    pub(crate) offset: i64,
    pub(crate) size: i64,
    /// The checksum as stored (masked).
    pub(crate) crc: u32,
    pub(crate) slices: Vec<RawSlice>,
}

impl RawEntry {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut entry = Self::default();
        let mut fields = WireReader::new(Dialect::Tensorflow, bytes);
        while let Some(Field { number, value, .. }) = fields.next_field()? {
            match (number, value) {
                (1, FieldValue::Varint(value)) => entry.dtype = value as i32,
                (2, FieldValue::Bytes(bytes)) => {
                    merge_shape(&mut entry.shape, fields.nested(bytes)?)?
                }
                (3, FieldValue::Varint(value)) => entry.shard = value as i32,
                (4, FieldValue::Varint(value)) => entry.offset = value as i64,
                (5, FieldValue::Varint(value)) => entry.size = value as i64,
                (6, FieldValue::Fixed32(value)) => entry.crc = value,
                (7, FieldValue::Bytes(bytes)) => {
                    entry.slices.push(RawSlice::parse(fields.nested(bytes)?)?)
                }
                _ => {}
            }
        }
        Ok(entry)
    }

    /// Returns the message with these slices.
    pub(crate) fn encode(&self, slices: &[TensorSlice]) -> Bytes {
        let mut out = BackwardWriter::with_capacity(0);
        for slice in slices.iter().rev() {
            out.nested(7, |out| write_slice(slice, out));
        }
        if self.crc != 0 {
            out.fixed32(6, self.crc.to_le_bytes());
        }
        out.number(5, self.size);
        out.number(4, self.offset);
        out.number(3, self.shard);
        out.nested(2, |out| write_shape(&self.shape, out));
        out.number(1, self.dtype);
        out.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_header_has_the_bytes_that_tensorflow_writes() {
        let bytes = [8, 1, 0x1a, 2, 8, 1];
        let header = Header::parse(&bytes).unwrap();
        assert_eq!(
            (header.num_shards, header.endianness, header.versions.producer),
            (1, Endianness::Little, 1)
        );
        assert_eq!(header.encode(), &bytes[..]);
    }

    #[test]
    fn repeated_versions_merge_and_an_odd_endianness_is_little() {
        let header =
            Header::parse(b"\x10\x07\x1a\x04\x10\x05\x18\x01\x1a\x06\x10\x00\x1a\x02\x02\x03")
                .unwrap();
        assert_eq!(header.endianness, Endianness::Little);
        assert_eq!(header.versions.min_consumer, 0);
        assert_eq!(header.versions.bad_consumers, [1, 2, 3]);
    }

    #[test]
    fn an_entry_has_the_bytes_that_tensorflow_writes() {
        let bytes =
            b"\x08\x09\x12\x08\x12\x02\x08\x02\x12\x02\x08\x02\x20\x10\x28\x20\x35\x1b\xd4\xa8\x90";
        let entry = RawEntry::parse(bytes).unwrap();
        assert_eq!(
            (entry.dtype, entry.shape.as_slice(), entry.offset, entry.size),
            (9, &[2, 2][..], 16, 32)
        );
        assert_eq!(entry.encode(&[]), &bytes[..]);
    }

    #[test]
    fn elements_are_counted_by_tensorflows_rule() {
        assert_eq!(element_count(&[]), Ok(1));
        assert_eq!(element_count(&[0, i64::MAX, i64::MAX]), Ok(0));
        assert_eq!(element_count(&[i64::MAX, i64::MAX, 0]), Err(ShapeError::TooManyElements));
        assert_eq!(element_count(&[2, -1]), Err(ShapeError::Negative { dimension: 1, size: -1 }));
        assert_eq!(element_count(&[1; 255]), Err(ShapeError::Rank { rank: 255 }));
    }
}
