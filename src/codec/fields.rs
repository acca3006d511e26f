//! The fields of a message as their types: numbers, text, lists, and what is nested.
//!
//! Everything that protobuf allows for a field is read: lists packed or not and in several pieces,
//! messages in several pieces, which are merged, and of other values the last one. Unknown fields
//! are skipped. Must never know what a message means.

use std::{borrow::Cow, fmt};

use super::DecodeError;
use crate::wire::{
    Dialect, FieldValue, Malformed, WireReader,
    packed::{self, PackedNumber},
    varint,
};

/// The fields of a message one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fields<'a> {
    type_name: &'static str,
    reader: WireReader<'a>,
}

impl<'a> Fields<'a> {
    /// Creates the fields of `message`; errors name `type_name`.
    #[inline]
    pub(crate) const fn new(type_name: &'static str, message: &'a [u8]) -> Self {
        Self { type_name, reader: WireReader::new(Dialect::Prost, message) }
    }

    /// The next field, as its number and its value; `None` at the end.
    // Always inlined: a field that is handed on through memory waits for its own stores, which took
    // more time than reading it.
    #[inline(always)]
    pub(crate) fn next(&mut self) -> Result<Option<(u32, Value<'a>)>, DecodeError> {
        let field = match self.reader.next_field() {
            Ok(Some(field)) => field,
            Ok(None) => return Ok(None),
            Err(error) => return Err(self.malformed(error)),
        };
        let value = Value { type_name: self.type_name, number: field.number, value: field.value };
        Ok(Some((field.number, value)))
    }

    #[cold]
    fn malformed(&self, error: Malformed) -> DecodeError {
        DecodeError::malformed(self.type_name, error.to_string())
    }

    /// Returns the content of the next field if that is `number` and short; see
    /// [`WireReader::take_short`].
    #[inline]
    pub(crate) fn take_short(&mut self, number: u8) -> Option<&'a [u8]> {
        self.reader.take_short(number)
    }

    /// Like [`take_short`](Self::take_short), as a value.
    #[inline]
    pub(crate) fn take_short_value(&mut self, number: u8) -> Option<Value<'a>> {
        let value = FieldValue::Bytes(self.take_short(number)?);
        Some(Value { type_name: self.type_name, number: number.into(), value })
    }

    /// Returns `true` if all fields were read.
    #[inline]
    pub(crate) const fn is_at_end(&self) -> bool {
        self.reader.is_at_end()
    }
}

/// The value of a field, whose type is known to the caller.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Value<'a> {
    type_name: &'static str,
    number: u32,
    value: FieldValue<'a>,
}

impl<'a> Value<'a> {
    #[cold]
    fn wrong<T>(self, expected: &'static str) -> Result<T, DecodeError> {
        let found = match self.value {
            FieldValue::Varint(_) => "varint",
            FieldValue::Fixed64(_) => "64 bits",
            FieldValue::Fixed32(_) => "32 bits",
            FieldValue::Bytes(_) => "length-delimited",
            FieldValue::Group => "group",
        };
        let number = self.number;
        let detail = format!("the wire type of field {number} is {found}; expected {expected}");
        Err(DecodeError::malformed(self.type_name, detail))
    }

    #[cold]
    fn malformed<T>(self, detail: impl fmt::Display) -> Result<T, DecodeError> {
        let number = self.number;
        Err(DecodeError::malformed(self.type_name, format!("field {number}: {detail}")))
    }

