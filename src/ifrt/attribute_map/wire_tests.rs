use proptest::prelude::*;
use prost::Message as _;

use super::*;
use crate::{
    codec::{FromProto, ToProto},
    version::SerDesAnyVersionAccessor,
};

fn read(bytes: &Bytes) -> Result<AttributeMap, DecodeError> {
    AttributeMap::from_bytes(bytes.clone(), &DeserializeOptions::new())
}

/// Reads the map from the bytes through prost's message.
fn by_message(bytes: &Bytes) -> Option<AttributeMap> {
    let message = AttributeMapProto::decode(bytes.clone()).ok()?;
    AttributeMap::from_proto(&message, &DeserializeOptions::new()).ok()
}

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
    fn maps_are_written_and_read_as_prost_does(
        attributes in prop::collection::btree_map(".{0,8}", value(), 0..12)
    ) {
        let map = AttributeMap::from_iter(attributes);
        let version = SerDesAnyVersionAccessor::minimum();
        let message = map.to_proto(version).unwrap();
        let bytes = map.to_bytes(version).unwrap();
        prop_assert_eq!(&bytes, &message.encode_to_vec());
        prop_assert_eq!(by_message(&bytes), Some(map.clone()));
        prop_assert_eq!(read(&bytes), Ok(map));
    }

    #[test]
    fn any_bytes_are_read_as_prost_reads_them(
        bytes in prop::collection::vec(
            prop::sample::select(vec![0x0a_u8, 0x12, 0, 1, 2, 3, 4, 8, 9, 10, 0x10, 0x19, 0x22, 0x2d, 0xff]),
            0..24,
        )
    ) {
        let bytes = Bytes::from(bytes);
        // Compared as text, in which NaN equals itself.
        prop_assert_eq!(format!("{:?}", read(&bytes).ok()), format!("{:?}", by_message(&bytes)));
    }
}

#[test]
fn a_key_that_is_given_twice_has_its_last_value() {
    let entry = |value: u8| [0x0a, 7, 0x0a, 1, b'k', 0x12, 2, 0x10, value];
    let bytes = Bytes::from([entry(1), entry(0)].concat());
    assert_eq!(read(&bytes).unwrap().bool("k"), Ok(false));
}
