//! Attribute maps straight to bytes and back, as [`direct`](super::super::direct) does it for array specs.

use bytes::Bytes;

use super::{AttributeMap, AttributeValue};
use crate::wire::{BackwardWriter, Dialect, Field, FieldValue, WireReader};

/// Bytes besides the name and the value of an attribute, at most as a rule.
const AROUND: usize = 12;

/// The bytes of the message at format 0, the attributes in the order of their names.
pub(super) fn write(attributes: &[(String, AttributeValue)]) -> Bytes {
    let size_of = |value: &AttributeValue| match value {
        AttributeValue::String(bytes) => bytes.len(),
        AttributeValue::Int64List(values) => 8 * values.len(),
        AttributeValue::Bool(_) | AttributeValue::Int64(_) | AttributeValue::Float(_) => 8,
    };
    let sizes = attributes.iter().map(|(key, value)| key.len() + size_of(value) + AROUND);
    let mut out = BackwardWriter::with_capacity(sizes.sum());
    for (key, value) in attributes.iter().rev() {
        out.nested(1, |out| {
            out.nested(2, |out| match value {
                AttributeValue::String(bytes) => out.bytes(1, bytes),
                AttributeValue::Bool(value) => out.truth(2, *value),
                AttributeValue::Int64(value) => out.fixed64(3, value.to_le_bytes()),
                AttributeValue::Int64List(values) => {
                    out.nested(4, |out| out.packed_fixed64(1, values));
                }
                AttributeValue::Float(value) => out.fixed32(5, value.to_le_bytes()),
            });
            if !key.is_empty() {
                out.bytes(1, key.as_bytes());
            }
        });
    }
    out.finish()
}

fn fields(bytes: &[u8]) -> WireReader<'_> {
    WireReader::new(Dialect::Prost, bytes)
}

/// The map of `bytes`, if it is written as writers do, at format 0; its strings share the memory of `bytes`.
pub(super) fn read(bytes: &Bytes) -> Option<AttributeMap> {
    // As many as there are if each takes 32 bytes, so that short maps are not moved as they grow.
    let mut attributes = Vec::with_capacity(bytes.len() / 32 + 1);
    let mut reader = fields(bytes);
    loop {
        let entry = match reader.take_short(1) {
            Some(entry) => entry,
            None => match reader.next_field().ok()? {
                Some(Field { number: 1, value: FieldValue::Bytes(entry), .. }) => entry,
                Some(_) => return None,
                None => break,
            },
        };
        attributes.push(read_entry(bytes, entry)?);
    }
    Some(AttributeMap::of(attributes))
}

/// The name and the value of an attribute as bytes.
fn split_entry(entry: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut reader = fields(entry);
    if let (Some(key), Some(value)) = (reader.take_short(1), reader.take_short(2))
        && reader.is_at_end()
    {
        return Some((key, value));
    }
    let (mut key, mut value) = (None, None);
    let mut reader = fields(entry);
    while let Some(field) = reader.next_field().ok()? {
        let FieldValue::Bytes(bytes) = field.value else { return None };
        let place = match field.number {
            1 => &mut key,
            2 => &mut value,
            _ => return None,
        };
        if place.replace(bytes).is_some() {
            return None;
        }
    }
    Some((key.unwrap_or_default(), value?))
}

fn read_entry(whole: &Bytes, entry: &[u8]) -> Option<(String, AttributeValue)> {
    let (key, value) = split_entry(entry)?;
    let key = std::str::from_utf8(key).ok()?.to_owned();
    let mut reader = fields(value);
    let field = reader.next_field().ok()??;
    let value = match (field.number, field.value) {
        (1, FieldValue::Bytes(text)) => AttributeValue::String(whole.slice_ref(text)),
        (2, FieldValue::Varint(value)) => AttributeValue::Bool(value != 0),
        (3, FieldValue::Fixed64(value)) => AttributeValue::Int64(value.cast_signed()),
        (4, FieldValue::Bytes(list)) => AttributeValue::Int64List(read_list(list)?),
        (5, FieldValue::Fixed32(value)) => AttributeValue::Float(f32::from_bits(value)),
        _ => return None,
    };
    // A second value would take the place of the first.
    reader.is_at_end().then_some((key, value))
}

fn read_list(list: &[u8]) -> Option<Vec<i64>> {
    let mut reader = fields(list);
    let packed = match reader.take_short(1) {
        Some(packed) => packed,
        None => match reader.next_field().ok()? {
            Some(Field { number: 1, value: FieldValue::Bytes(packed), .. }) => packed,
            Some(_) => return None,
            None => return Some(Vec::new()),
        },
    };
    let (numbers, rest) = packed.as_chunks::<8>();
    let whole = rest.is_empty() && reader.is_at_end();
    whole.then(|| numbers.iter().map(|number| i64::from_le_bytes(*number)).collect())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message as _;

    use super::*;
    use crate::{
        codec::{DeserializeOptions, FromProto, ToProto},
        proto::xla::ifrt::AttributeMapProto,
        version::SerDesAnyVersionAccessor,
    };

    fn value() -> impl Strategy<Value = AttributeValue> {
        prop_oneof![
            prop::collection::vec(any::<u8>(), 0..300).prop_map(AttributeValue::from),
            any::<bool>().prop_map(AttributeValue::from),
            any::<i64>().prop_map(AttributeValue::from),
            prop::collection::vec(any::<i64>(), 0..40).prop_map(AttributeValue::from),
            (-1e30_f32..1e30).prop_map(AttributeValue::from),
        ]
    }

    proptest! {
        #[test]
        fn maps_are_written_as_their_messages_and_read_as_they_are(
            attributes in prop::collection::btree_map(".{0,8}", value(), 0..12)
        ) {
            let map = AttributeMap::from_iter(attributes);
            let message = map.to_proto(SerDesAnyVersionAccessor::minimum()).unwrap();
            let bytes = write(&map.attributes);
            prop_assert_eq!(&bytes, &message.encode_to_vec());
            prop_assert_eq!(read(&bytes), Some(map));
        }

        #[test]
        fn whatever_is_read_is_what_the_message_says(
            bytes in prop::collection::vec(
                prop::sample::select(vec![0x0a_u8, 0x12, 0, 1, 2, 3, 4, 8, 9, 10, 0x10, 0x19, 0x22, 0x2d, 0xff]),
                0..24,
            )
        ) {
            let bytes = Bytes::from(bytes);
            if let Some(map) = read(&bytes) {
                let message = AttributeMapProto::decode(bytes).unwrap();
                let expected = AttributeMap::from_proto(&message, &DeserializeOptions::new()).unwrap();
                prop_assert_eq!(format!("{map:?}"), format!("{expected:?}"));
            }
        }
    }

    #[test]
    fn a_key_that_is_given_twice_has_its_last_value() {
        let entry = |value: u8| [0x0a, 7, 0x0a, 1, b'k', 0x12, 2, 0x10, value];
        let bytes = Bytes::from([entry(1), entry(0)].concat());
        assert_eq!(read(&bytes).unwrap().bool("k"), Ok(false));
    }
}
