//! Tests that messages of real IFRT builds are read as the right values and written again to the
//! same bytes.
//!
//! See `tests/data/ifrt/README.md`. Programs, compile options, remap plans and proxy messages have
//! their own tests.

use std::{fmt::Display, fs, path::Path};

use bytes::Bytes;
use prost::Message;
use serdes::{
    codec::{FromProto, Serialized, ToProto, Validation},
    ifrt::*,
    version::{SerDesAnyVersionAccessor, SerDesVersion},
};

fn options(validation: Validation) -> serdes::codec::DeserializeOptions {
    with_devices(AnyDevice).with_validation(validation)
}

/// Reads `bytes` as a `T` and writes it again; returns the value as text.
fn trip<T, P>(bytes: &Bytes, version: SerDesVersion) -> String
where
    P: Message + Default,
    T: ToProto<Proto = P> + FromProto<Proto = P> + Display + PartialEq,
{
    let value = T::from_bytes(bytes.clone(), &options(Validation::Parity)).unwrap();
    let strict = T::from_bytes(bytes.clone(), &options(Validation::Strict)).unwrap();
    assert!(value == strict, "{value} against {strict}");
    assert_eq!(value.to_bytes(version).unwrap(), bytes, "{value}");
    value.to_string()
}

/// Returns the value of a message as text; `None` for messages that are tested elsewhere.
fn read(message: &str, label: &str, bytes: &Bytes, version: SerDesVersion) -> Option<String> {
    let type_name = message.strip_prefix("xla.ifrt.")?;
    Some(match type_name {
        "DTypeProto" => trip::<DType, _>(bytes, version),
        "ShapeProto" => trip::<Shape, _>(bytes, version),
        "DeviceListProto" => trip::<DeviceList, _>(bytes, version),
        "ConcreteEvenShardingProto" => trip::<ConcreteEvenSharding, _>(bytes, version),
        "HloShardingProto" => trip::<HloSharding, _>(bytes, version),
        "ShardingProto" => trip::<Sharding, _>(bytes, version),
        "ArraySpecProto" => trip::<ArraySpec, _>(bytes, version),
        "Serialized" if label.contains("Sharding") => {
            let options = options(Validation::Strict);
            let serialized = Serialized::from_bytes(bytes.clone(), &options).unwrap();
            assert_eq!(serialized.to_bytes(), bytes);
            let sharding = Sharding::from_serialized(serialized.clone(), &options).unwrap();
            assert_eq!(sharding.to_serialized(version).unwrap(), serialized);
            let any = global_registry().deserialize_any(&serialized, &options).unwrap();
            let request = serdes::codec::SerializeOptions::new(version);
            assert_eq!(global_registry().serialize_any(&*any, &request).unwrap(), serialized);
            sharding.to_string()
        }
        "AttributeMapProto" => {
            // Their order is random in C++, so they are compared as maps.
            let options = options(Validation::Strict);
            let map = AttributeMap::from_bytes(bytes.clone(), &options).unwrap();
            let written = map.to_bytes(version).unwrap();
            assert_eq!(written.len(), bytes.len());
            assert_eq!(AttributeMap::from_bytes(written, &options).unwrap(), map);
            map.to_string()
        }
        _ => return None,
    })
}

/// The texts of values by label, if they differ from the label.
const VALUES: &[(&str, &str)] = &[
    ("scalar", "[]"),
    ("6", "[6]"),
    ("0x3", "[0,3]"),
    ("2x3", "[2,3]"),
    ("4x4", "[4,4]"),
    (
        "HloSharding_dev0_replicated_device",
        "HloSharding(devices: [0], memory_kind: device, {replicated})",
    ),
    (
        "HloSharding_dev0_replicated_pinned_host",
        "HloSharding(devices: [0], memory_kind: pinned_host, {replicated})",
    ),
    (
        "HloSharding_dev0_1_replicated_device",
        "HloSharding(devices: [0,1], memory_kind: device, {replicated})",
    ),
    (
        "HloSharding_dev1_replicated_device",
        "HloSharding(devices: [1], memory_kind: device, {replicated})",
    ),
    (
        "HloSharding_dev0_1_t1x2_device",
        "HloSharding(devices: [0,1], memory_kind: device, {devices=[1,2]<=[2]})",
    ),
    (
        "HloSharding_dev0_1_t2x1_device",
        "HloSharding(devices: [0,1], memory_kind: device, {devices=[2,1]<=[2]})",
    ),
    (
        "HloSharding_dev0_1_2_3_t2x2_perm10_device",
        "HloSharding(devices: [0,1,2,3], memory_kind: device, {devices=[2,2]<=[2,2]T(1,0)})",
    ),
    (
        "HloSharding_dev0_1_2_3_t2x1x2_lastrepl_device",
        "HloSharding(devices: [0,1,2,3], memory_kind: device, {devices=[2,1,2]<=[4] last_tile_dim_replicate})",
    ),
    (
        "ConcreteEvenSharding_dev1_0_even_device",
        "ConcreteEvenSharding(devices: [1,0], memory_kind: device, shape: [8], shard_shape: [4], is_fully_replicated: false)",
    ),
    (
        "F32_4x4_HloSharding_dev0_1_t2x1_device",
        "F32[4,4] HloSharding(devices: [0,1], memory_kind: device, {devices=[2,1]<=[2]})",
    ),
    (
        "F32_4x4_HloSharding_dev0_1_2_3_t2x2_perm10_device",
        "F32[4,4] HloSharding(devices: [0,1,2,3], memory_kind: device, {devices=[2,2]<=[2,2]T(1,0)})",
    ),
    (
        "F32_4x4_HloSharding_dev0_1_2_3_t2x1x2_lastrepl_device",
        "F32[4,4] HloSharding(devices: [0,1,2,3], memory_kind: device, {devices=[2,1,2]<=[4] last_tile_dim_replicate})",
    ),
    (
        "F64_8_ConcreteEvenSharding_dev1_0_even_device",
        "F64[8] ConcreteEvenSharding(devices: [1,0], memory_kind: device, shape: [8], shard_shape: [4], is_fully_replicated: false)",
    ),
    (
        "F64_8_HloSharding_dev0_1_t2_device",
        "F64[8] HloSharding(devices: [0,1], memory_kind: device, {devices=[2]<=[2]})",
    ),
];

