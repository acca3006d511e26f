use std::collections::{BTreeMap, BTreeSet};

use prost::Message as _;
use prost_types::{DescriptorProto, FileDescriptorSet, field_descriptor_proto::Type};

use super::*;
use crate::{
    codec::{ErrorKind, Serialized, ToProto},
    ifrt::{
        ArraySpec, BUILT_IN_NAMES, DType, DeviceList, MemoryKind, Shape, ShardingParam,
        ShardingParamSharding,
    },
    version::SerDesVersion,
};

fn spec() -> ArraySpec {
    let param: ShardingParam = "2 to [0] on 2 unreduced [0]".parse().unwrap();
    let devices = DeviceList::from([0, 1]);
    let sharding = ShardingParamSharding::new(param, devices, MemoryKind::unset()).unwrap();
    ArraySpec::new(DType::F32, Shape::new([4]).unwrap(), sharding)
}

#[test]
fn inspection_lists_nested_versions_with_their_places() {
    let bytes = spec().to_bytes(SerDesVersion::current()).unwrap();
    let inspection = Inspection::of_message("xla.ifrt.ArraySpecProto", &bytes).unwrap();
    assert_eq!(
        inspection.to_string(),
        "(outermost): xla.ifrt.ArraySpecProto, version 0\n\
         dtype: xla.ifrt.DTypeProto, version 0\n\
         shape: xla.ifrt.ShapeProto, version 0\n\
         sharding.serialized_sharding: xla::ifrt::ShardingParamSharding, version 0\n\
         sharding.serialized_sharding.sharding_param: xla.ifrt.ShardingParamProto, version 1\n\
         sharding.serialized_sharding.devices: xla.ifrt.DeviceListProto, version 0"
    );
    assert_eq!(inspection.minimum_reader_version(), 1);
    assert_eq!(inspection.too_new().count(), 0);
}

#[test]
fn data_of_newer_builds_is_listed_as_too_new() {
    let mut message = spec().to_proto(SerDesVersion::current()).unwrap();
    message.shape.as_mut().unwrap().version_number = 9;
    let bytes = message.encode_to_vec();
    let inspection = Inspection::of_message("xla.ifrt.ArraySpecProto", &bytes).unwrap();
    assert_eq!(inspection.minimum_reader_version(), 9);
    let too_new: Vec<_> = inspection.too_new().map(|value| value.location.as_str()).collect();
    assert_eq!(too_new, ["shape"]);
}

#[test]
fn names_without_a_known_message_have_no_version() {
    let bytes = Serialized::new("xla::ifrt::Mars", "rover").to_bytes();
    let inspection = Inspection::of_serialized(&bytes).unwrap();
    assert_eq!(inspection.to_string(), "(outermost): xla::ifrt::Mars, no version");
    assert_eq!(inspection.minimum_reader_version(), 0);
    let error = Inspection::of_message("xla.ifrt.MarsProto", &[]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::MissingType);
}

#[test]
fn values_that_nest_too_deep_are_an_error() {
    // An executable version whose ABI version is an executable version whose ...
    let name = "xla::ifrt::XlaExecutableVersion";
    let mut bytes = Serialized::new(name, "").to_bytes();
    for _ in 0..DEEPEST + 2 {
        let mut data = vec![0x1a];
        prost::encoding::encode_varint(bytes.len() as u64, &mut data);
        data.extend_from_slice(&bytes);
        bytes = Serialized::new(name, data).to_bytes();
    }
    let error = Inspection::of_serialized(&bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
}

#[test]
fn bytes_of_a_runtime_need_not_be_a_wrapper() {
    let message = crate::proto::xla::ifrt::SerializedXlaExecutableVersion {
        runtime_abi_version: "\u{7}\u{7}".into(),
        ..Default::default()
    };
    let name = "xla.ifrt.SerializedXlaExecutableVersion";
    let inspection = Inspection::of_message(name, &message.encode_to_vec()).unwrap();
    assert_eq!(inspection.values()[1].to_string(), "runtime_abi_version: bytes, no version");
}

#[test]
fn more_values_than_allowed_are_an_error() {
    let bytes: Vec<u8> = [0x1a, 0].repeat(MOST_VALUES + 1);
    let error = Inspection::of_message("xla.ifrt.ConcreteShardingProto", &bytes).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Limit);
}

