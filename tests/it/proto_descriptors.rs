//! Compares `proto/` with the descriptors inside real builds: numbers, names, types, labels,
//! oneofs, presence, packing, reserved numbers, enum values and services.
//!
//! `tests/data/ifrt/jaxlib-0.10.2.fds.binpb` holds the descriptors of jaxlib 0.10.2. What jaxlib
//! 0.12.0.1 has in addition is the table [`SINCE_0_10_2`]; what it lacks is [`GONE_IN_0_12`].

use std::collections::{BTreeMap, BTreeSet};

use prost::Message as _;
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FileDescriptorSet,
    field_descriptor_proto::{Label, Type},
};

/// The packages of which every message of a real build must be in `proto/`.
const WHOLE_PACKAGES: [&str; 3] = ["xla.ifrt", "xla.ifrt.proto", "xla.ifrt.proxy"];

/// Messages that are declared without fields; their content is passed on as bytes.
const OPAQUE: [&str; 2] =
    ["xla.ExecutableBuildOptionsProto", "stream_executor.GpuTargetConfigProto"];

/// Additions of builds after 0.10.2, as (element, description).
const SINCE_0_10_2: [(&str, &str); 22] = [
    ("xla.ifrt.AbstractArraySpecProto#1", "optional int32 version_number"),
    ("xla.ifrt.AbstractArraySpecProto#2", "optional .xla.ifrt.DTypeProto dtype"),
    ("xla.ifrt.AbstractArraySpecProto#3", "optional .xla.ifrt.ShapeProto shape"),
    ("xla.ifrt.AbstractArraySpecProto#4", "optional .xla.ifrt.ShardingSpecProto sharding_spec"),
    ("xla.ifrt.AbstractArraySpecProto#5", "optional string memory_kind"),
    ("xla.ifrt.AbstractArraySpecProto#6", "explicit bytes layout"),
    ("xla.ifrt.CustomCallCompileOptionsProto#1", "optional int32 version_number"),
    ("xla.ifrt.CustomCallCompileOptionsProto#2", "repeated int32 outputs_bundle_slice_sizes"),
    ("xla.ifrt.IndexProto#1", "repeated int64 elements"),
    ("xla.ifrt.IndexProto#2", "optional int32 version_number"),
    ("xla.ifrt.IndexDomainProto#1", "optional .xla.ifrt.IndexProto origin"),
    ("xla.ifrt.IndexDomainProto#2", "optional .xla.ifrt.ShapeProto shape"),
    ("xla.ifrt.IndexDomainProto#3", "optional int32 version_number"),
    ("xla.ifrt.HloShardingSpecProto#1", "optional int32 version_number"),
    ("xla.ifrt.HloShardingSpecProto#2", "optional int32 num_shards"),
    ("xla.ifrt.HloShardingSpecProto#3", "optional .xla.OpSharding xla_op_sharding"),
    ("xla.ifrt.DTypeProto.Kind", "+KIND_F6E2M3FN=34 +KIND_F6E3M2FN=35"),
    ("xla.ifrt.IfrtIrCompileOptionsProto#14", "repeated int32 outputs_bundle_slice_sizes"),
    ("xla.NamedShardingProto#8", "optional .xla.NamedShardingProto.ReductionOpProto reduction_op"),
    ("xla.NamedShardingProto.ReductionOpProto", "+SUM=0 +MAX=1 +MIN=2"),
    ("xla.ifrt.XlaCompileOptionsProto#2", "repeated int32 outputs_bundle_slice_sizes"),
    ("xla.ifrt.XlaCompileOptionsProto#3", "optional int32 version_number"),
];

/// Messages that 0.10.2 has and 0.12 does not; data that holds them is still read and written here.
const GONE_IN_0_12: [&str; 2] =
    ["xla.ifrt.ShardingParamProto", "xla.ifrt.ShardingParamShardingProto"];

/// Everything that determines bytes, by element: "message#number", "message.Enum",
/// "service/method".
#[derive(Default)]
struct Elements {
    messages: BTreeSet<String>,
    described: BTreeMap<String, String>,
}

impl Elements {
    fn of(set: &FileDescriptorSet) -> Self {
        let mut elements = Self::default();
        for file in &set.file {
            for message in &file.message_type {
                elements.add_message(file.package(), message);
            }
            for enumeration in &file.enum_type {
                elements.add_enum(file.package(), enumeration);
            }
            for service in &file.service {
                for method in &service.method {
                    let stream = |streaming| if streaming { "stream " } else { "" };
                    elements.described.insert(
                        format!("{}.{}/{}", file.package(), service.name(), method.name()),
                        format!(
                            "{}{} -> {}{}",
                            stream(method.client_streaming()),
                            method.input_type(),
                            stream(method.server_streaming()),
                            method.output_type(),
                        ),
                    );
                }
            }
        }
        elements
    }

