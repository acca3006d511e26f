//! Values in which one message at any depth records a version that this build does not know.

use std::ops::Range;

use prost::{
    Message as _,
    encoding::{self, WireType},
};
use prost_types::{DescriptorProto, FileDescriptorSet};

/// Finds messages by their full names.
pub(crate) struct Descriptors(FileDescriptorSet);

impl Descriptors {
    pub(crate) fn new() -> Self {
        let bytes = include_bytes!("../../../proto/descriptors.binpb");
        Self(FileDescriptorSet::decode(&bytes[..]).unwrap())
    }

    /// Returns the message of this name in a package of IFRT, nested ones included; other packages
    /// record no versions.
    fn find(&self, name: &str) -> Option<&DescriptorProto> {
        let name = name.trim_start_matches('.');
        let of_ifrt = |package: &str| ["xla.ifrt", "serdes.ifrt"].contains(&package);
        self.0.file.iter().filter(|file| of_ifrt(file.package())).find_map(|file| {
            let mut parts = name.strip_prefix(file.package())?.strip_prefix('.')?.split('.');
            let first = parts.next()?;
            let start = file.message_type.iter().find(|message| message.name() == first)?;
            parts.try_fold(start, |message, part| {
                message.nested_type.iter().find(|nested| nested.name() == part)
            })
        })
    }

    /// Returns the bytes of `message` with the version `future` in one place at a time, by the
    /// places as field names with dots.
    pub(crate) fn futures(
        &self,
        message: &str,
        bytes: &[u8],
        future: i32,
    ) -> Vec<(String, Vec<u8>)> {
        let mut found = Vec::new();
        let Some(descriptor) = self.find(message) else { return found };
        let version =
            descriptor.field.iter().find(|field| field.name().ends_with("version_number"));
        if let Some(field) = version {
            let mut changed = bytes.to_vec();
            // Of a field that occurs twice the last value counts.
            encoding::int32::encode(field.number() as u32, &future, &mut changed);
            found.push((String::new(), changed));
        }
        let mut type_name = String::new();
        for (number, whole, content) in nested(bytes) {
            let field = descriptor.field.iter().find(|field| field.number() == number as i32);
            let field = field.unwrap_or_else(|| panic!("{message} has no field {number}"));
            let inner = &bytes[content];
            let inner_name = if descriptor.name() == "Serialized" {
                if number == 1 {
                    type_name = String::from_utf8(inner.to_vec()).unwrap();
                    continue;
                }
                message_of(&type_name)
            } else if field.r#type() == prost_types::field_descriptor_proto::Type::Message {
                field.type_name().to_owned()
            } else {
                continue;
            };
            for (place, inner) in self.futures(&inner_name, inner, future) {
                let mut changed = bytes[..whole.start].to_vec();
                encoding::bytes::encode(number, &inner, &mut changed);
                changed.extend_from_slice(&bytes[whole.end..]);
                let dot = if place.is_empty() { "" } else { "." };
                found.push((format!("{}{dot}{place}", field.name()), changed));
            }
        }
        found
    }
}

/// Returns the message of a registered name, `xla::ifrt::NAME` or `serdes::ifrt::NAME`; the
/// messages of specs are this project's.
pub(crate) fn message_of(type_name: &str) -> String {
    let (package, name) = type_name.split_once("::ifrt::").unwrap();
    let is_spec = name.ends_with("ShardingSpec") && name != "HloShardingSpec";
    let ours = package == "serdes" || is_spec;
    format!("{}.ifrt.{name}Proto", if ours { "serdes" } else { "xla" })
}

/// Returns the length-delimited fields: number, range of the whole field, range of its content.
fn nested(bytes: &[u8]) -> Vec<(u32, Range<usize>, Range<usize>)> {
    let mut found = Vec::new();
    let mut rest = bytes;
    while !rest.is_empty() {
        let start = bytes.len() - rest.len();
        let (number, wire_type) = encoding::decode_key(&mut rest).unwrap();
        let length = match wire_type {
            WireType::LengthDelimited => encoding::decode_varint(&mut rest).unwrap() as usize,
            WireType::Varint => {
                encoding::decode_varint(&mut rest).unwrap();
                continue;
            }
            WireType::SixtyFourBit => 8,
            WireType::ThirtyTwoBit => 4,
            other => panic!("{other:?}"),
        };
        let content = bytes.len() - rest.len();
        rest = &rest[length..];
        if wire_type == WireType::LengthDelimited {
            found.push((number, start..content + length, content..content + length));
        }
    }
    found
}
