//! The messages in the tables of a V1 checkpoint.

use serdes_version_registry::VersionDef;
use serdes_wire::{Dialect, Field, FieldValue, Malformed, WireReader};

use crate::tensor_bundle::messages::{RawSlice, merge_shape, merge_versions};

/// The description of a tensor in the header of a file (SavedSliceMeta).
#[derive(Debug, Default)]
pub(super) struct RawTensor {
    pub(super) name: String,
    pub(super) shape: Vec<i64>,
    pub(super) dtype: i32,
    pub(super) slices: Vec<RawSlice>,
}

/// The header of a file, which lists its tensors (SavedTensorSliceMeta).
#[derive(Debug, Default)]
pub(super) struct RawMeta {
    pub(super) tensors: Vec<RawTensor>,
    pub(super) versions: VersionDef,
    pub(super) has_versions: bool,
}

impl RawMeta {
    /// Reads the value under the empty key, a SavedTensorSlices.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut meta = Self::default();
        let mut fields = WireReader::new(Dialect::Tensorflow, bytes);
        while let Some(Field { number, value, .. }) = fields.next_field()? {
            match (number, value) {
                (1, FieldValue::Bytes(bytes)) => meta.merge(fields.nested(bytes)?)?,
                (2, FieldValue::Bytes(bytes)) => {
                    each_tensor(fields.nested(bytes)?, &mut |_| Ok(()))?
                }
                _ => {}
            }
        }
        Ok(meta)
    }

    fn merge(&mut self, mut fields: WireReader<'_>) -> Result<(), Malformed> {
        while let Some(Field { number, value, .. }) = fields.next_field()? {
            match (number, value) {
                (1, FieldValue::Bytes(bytes)) => {
                    self.tensors.push(RawTensor::parse(fields.nested(bytes)?)?)
                }
                (2, FieldValue::Bytes(bytes)) => {
                    merge_versions(&mut self.versions, fields.nested(bytes)?)?;
                    self.has_versions = true;
                }
                _ => {}
            }
        }
        Ok(())
    }
}

impl RawTensor {
    fn parse(mut fields: WireReader<'_>) -> Result<Self, Malformed> {
        let mut tensor = Self::default();
        while let Some(Field { number, value, .. }) = fields.next_field()? {
            match (number, value) {
                (1, FieldValue::Bytes(bytes)) => text(bytes)?.clone_into(&mut tensor.name),
                (2, FieldValue::Bytes(bytes)) => {
                    merge_shape(&mut tensor.shape, fields.nested(bytes)?)?
                }
                (3, FieldValue::Varint(value)) => tensor.dtype = value as i32,
                (4, FieldValue::Bytes(bytes)) => {
                    tensor.slices.push(RawSlice::parse(fields.nested(bytes)?)?)
                }
                _ => {}
            }
        }
        Ok(tensor)
    }
}

fn text(bytes: &[u8]) -> Result<&str, Malformed> {
    std::str::from_utf8(bytes)
        .map_err(|error| Malformed { reason: "a name that is not UTF-8", at: error.valid_up_to() })
}

/// Calls `each` with the fields of every TensorProto in the value under a slice's key (a
/// SavedTensorSlices, its field `data`); repeated occurrences merge.
pub(super) fn each_tensor_proto<'a>(
    bytes: &'a [u8],
    each: &mut dyn FnMut(WireReader<'a>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let mut fields = WireReader::new(Dialect::Tensorflow, bytes);
    while let Some(Field { number, value, .. }) = fields.next_field()? {
        match (number, value) {
            (1, FieldValue::Bytes(bytes)) => RawMeta::default().merge(fields.nested(bytes)?)?,
            (2, FieldValue::Bytes(bytes)) => each_tensor(fields.nested(bytes)?, each)?,
            _ => {}
        }
    }
    Ok(())
}

/// Calls `each` with the fields of every TensorProto in a SavedSlice.
fn each_tensor<'a>(
    mut fields: WireReader<'a>,
    each: &mut dyn FnMut(WireReader<'a>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    while let Some(Field { number, value, .. }) = fields.next_field()? {
        match (number, value) {
            (1, FieldValue::Bytes(bytes)) => {
                text(bytes)?;
            }
            (2, FieldValue::Bytes(bytes)) => {
                RawSlice::parse(fields.nested(bytes)?)?;
            }
            (3, FieldValue::Bytes(bytes)) => each(fields.nested(bytes)?)?,
            _ => {}
        }
    }
    Ok(())
}
