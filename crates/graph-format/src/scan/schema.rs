//! Message schemas as data: names of fields, and their encoding.
//!
//! The tables themselves belong to the crates that read the messages.

/// The index of a message in its [`Schema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageId(pub u8);

/// The type of a field, as in a `.proto` file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    Double,
    Float,
    Int64,
    Uint64,
    Int32,
    Fixed64,
    Bool,
    /// Must be UTF-8.
    String,
    /// A string of a proto2 file: the binary parser does not check its encoding.
    UncheckedString,
    Bytes,
    Message(MessageId),
    Enum(u8),
    Uint32,
    Sint64,
}

/// Encoding of a field that is not packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Encoding {
    Varint,
    Fixed32,
    Fixed64,
    Delimited,
}

impl Kind {
    /// Returns the wire encoding of one value of this type.
    #[inline]
    pub const fn encoding(self) -> Encoding {
        match self {
            Self::Double | Self::Fixed64 => Encoding::Fixed64,
            Self::Float => Encoding::Fixed32,
            Self::Int64
            | Self::Uint64
            | Self::Int32
            | Self::Bool
            | Self::Enum(_)
            | Self::Uint32
            | Self::Sint64 => Encoding::Varint,
            Self::String | Self::UncheckedString | Self::Bytes | Self::Message(_) => {
                Encoding::Delimited
            }
        }
    }
}

/// The label of a field: the number of its occurrences, and whether an absent field differs from
/// its default.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    Repeated,
    /// Singular, with presence.
    Optional,
    /// Singular, without presence: the default value means absent.
    Plain,
}

/// A field of a message.
#[derive(Debug)]
pub struct Field {
    pub number: u32,
    pub name: &'static str,
    pub kind: Kind,
    pub label: Label,
    /// The oneof of the field, counted from 1; 0 for none.
    pub oneof: u8,
}

impl Field {
    pub const fn new(number: u32, name: &'static str, kind: Kind, label: Label, oneof: u8) -> Self {
        Self { number, name, kind, label, oneof }
    }
}

/// Field numbers below this are found by a table; no schema has larger ones.
const NUMBERS: usize = 64;

/// A message type: its fields, and a table of them by number.
#[derive(Debug)]
pub struct MessageType {
    pub name: &'static str,
    pub fields: &'static [Field],
    /// Position in `fields` plus one, by field number; 0 for unused numbers.
    index: [u8; NUMBERS],
}

impl MessageType {
    #[expect(
        clippy::indexing_slicing,
        reason = "evaluated by the compiler, which refuses what is out of range"
    )]
    pub const fn new(name: &'static str, fields: &'static [Field]) -> Self {
        let mut index = [0; NUMBERS];
        let mut position = 0;
        while position < fields.len() {
            // A number beyond the table, or more than 255 fields, fails here at compile time.
            assert!(position < 255);
            index[fields[position].number as usize] = position as u8 + 1;
            position += 1;
        }
        Self { name, fields, index }
    }

    /// Returns the field with this number.
    #[inline]
    pub fn field(&self, number: u32) -> Option<&'static Field> {
        let position = *self.index.get(number as usize)?;
        self.fields.get(usize::from(position).checked_sub(1)?)
    }

    /// Returns the field with this name.
    pub fn field_named(&self, name: &str) -> Option<&'static Field> {
        self.fields.iter().find(|field| field.name == name)
    }
}

/// A set of messages that refer to each other.
#[derive(Clone, Copy, Debug)]
pub struct Schema {
    messages: &'static [MessageType],
}

impl Schema {
    /// Creates a schema of these messages; a [`MessageId`] is an index into them.
    pub const fn new(messages: &'static [MessageType]) -> Self {
        Self { messages }
    }

    /// Returns the fields of a message; a message outside the schema has none.
    #[inline]
    pub fn message(self, id: MessageId) -> &'static MessageType {
        static NOTHING: MessageType = MessageType::new("", &[]);
        self.messages.get(usize::from(id.0)).unwrap_or(&NOTHING)
    }

    /// Returns the message with this full name (`tensorflow.GraphDef`).
    pub fn by_name(self, name: &str) -> Option<MessageId> {
        let index = self.messages.iter().position(|message| message.name == name)?;
        u8::try_from(index).ok().map(MessageId)
    }
}