    fn add_message(&mut self, scope: &str, message: &DescriptorProto) {
        let name = format!("{scope}.{}", message.name());
        for nested in &message.nested_type {
            self.add_message(&name, nested);
        }
        for enumeration in &message.enum_type {
            self.add_enum(&name, enumeration);
        }
        for field in &message.field {
            let presence = match field.label() {
                Label::Repeated => "repeated",
                _ if field.proto3_optional() => "explicit",
                _ => "optional",
            };
            let kind = match field.r#type() {
                Type::Message | Type::Enum => field.type_name().to_owned(),
                scalar => scalar.as_str_name().trim_start_matches("TYPE_").to_lowercase(),
            };
            let oneof = match field.oneof_index {
                Some(index) if !field.proto3_optional() => {
                    format!(" in {}", message.oneof_decl[usize::try_from(index).unwrap()].name())
                }
                _ => String::new(),
            };
            let packed = match field.options.as_ref().and_then(|options| options.packed) {
                Some(false) => " not packed",
                _ => "",
            };
            self.described.insert(
                format!("{name}#{}", field.number()),
                format!("{presence} {kind} {}{oneof}{packed}", field.name()),
            );
        }
        let reserved: BTreeSet<_> =
            message.reserved_range.iter().flat_map(|range| range.start()..range.end()).collect();
        self.described.insert(format!("{name} reserved"), format!("{reserved:?}"));
        self.messages.insert(name);
    }

    fn add_enum(&mut self, scope: &str, enumeration: &EnumDescriptorProto) {
        let values: BTreeMap<_, _> =
            enumeration.value.iter().map(|value| (value.number(), value.name())).collect();
        let text: Vec<_> =
            values.iter().map(|(number, name)| format!("+{name}={number}")).collect();
        self.described.insert(format!("{scope}.{}", enumeration.name()), text.join(" "));
    }
}

fn real() -> Elements {
    let bytes = include_bytes!("../data/ifrt/jaxlib-0.10.2.fds.binpb");
    Elements::of(&FileDescriptorSet::decode(&bytes[..]).unwrap())
}

fn newest() -> Elements {
    let bytes = include_bytes!("../data/ifrt/jaxlib-0.12.0.1.fds.binpb");
    Elements::of(&FileDescriptorSet::decode(&bytes[..]).unwrap())
}

fn ours() -> Elements {
    let bytes = include_bytes!("../../proto/descriptors.binpb");
    let mut set = FileDescriptorSet::decode(&bytes[..]).unwrap();
    set.file.retain(|file| !file.package().starts_with("serdes"));
    Elements::of(&set)
}

fn message_of(element: &str) -> &str {
    element.split(['#', ' ', '/']).next().unwrap()
}

#[test]
fn every_element_is_that_of_0_10_2_or_in_the_table_of_additions() {
    let (real, ours) = (real(), ours());
    let additions: BTreeMap<_, _> = SINCE_0_10_2.into_iter().collect();
    for (element, description) in &ours.described {
        if OPAQUE.contains(&message_of(element)) {
            continue;
        }
        match (real.described.get(element), additions.get(element.as_str())) {
            (Some(there), Some(added)) if !added.starts_with('+') => {
                panic!("{element}: 0.10.2 has it ({there}), so it was not added")
            }
            (Some(there), Some(added)) => {
                let wanted: BTreeSet<_> = there.split(' ').chain(added.split(' ')).collect();
                assert_eq!(description.split(' ').collect::<BTreeSet<_>>(), wanted, "{element}");
            }
            (Some(there), None) => assert_eq!(description, there, "{element}"),
            (None, Some(added)) => assert_eq!(description, added, "{element}"),
            (None, None) if element.ends_with(" reserved") => {
                assert!(
                    additions.keys().any(|added| message_of(added) == message_of(element)),
                    "{element}: a message that no real build has"
                );
            }
            (None, None) => panic!("{element}: {description}, which no real build has"),
        }
    }
    for element in additions.keys() {
        assert!(ours.described.contains_key(*element), "{element} is missing");
    }
}

#[test]
fn nothing_of_0_10_2_is_missing() {
    let (real, ours) = (real(), ours());
    for (element, description) in &real.described {
        let message = message_of(element);
        let whole = WHOLE_PACKAGES
            .iter()
            .any(|package| message.strip_prefix(package).is_some_and(|rest| rest.starts_with('.')));
        if OPAQUE.contains(&message) || !(whole || ours.messages.contains(message)) {
            continue;
        }
        assert!(ours.described.contains_key(element), "{element}: {description} is missing");
    }
}

#[test]
fn messages_that_later_builds_dropped_are_kept() {
    let ours = ours();
    for message in GONE_IN_0_12 {
        assert!(ours.messages.contains(message), "{message}");
    }
}

#[test]
fn elements_are_those_of_0_12_0_1_but_for_dropped_messages() {
    let (newest, ours) = (newest(), ours());
    let in_whole_package = |message: &str| {
        WHOLE_PACKAGES
            .iter()
            .any(|package| message.strip_prefix(package).is_some_and(|rest| rest.starts_with('.')))
    };
    for (element, description) in &newest.described {
        let message = message_of(element);
        if !in_whole_package(message) && !ours.messages.contains(message)
            || OPAQUE.contains(&message)
        {
            continue;
        }
        assert_eq!(ours.described.get(element), Some(description), "{element}");
    }
    for element in ours.described.keys().filter(|element| in_whole_package(message_of(element))) {
        let known =
            newest.described.contains_key(element) || GONE_IN_0_12.contains(&message_of(element));
        assert!(known, "{element} is not in 0.12.0.1");
    }
    for message in GONE_IN_0_12 {
        assert!(!newest.messages.contains(message), "{message}");
    }
}
