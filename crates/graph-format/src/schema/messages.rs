//! Descriptions of messages and enumerations in the tables.
//!
//! Does not depend on the use of the messages.

use super::{
    EnumType,
    generated::tables::{self, TENSOR_PROTO},
};
use crate::scan::{Kind, MessageId, MessageType, Schema};

/// The messages that are reachable from a SavedModel.
pub const TENSORFLOW: Schema = Schema::new(&tables::MESSAGES);

impl MessageId {
    /// Returns the table's description of this message.
    #[inline]
    pub fn describe(self) -> &'static MessageType {
        TENSORFLOW.message(self)
    }

    /// Returns the message with this full name (`tensorflow.GraphDef`).
    pub fn by_name(name: &str) -> Option<Self> {
        TENSORFLOW.by_name(name)
    }
}

impl EnumType {
    /// Returns the enumeration that [`Kind::Enum`] names.
    pub fn get(index: u8) -> Option<&'static Self> {
        tables::ENUMS.get(usize::from(index))
    }

    /// Returns the enumeration of element types (`DT_FLOAT` and so on).
    pub fn data_types() -> Option<&'static Self> {
        match TENSOR_PROTO.describe().field_named("dtype")?.kind {
            Kind::Enum(index) => Self::get(index),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{GRAPH_DEF, NODE_DEF, VERSION_DEF},
        *,
    };

    #[test]
    fn schema_table_has_every_type_that_a_field_names() {
        for message in &tables::MESSAGES {
            for field in message.fields {
                match field.kind {
                    Kind::Message(id) => {
                        assert!(usize::from(id.0) < tables::MESSAGES.len(), "{}", field.name)
                    }
                    Kind::Enum(index) => assert!(EnumType::get(index).is_some(), "{}", field.name),
                    _ => {}
                }
                assert!(std::ptr::eq(message.field(field.number).unwrap(), field));
            }
        }
    }

    #[test]
    fn the_messages_that_the_readers_name_are_the_ones_they_mean() {
        assert_eq!(VERSION_DEF.describe().name, "tensorflow.VersionDef");
        assert_eq!(MessageId::by_name("tensorflow.GraphDef"), Some(GRAPH_DEF));
        assert_eq!(NODE_DEF.describe().field(2).unwrap().name, "op");
        assert!(GRAPH_DEF.describe().field(99).is_none());
        assert!(MessageId::by_name("tensorflow.Nothing").is_none());
    }
}
