//! The values of a slice: the typed repeated fields of a TensorProto, as little-endian elements.

use serdes_graph_format::data_type::DataType;
use serdes_wire::{Dialect, Field, FieldValue, Malformed};

use super::messages::each_tensor_proto;

/// The encoding of a type's elements in a TensorProto.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kept {
    /// Varints in a field; each element keeps this number of low bytes.
    Varints { field: u32, bytes: usize },
    /// Numbers of fixed width in a field, of this number of bytes each.
    Fixed { field: u32, bytes: usize },
    /// Byte strings in a field.
    Strings { field: u32 },
}

fn kept(data_type: DataType) -> Option<Kept> {
    Some(match data_type {
        DataType::Float32 => Kept::Fixed { field: 5, bytes: 4 },
        DataType::Float64 => Kept::Fixed { field: 6, bytes: 8 },
        // Two numbers per element.
        DataType::Complex64 => Kept::Fixed { field: 9, bytes: 4 },
        DataType::Complex128 => Kept::Fixed { field: 12, bytes: 8 },
        DataType::Int32 | DataType::Qint32 => Kept::Varints { field: 7, bytes: 4 },
        DataType::Int16 | DataType::Uint16 => Kept::Varints { field: 7, bytes: 2 },
        DataType::Int8 | DataType::Uint8 | DataType::Qint8 | DataType::Quint8 => {
            Kept::Varints { field: 7, bytes: 1 }
        }
        DataType::Float16 => Kept::Varints { field: 13, bytes: 2 },
        DataType::Int64 => Kept::Varints { field: 10, bytes: 8 },
        DataType::Bool => Kept::Varints { field: 11, bytes: 1 },
        DataType::Uint32 => Kept::Varints { field: 16, bytes: 4 },
        DataType::Uint64 => Kept::Varints { field: 17, bytes: 8 },
        DataType::String => Kept::Strings { field: 8 },
        _ => return None,
    })
}

/// Returns true if V1 checkpoints hold elements of this type.
pub(super) fn is_supported(data_type: DataType) -> bool {
    kept(data_type).is_some()
}

/// Decodes the numbers in the value under a slice's key. Returns `None` if the type is not stored
/// as numbers.
pub(super) fn numbers(value: &[u8], data_type: DataType) -> Option<Result<Vec<u8>, Malformed>> {
    let kept = kept(data_type).filter(|kept| !matches!(kept, Kept::Strings { .. }))?;
    let mut out = Vec::new();
    let result = each_tensor_proto(value, &mut |mut fields| {
        while let Some(Field { number, value, .. }) = fields.next_field()? {
            match kept {
                Kept::Varints { field, bytes } if field == number => {
                    value.each_varint(Dialect::Tensorflow, |element| {
                        let element = if data_type == DataType::Bool {
                            u64::from(element != 0)
                        } else {
                            element
                        };
                        out.extend(element.to_le_bytes().iter().take(bytes));
                    })?
                }
                Kept::Fixed { field, bytes } if field == number => match value {
                    FieldValue::Bytes(packed) if packed.len() % bytes == 0 => {
                        out.extend_from_slice(packed)
                    }
                    FieldValue::Bytes(_) => {
                        return Err(Malformed {
                            reason: "packed numbers that end in the middle of one",
                            at: 0,
                        });
                    }
                    FieldValue::Fixed32(element) if bytes == 4 => {
                        out.extend_from_slice(&element.to_le_bytes())
                    }
                    FieldValue::Fixed64(element) if bytes == 8 => {
                        out.extend_from_slice(&element.to_le_bytes())
                    }
                    _ => {}
                },
                _ => {}
            }
        }
        Ok(())
    });
    Some(result.map(|()| out))
}

/// Decodes the strings in the value under a slice's key.
pub(super) fn strings(value: &[u8]) -> Result<Vec<Vec<u8>>, Malformed> {
    let mut out = Vec::new();
    each_tensor_proto(value, &mut |mut fields| {
        while let Some(Field { number, value, .. }) = fields.next_field()? {
            if let (8, FieldValue::Bytes(bytes)) = (number, value) {
                out.push(bytes.to_vec());
            }
        }
        Ok(())
    })?;
    Ok(out)
}
