//! Schema of IFRT's messages: the fields that hold versions, and the fields that hold messages with
//! versions.
//!
//! The table is generated from the descriptors of `proto/`, and a test compares the two.

/// The content of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The message of this name.
    Message(&'static str),
    /// A `Serialized`.
    Serialized,
    /// Bytes that a runtime wrote, usually a `Serialized`.
    Bytes,
}

/// A field that holds messages with versions, as number, name and content.
pub(super) type Field = (u32, &'static str, Content);

/// A message type.
#[derive(Debug)]
pub(super) struct Schema {
    /// The full name.
    pub(super) message: &'static str,
    /// The number of the field with the version, if it has one.
    pub(super) version: Option<u32>,
    /// The fields that hold messages with versions.
    pub(super) fields: &'static [Field],
}

impl Schema {
    /// Returns true if this is the message `name` of `package`.
    pub(super) fn is(&self, package: &str, name: &str) -> bool {
        let own = self.message.strip_prefix(package).and_then(|own| own.strip_prefix('.'));
        own == Some(name)
    }
}

use Content::{Bytes, Message, Serialized};

/// All messages that have a version or contain messages that do.
pub(super) const SCHEMAS: &[Schema] = include!("../../proto/generated/ifrt_versions.rs");

/// Returns the message with this full name.
pub(super) fn find(message: &str) -> Option<&'static Schema> {
    SCHEMAS.iter().find(|schema| schema.message == message)
}
