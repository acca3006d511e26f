//! Reads and writes the fields of a serialized message one by one.

use prost::encoding::{WireType, decode_key, decode_varint, encode_key, encode_varint};
use serdes::codec::Status;

use crate::status::status;

/// Value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    Fixed32([u8; 4]),
    Fixed64([u8; 8]),
}

impl Value<'_> {
    /// Returns true if the value is zero or empty, the default that a message omits.
    pub(super) fn is_nothing(self) -> bool {
        match self {
            Self::Number(number) => number == 0,
            Self::Bytes(bytes) => bytes.is_empty(),
            Self::Fixed32(bytes) => bytes == [0; 4],
            Self::Fixed64(bytes) => bytes == [0; 8],
        }
    }

    /// Describes the value for a message; long text is cut.
    pub(super) fn describe(self) -> String {
        /// Maximum number of characters of a text that are shown.
        const SHOWN: usize = 40;
        match self {
            Self::Number(number) => number.cast_signed().to_string(),
            Self::Fixed32(bytes) => f32::from_le_bytes(bytes).to_string(),
            Self::Fixed64(bytes) => f64::from_le_bytes(bytes).to_string(),
            Self::Bytes(bytes) => match std::str::from_utf8(bytes) {
                Ok(text) if !text.contains(char::is_control) => {
                    let mut shown: String = text.chars().take(SHOWN).collect();
                    if shown.len() < text.len() {
                        shown.push('…');
                    }
                    format!("`{}`", shown.escape_debug())
                }
                _ => format!("{} bytes", bytes.len()),
            },
        }
    }

    /// Appends the field to a message.
    pub(super) fn write(self, number: u32, message: &mut Vec<u8>) {
        match self {
            Self::Number(value) => {
                encode_key(number, WireType::Varint, message);
                encode_varint(value, message);
            }
            Self::Bytes(bytes) => {
                encode_key(number, WireType::LengthDelimited, message);
                encode_varint(bytes.len() as u64, message);
                message.extend_from_slice(bytes);
            }
            Self::Fixed32(bytes) => {
                encode_key(number, WireType::ThirtyTwoBit, message);
                message.extend_from_slice(&bytes);
            }
            Self::Fixed64(bytes) => {
                encode_key(number, WireType::SixtyFourBit, message);
                message.extend_from_slice(&bytes);
            }
        }
    }
}

/// Iterator over the fields of a message; it ends with the first error.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

impl<'a> Fields<'a> {
    fn read(&mut self) -> Option<(u32, Value<'a>)> {
        let (number, wire_type) = decode_key(&mut self.0).ok()?;
        let value = match wire_type {
            WireType::Varint => Value::Number(decode_varint(&mut self.0).ok()?),
            WireType::LengthDelimited => {
                let length = usize::try_from(decode_varint(&mut self.0).ok()?).ok()?;
                Value::Bytes(self.split(length)?)
            }
            WireType::SixtyFourBit => Value::Fixed64(self.split(8)?.try_into().ok()?),
            WireType::ThirtyTwoBit => Value::Fixed32(self.split(4)?.try_into().ok()?),
            // XLA has no such fields.
            WireType::StartGroup | WireType::EndGroup => return None,
        };
        Some((number, value))
    }

    fn split(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), Status>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        Some(self.read().ok_or_else(|| {
            self.0 = &[];
            status!(
                InvalidArgument,
                "the compile options are no xla.CompileOptionsProto: a field of them does not end, or is of no type that they have"
            )
        }))
    }
}

/// Decodes the numbers of a packed list; `None` if one is incomplete.
pub(super) fn packed(mut bytes: &[u8]) -> Option<Vec<i64>> {
    let mut numbers = Vec::new();
    while !bytes.is_empty() {
        numbers.push(decode_varint(&mut bytes).ok()?.cast_signed());
    }
    Some(numbers)
}
