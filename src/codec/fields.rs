//! Reads the fields of a message as typed values: numbers, text, lists and nested messages.
//!
//! All encodings that protobuf allows are read: lists may be packed or not and come in several
//! pieces, pieces of a message are merged, and of any other field the last value counts. Unknown
//! fields are skipped. The module does not depend on the meaning of a message.

use std::{borrow::Cow, fmt};

use super::DecodeError;
use crate::wire::{
    Dialect, FieldValue, Malformed, WireReader,
    packed::{self, PackedNumber},
    varint,
};

/// An iterator over the fields of a message.
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

    /// Returns the number and the value of the next field, or `None` at the end.
    // Always inlined: a field that is passed through memory waits for its own stores, which took
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

    /// Returns the content of the next field if its number is `number` and it is short; see
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

/// The value of a field. The caller knows its type.
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

    /// Returns the content of a bytes field, or of a nested message.
    #[inline]
    pub(crate) fn bytes(self) -> Result<&'a [u8], DecodeError> {
        match self.value {
            FieldValue::Bytes(bytes) => Ok(bytes),
            _ => self.wrong("length-delimited"),
        }
    }

    /// Returns the text.
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

    /// Returns a number that is written as a varint; a shorter type takes its low bits.
    #[inline]
    pub(crate) fn number<T: PackedNumber>(self) -> Result<T, DecodeError> {
        self.varint().map(T::from_bits)
    }

    /// Returns a boolean.
    #[inline]
    pub(crate) fn truth(self) -> Result<bool, DecodeError> {
        self.varint().map(|bits| bits != 0)
    }

    /// Returns the bits of a fixed-width number of 8 bytes.
    #[inline]
    pub(crate) fn fixed64(self) -> Result<u64, DecodeError> {
        match self.value {
            FieldValue::Fixed64(bits) => Ok(bits),
            _ => self.wrong("64 bits"),
        }
    }

    /// Returns the bits of a fixed-width number of 4 bytes.
    #[inline]
    pub(crate) fn fixed32(self) -> Result<u32, DecodeError> {
        match self.value {
            FieldValue::Fixed32(bits) => Ok(bits),
            _ => self.wrong("32 bits"),
        }
    }

    /// Passes one number of a list, or each number of a packed piece, to `push`; for short lists.
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

    /// Like [`few`](Self::few), for lists that may be long: appends to `list`.
    #[inline]
    pub(crate) fn many<T: PackedNumber>(self, list: &mut Vec<T>) -> Result<(), DecodeError> {
        match self.value {
            FieldValue::Bytes(packed) => {
                packed::decode(packed, list).or_else(|error| self.malformed(error))
            }
            _ => self.few(|number| list.push(number)),
        }
    }

    /// Appends one fixed-width number of 8 bytes, or a packed piece of a list of them.
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

    /// Returns the bytes of a packed list, or `None` for a single number that is not packed.
    #[inline]
    pub(crate) const fn packed(self) -> Option<&'a [u8]> {
        match self.value {
            FieldValue::Bytes(packed) => Some(packed),
            _ => None,
        }
    }

    /// Adds one number of a list, or a packed piece of it, to `list` without reading the numbers.
    #[inline]
    pub(crate) fn piece_of(self, list: &mut Joined<'a>) -> Result<(), DecodeError> {
        match self.value {
            FieldValue::Bytes(packed) => list.add(packed),
            _ => list.add_varint(self.varint()?),
        }
        Ok(())
    }
}

/// The content of a nested message or a packed list that may come in several pieces.
///
/// Protobuf merges messages and continues lists; in both cases the result is the concatenation of
/// the pieces.
#[derive(Clone, Debug, Default)]
pub(crate) struct Joined<'a>(Option<Cow<'a, [u8]>>);

impl<'a> Joined<'a> {
    /// Appends a piece.
    #[inline]
    pub(crate) fn add(&mut self, piece: &'a [u8]) {
        match &mut self.0 {
            None => self.0 = Some(Cow::Borrowed(piece)),
            Some(all) => all.to_mut().extend_from_slice(piece),
        }
    }

    /// Appends a number of a list that is not packed.
    #[cold]
    fn add_varint(&mut self, bits: u64) {
        varint::push(self.0.get_or_insert_default().to_mut(), bits);
    }

    /// Returns the content; it is empty if no piece was present, as protobuf reads it.
    #[inline]
    pub(crate) fn bytes(&self) -> &[u8] {
        self.given().unwrap_or_default()
    }

    /// Returns the content, or `None` if no piece was present.
    #[inline]
    pub(crate) fn given(&self) -> Option<&[u8]> {
        self.0.as_deref()
    }
}
