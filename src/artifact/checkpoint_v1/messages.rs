//! The messages in the tables of a V1 checkpoint.

use crate::artifact::fields::{Fields, Malformed, Value};
use crate::artifact::tensor_bundle::messages::{RawSlice, merge_shape, merge_versions};
use crate::version::VersionDef;

/// What a file says of a tensor in it (SavedSliceMeta).
#[derive(Debug, Default)]
pub(super) struct RawTensor {
    pub(super) name: String,
    pub(super) shape: Vec<i64>,
    pub(super) dtype: i32,
    pub(super) slices: Vec<RawSlice>,
}

/// What a file says to have in it (SavedTensorSliceMeta).
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
        let mut fields = Fields::new(bytes);
        while let Some((number, value)) = fields.next()? {
            match (number, value) {
                (1, Value::Bytes(bytes)) => meta.merge(fields.nested(bytes)?)?,
                (2, Value::Bytes(bytes)) => each_tensor(fields.nested(bytes)?, &mut |_| Ok(()))?,
                _ => {}
            }
        }
        Ok(meta)
    }

    fn merge(&mut self, mut fields: Fields<'_>) -> Result<(), Malformed> {
        while let Some((number, value)) = fields.next()? {
            match (number, value) {
                (1, Value::Bytes(bytes)) => {
                    self.tensors.push(RawTensor::parse(fields.nested(bytes)?)?)
                }
                (2, Value::Bytes(bytes)) => {
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
    fn parse(mut fields: Fields<'_>) -> Result<Self, Malformed> {
        let mut tensor = Self::default();
        while let Some((number, value)) = fields.next()? {
            match (number, value) {
                (1, Value::Bytes(bytes)) => text(bytes)?.clone_into(&mut tensor.name),
                (2, Value::Bytes(bytes)) => merge_shape(&mut tensor.shape, fields.nested(bytes)?)?,
                (3, Value::Varint(value)) => tensor.dtype = value as i32,
                (4, Value::Bytes(bytes)) => {
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

/// Gives the fields of every TensorProto in the value under a slice's key (a SavedTensorSlices, its field `data`) to `each`; several
/// merge.
pub(super) fn each_tensor_proto<'a>(
    bytes: &'a [u8],
    each: &mut dyn FnMut(Fields<'a>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    let mut fields = Fields::new(bytes);
    while let Some((number, value)) = fields.next()? {
        match (number, value) {
            (1, Value::Bytes(bytes)) => RawMeta::default().merge(fields.nested(bytes)?)?,
            (2, Value::Bytes(bytes)) => each_tensor(fields.nested(bytes)?, each)?,
            _ => {}
        }
    }
    Ok(())
}

/// The same within a SavedSlice.
fn each_tensor<'a>(
    mut fields: Fields<'a>,
    each: &mut dyn FnMut(Fields<'a>) -> Result<(), Malformed>,
) -> Result<(), Malformed> {
    while let Some((number, value)) = fields.next()? {
        match (number, value) {
            (1, Value::Bytes(bytes)) => {
                text(bytes)?;
            }
            (2, Value::Bytes(bytes)) => {
                RawSlice::parse(fields.nested(bytes)?)?;
            }
            (3, Value::Bytes(bytes)) => each(fields.nested(bytes)?)?,
            _ => {}
        }
    }
    Ok(())
}