fn messages(
    prefix: &str,
    message: &DescriptorProto,
    found: &mut BTreeMap<String, DescriptorProto>,
) {
    let name = format!("{prefix}.{}", message.name());
    for nested in &message.nested_type {
        messages(&name, nested, found);
    }
    found.insert(name, message.clone());
}

fn version_field(message: &DescriptorProto) -> Option<u32> {
    let names = ["version_number", "ifrt_version_number"];
    let field = message.field.iter().find(|field| names.contains(&field.name()))?;
    u32::try_from(field.number()).ok()
}

#[test]
fn the_table_is_what_the_descriptors_say() {
    let bytes = include_bytes!("../../../proto/descriptors.binpb");
    let set = FileDescriptorSet::decode(&bytes[..]).unwrap();
    let mut all = BTreeMap::new();
    for file in &set.file {
        if ["xla.ifrt", "serdes.ifrt"].contains(&file.package()) {
            for message in &file.message_type {
                messages(file.package(), message, &mut all);
            }
        }
    }
    // Messages that contain versions, at any depth.
    let mut relevant: BTreeSet<String> = all
        .iter()
        .filter(|(name, message)| {
            *name == "xla.ifrt.Serialized" || version_field(message).is_some()
        })
        .map(|(name, _)| name.clone())
        .collect();
    loop {
        let before = relevant.len();
        for (name, message) in &all {
            let holds = |field: &prost_types::FieldDescriptorProto| {
                field.r#type() == Type::Message && relevant.contains(&field.type_name()[1..])
            };
            if message.field.iter().any(holds) {
                relevant.insert(name.clone());
            }
        }
        if relevant.len() == before {
            break;
        }
    }
    relevant.remove("xla.ifrt.Serialized");
    let bytes_of_serialized =
        ["xla.ifrt.AtomExecutableVersionProto#1", "xla.ifrt.SerializedXlaExecutableVersion#3"];
    relevant.insert("xla.ifrt.AtomExecutableVersionProto".to_owned());
    let listed: BTreeSet<String> =
        schema::SCHEMAS.iter().map(|schema| schema.message.to_owned()).collect();
    assert_eq!(listed, relevant);

    for schema in schema::SCHEMAS {
        let message = &all[schema.message];
        assert_eq!(schema.version, version_field(message), "{}", schema.message);
        let mut expected: Vec<_> = message
            .field
            .iter()
            .filter_map(|field| {
                let number = u32::try_from(field.number()).unwrap();
                let key = format!("{}#{number}", schema.message);
                let type_name = field.type_name().trim_start_matches('.');
                let content = if type_name == "xla.ifrt.Serialized" {
                    Content::Serialized
                } else if bytes_of_serialized.contains(&key.as_str()) {
                    Content::Bytes
                } else {
                    Content::Message(schema::find(type_name)?.message)
                };
                Some((number, field.name().to_owned(), content))
            })
            .collect();
        expected.sort_by_key(|(number, ..)| *number);
        let listed: Vec<_> = schema
            .fields
            .iter()
            .map(|(number, name, content)| (*number, (*name).to_owned(), *content))
            .collect();
        assert_eq!(listed, expected, "{}", schema.message);
    }
}

#[test]
fn every_registered_name_is_known() {
    let without_versions =
        ["xla::ifrt::PluginProgram", "xla::ifrt::PluginCompileOptions", "xla::ifrt::XlaProgram"];
    for name in BUILT_IN_NAMES {
        let (package, message) = message_of(name).unwrap();
        let has_schema = schema::find(&format!("{package}.{message}")).is_some();
        assert_eq!(has_schema, !without_versions.contains(name), "{name}");
    }
    assert!(message_of("xla::ifrt::Mars").is_none());
}
