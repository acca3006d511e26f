//! Writes golden bytes as text that can be read in a diff: the fields by number and name, with
//! their bytes beside them.

use std::fmt::Write as _;

use prost::encoding::{self, WireType};
use prost_types::{
    DescriptorProto, EnumDescriptorProto, FieldDescriptorProto, FileDescriptorProto,
    FileDescriptorSet, field_descriptor_proto::Type,
};

use super::futures::message_of;

/// Limit on the bytes that are shown beside a field.
const SHOWN_BYTES: usize = 24;

/// Column at which the bytes begin.
const BYTES_COLUMN: usize = 64;

/// Writes messages as text.
pub(crate) struct Printer<'a>(pub(crate) &'a FileDescriptorSet);

/// A field as encoded in the bytes.
struct Found<'a> {
    number: u32,
    /// The key, and the length if there is one.
    head: &'a [u8],
    content: &'a [u8],
    wire_type: WireType,
}

impl Found<'_> {
    fn varint(&self) -> u64 {
        encoding::decode_varint(&mut { self.content }).unwrap()
    }
}

fn fields(message: &[u8]) -> Vec<Found<'_>> {
    let mut found = Vec::new();
    let mut rest = message;
    while !rest.is_empty() {
        let start = rest;
        let (number, wire_type) = encoding::decode_key(&mut rest).unwrap();
        let length = match wire_type {
            WireType::Varint => {
                let mut behind = rest;
                encoding::decode_varint(&mut behind).unwrap();
                rest.len() - behind.len()
            }
            WireType::LengthDelimited => encoding::decode_varint(&mut rest).unwrap() as usize,
            WireType::SixtyFourBit => 8,
            WireType::ThirtyTwoBit => 4,
            group => panic!("{group:?}: no message of ours has a group"),
        };
        let head = &start[..start.len() - rest.len()];
        let (content, behind) = rest.split_at(length);
        rest = behind;
        found.push(Found { number, head, content, wire_type });
    }
    found
}

fn hexadecimal(bytes: &[u8]) -> String {
    let shown = bytes.iter().take(SHOWN_BYTES);
    let mut text: Vec<String> = shown.map(|byte| format!("{byte:02x}")).collect();
    if bytes.len() > SHOWN_BYTES {
        text.push("...".to_owned());
    }
    text.join(" ")
}

/// Returns the content if it is text, otherwise only its length.
fn shown(bytes: &[u8]) -> String {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains(|letter: char| letter.is_control()) => format!("{text:?}"),
        _ => format!("{} bytes", bytes.len()),
    }
}

impl Printer<'_> {
    /// Prints the fields of a message; only the bytes if no file declares the message.
    pub(crate) fn print(&self, message: &str, bytes: &[u8]) -> String {
        let mut text = String::new();
        match self.message(message) {
            Some(descriptor) => self.print_fields(descriptor, bytes, 0, &mut text),
            None => line(&mut text, 0, &shown(bytes), bytes),
        }
        text
    }

    /// Returns the result of `find` in the file that declares `name`, given the rest of the name.
    fn declared<T>(
        &self,
        name: &str,
        find: impl Fn(&FileDescriptorProto, &str) -> Option<T>,
    ) -> Option<T> {
        let name = name.trim_start_matches('.');
        self.0
            .file
            .iter()
            .find_map(|file| find(file, name.strip_prefix(file.package())?.strip_prefix('.')?))
    }

    fn message(&self, name: &str) -> Option<DescriptorProto> {
        self.declared(name, |file, name| message_in(file, name).cloned())
    }

    fn enumeration(&self, name: &str) -> Option<EnumDescriptorProto> {
        self.declared(name, |file, name| {
            let (around, own) = name.rsplit_once('.').unwrap_or(("", name));
            let declared = match message_in(file, around) {
                Some(message) => &message.enum_type,
                None => &file.enum_type,
            };
            declared.iter().find(|declared| declared.name() == own).cloned()
        })
    }

    fn print_fields(
        &self,
        descriptor: DescriptorProto,
        bytes: &[u8],
        depth: usize,
        text: &mut String,
    ) {
        let mut type_name = String::new();
        for found in fields(bytes) {
            let number = found.number;
            let field = descriptor.field.iter().find(|field| field.number() == number as i32);
            let Some(field) = field else {
                // The fields of compilers are not declared here, and are shown whole.
                let whole = [found.head, found.content].concat();
                line(text, depth, &format!("{number} (not declared)"), &whole);
                continue;
            };
            let nested = if field.r#type() == Type::Message {
                self.message(field.type_name())
            } else if descriptor.name() == "Serialized" && number == 2 {
                self.message(&message_of(&type_name))
            } else {
                None
            };
            let label = format!("{number} {}", field.name());
            if let Some(nested) = nested {
                line(text, depth, &label, found.head);
                self.print_fields(nested, found.content, depth + 1, text);
                continue;
            }
            if descriptor.name() == "Serialized" && number == 1 {
                type_name = String::from_utf8(found.content.to_vec()).unwrap();
            }
            let value = self.value(field, &found);
            line(text, depth, &format!("{label}: {value}"), &[found.head, found.content].concat());
        }
    }

    fn value(&self, field: &FieldDescriptorProto, found: &Found<'_>) -> String {
        match found.wire_type {
            WireType::Varint => self.number(field, found.varint()),
            WireType::SixtyFourBit => {
                i64::from_le_bytes(found.content.try_into().unwrap()).to_string()
            }
            WireType::ThirtyTwoBit => {
                format!("{:?}", f32::from_le_bytes(found.content.try_into().unwrap()))
            }
            _ => match field.r#type() {
                Type::String | Type::Bytes | Type::Message => shown(found.content),
                Type::Sfixed64 => {
                    let numbers = found.content.chunks(8);
                    let numbers =
                        numbers.map(|number| i64::from_le_bytes(number.try_into().unwrap()));
                    format!("{:?}", numbers.collect::<Vec<_>>())
                }
                _ => {
                    let (mut rest, mut numbers) = (found.content, Vec::new());
                    while !rest.is_empty() {
                        let bits = encoding::decode_varint(&mut rest).unwrap();
                        numbers.push(self.number(field, bits));
                    }
                    format!("[{}]", numbers.join(", "))
                }
            },
        }
    }

    fn number(&self, field: &FieldDescriptorProto, bits: u64) -> String {
        match field.r#type() {
            Type::Bool => (bits != 0).to_string(),
            Type::Uint32 | Type::Uint64 => bits.to_string(),
            Type::Enum => {
                let declared = self.enumeration(field.type_name());
                let values = declared.iter().flat_map(|declared| &declared.value);
                let mut named = values.filter(|value| value.number() == bits as i32);
                let name = named.next().map_or("?", |value| value.name());
                format!("{} {name}", bits as i32)
            }
            _ => (bits as i64).to_string(),
        }
    }
}

/// Returns the message of this name, which is preceded by its outer messages with dots.
fn message_in<'a>(file: &'a FileDescriptorProto, name: &str) -> Option<&'a DescriptorProto> {
    let mut parts = name.split('.');
    let first = parts.next()?;
    let start = file.message_type.iter().find(|message| message.name() == first)?;
    parts.try_fold(start, |message, part| {
        message.nested_type.iter().find(|nested| nested.name() == part)
    })
}

fn line(text: &mut String, depth: usize, what: &str, bytes: &[u8]) {
    let left = format!("{:indent$}{what}", "", indent = 2 * depth);
    writeln!(text, "{left:BYTES_COLUMN$}  {}", hexadecimal(bytes)).unwrap();
}