#[test]
fn vectors_are_read_as_their_value_and_written_byte_for_byte() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ifrt");
    let manifest = fs::read_to_string(data.join("manifest.jsonl")).unwrap();
    let mut tested = 0;
    for line in manifest.lines() {
        let entry: serde_json::Value = serde_json::from_str(line).unwrap();
        let (file, message) = (entry["file"].as_str().unwrap(), entry["message"].as_str().unwrap());
        let number = i32::try_from(entry["serdes"].as_i64().unwrap()).unwrap();
        let bytes = Bytes::from(fs::read(data.join(file)).unwrap());
        assert_eq!(bytes.len() as u64, entry["size"].as_u64().unwrap(), "{file}");
        let label = file
            .strip_prefix(&format!("golden/serdes{number}."))
            .and_then(|rest| rest.strip_suffix(&format!(".{message}.binpb")))
            .unwrap();
        let version = SerDesAnyVersionAccessor::get(number).unwrap();
        let Some(text) = read(message, label, &bytes, version) else { continue };
        tested += 1;
        match message {
            "xla.ifrt.DTypeProto" => assert_eq!(text, label),
            "xla.ifrt.DeviceListProto" => {
                let devices = label.split("_dev").nth(1).unwrap().replace('_', ",");
                let ids = text.trim_matches(['[', ']']);
                assert!(devices.starts_with(ids), "{file}: {text}");
            }
            "xla.ifrt.AttributeMapProto" => assert!(text.starts_with('{'), "{file}: {text}"),
            _ => {
                let expected = VALUES.iter().find(|(own, _)| *own == label);
                let (_, expected) = expected.unwrap_or_else(|| panic!("{file} is {text}"));
                assert_eq!(text, *expected, "{file}");
            }
        }
    }
    assert_eq!(tested, 64);
}

#[test]
fn the_attributes_of_real_clients_have_their_values() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ifrt/golden");
    let read = |name: &str| {
        let bytes = fs::read(data.join(name)).unwrap();
        AttributeMap::from_bytes(bytes.into(), &options(Validation::Strict)).unwrap()
    };
    let three = read("serdes3.three_kinds.xla.ifrt.AttributeMapProto.binpb");
    assert_eq!(three.len(), 3);
    assert_eq!(three.bool("bool_value"), Ok(true));
    assert_eq!(three.string("bytes_value").unwrap()[..], *b"\0\xffv");
    assert_eq!(three.int64("int_value"), Ok(-5));
    let one = read("serdes3.one_bytes_entry.xla.ifrt.AttributeMapProto.binpb");
    assert_eq!(one, AttributeMap::from_iter([("k", "v".into())]));
}

#[test]
fn the_short_examples_of_the_wire_are_read() {
    let version = SerDesAnyVersionAccessor::minimum();
    let dtype = DType::F32.to_bytes(version).unwrap();
    assert_eq!(dtype[..], [0x08, 0x0b]);
    let shape = Shape::new([2, 3]).unwrap().to_bytes(version).unwrap();
    assert_eq!(shape[..], [0x0a, 0x02, 0x02, 0x03]);
    assert_eq!(Shape::scalar().to_bytes(version).unwrap(), "");
    assert_eq!(DeviceList::from([]).to_bytes(version).unwrap(), "");
}