    /// Bytes, or a nested message.
    #[inline]
    pub(crate) fn bytes(self) -> Result<&'a [u8], DecodeError> {
        match self.value {
            FieldValue::Bytes(bytes) => Ok(bytes),
            _ => self.wrong("length-delimited"),
        }
    }

    /// Text.
    #[inline]
    pub(crate) fn text(self) -> Result<&'a str, DecodeError> {
        match std::str::from_utf8(self.bytes()?) {
            Ok(text) => Ok(text),
            Err(error) => self.malformed(format_args!("the text is not UTF-8: {error}")),
        }
    }

    /// Returns the bits of a varint.
    #[inline]
    fn varint(self) -> Result<u64, DecodeError> {
        match self.value {
            FieldValue::Varint(bits) => Ok(bits),
            _ => self.wrong("varint"),
        }
    }

    /// Returns a number that is written as a varint, of which a shorter type takes the low bits.
    #[inline]
    pub(crate) fn number<T: PackedNumber>(self) -> Result<T, DecodeError> {
        self.varint().map(T::from_bits)
    }

    /// Returns a truth.
    #[inline]
    pub(crate) fn truth(self) -> Result<bool, DecodeError> {
        self.varint().map(|bits| bits != 0)
    }

    /// Returns the bits of a fixed number of 8 bytes.
    #[inline]
    pub(crate) fn fixed64(self) -> Result<u64, DecodeError> {
        match self.value {
            FieldValue::Fixed64(bits) => Ok(bits),
            _ => self.wrong("64 bits"),
        }
    }

    /// Returns the bits of a fixed number of 4 bytes.
    #[inline]
    pub(crate) fn fixed32(self) -> Result<u32, DecodeError> {
        match self.value {
            FieldValue::Fixed32(bits) => Ok(bits),
            _ => self.wrong("32 bits"),
        }
    }

    /// Returns one more number of a list, or a packed piece of it: for lists of a few numbers.
    #[inline]
    pub(crate) fn few<T: PackedNumber>(self, mut push: impl FnMut(T)) -> Result<(), DecodeError> {
        let FieldValue::Bytes(mut packed) = self.value else {
            push(self.number()?);
            return Ok(());
        };
        while !packed.is_empty() {
            match varint::checked(&mut packed) {
                Some(bits) => push(T::from_bits(bits)),
                None => return self.malformed(packed::MalformedList),
            }
        }
        Ok(())
    }

    /// Like [`few`](Self::few), for lists that may be long.
    #[inline]
    pub(crate) fn many<T: PackedNumber>(self, list: &mut Vec<T>) -> Result<(), DecodeError> {
        match self.value {
            FieldValue::Bytes(packed) => {
                packed::decode(packed, list).or_else(|error| self.malformed(error))
            }
            _ => self.few(|number| list.push(number)),
        }
    }

    /// Returns one more number of a list of fixed numbers of 8 bytes, or a packed piece of it.
    #[inline]
    pub(crate) fn many_fixed64(self, list: &mut Vec<i64>) -> Result<(), DecodeError> {
        let FieldValue::Bytes(packed) = self.value else {
            list.push(self.fixed64()?.cast_signed());
            return Ok(());
        };
        let (numbers, rest) = packed.as_chunks::<8>();
        if !rest.is_empty() {
            return self.malformed("the list ends inside of a number");
        }
        list.extend(numbers.iter().map(|number| i64::from_le_bytes(*number)));
        Ok(())
    }

    /// Returns a packed list, as its bytes; `None` for a single number of one.
    #[inline]
    pub(crate) const fn packed(self) -> Option<&'a [u8]> {
        match self.value {
            FieldValue::Bytes(packed) => Some(packed),
            _ => None,
        }
    }

    /// Returns one more number of a list, or a packed piece of it, without looking at the numbers.
    #[inline]
    pub(crate) fn piece_of(self, list: &mut Joined<'a>) -> Result<(), DecodeError> {
        match self.value {
            FieldValue::Bytes(packed) => list.add(packed),
            _ => list.add_varint(self.varint()?),
        }
        Ok(())
    }
}

/// The content of a nested message, or a packed list, that may be given in several pieces.
///
/// Protobuf merges messages and continues lists, both of which are what their bytes are one after
/// the other.
#[derive(Clone, Debug, Default)]
pub(crate) struct Joined<'a>(Option<Cow<'a, [u8]>>);

impl<'a> Joined<'a> {
    /// Adds a piece.
    #[inline]
    pub(crate) fn add(&mut self, piece: &'a [u8]) {
        match &mut self.0 {
            None => self.0 = Some(Cow::Borrowed(piece)),
            Some(all) => all.to_mut().extend_from_slice(piece),
        }
    }

    /// Adds a number of a list that is not packed.
    #[cold]
    fn add_varint(&mut self, bits: u64) {
        varint::push(self.0.get_or_insert_default().to_mut(), bits);
    }

    /// Returns the content; empty if it was not given, as protobuf reads it.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.given().unwrap_or_default()
    }

    /// Returns the content, if it was given.
    #[inline]
    pub(crate) fn given(&self) -> Option<&[u8]> {
        self.0.as_deref()
    }
}
