//! An iterator over the fields of a message in memory, without building the message.
//!
//! One cursor serves two parsers, whose [`Dialect`] decides what is accepted. Nothing is allocated
//! for an announced length.
//!
//! The module does not depend on messages: the caller knows the meaning of each field.

use super::{Dialect, MAXIMUM_DEPTH};

/// The error of a malformed message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at byte {at} of the message")]
pub struct Malformed {
    /// The reason.
    pub reason: &'static str,
    /// The position in bytes from the start of the innermost message.
    pub at: usize,
}

/// The value of a field, borrowed from the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FieldValue<'a> {
    /// Wire type 0.
    Varint(u64),
    /// Wire type 1.
    Fixed64(u64),
    /// Wire type 5.
    Fixed32(u32),
    /// Wire type 2: a string, a message, or packed numbers.
    Bytes(&'a [u8]),
    /// The fields between the marks of a group; none of our messages has one.
    Group,
}

/// A field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field<'a> {
    /// The number of the field.
    pub number: u32,
    /// The value of the field.
    pub value: FieldValue<'a>,
    /// The whole field, including its tag.
    pub raw: &'a [u8],
}

/// A reader of the fields of a message, one after the other.
#[derive(Clone, Copy, Debug)]
pub struct WireReader<'a> {
    rest: &'a [u8],
    /// The number of bytes of the message.
    length: usize,
    dialect: Dialect,
    /// The number of enclosing messages.
    depth: usize,
}

impl<'a> WireReader<'a> {
    /// Creates a reader of an outermost message.
    #[inline]
    pub const fn new(dialect: Dialect, bytes: &'a [u8]) -> Self {
        Self { rest: bytes, length: bytes.len(), dialect, depth: 0 }
    }

    /// Creates a reader of a message that is the value of a field of this one.
    ///
    /// # Errors
    /// [`Malformed`] if messages are nested too deeply.
    #[inline]
    pub fn nested(&self, bytes: &'a [u8]) -> Result<Self, Malformed> {
        if self.depth >= MAXIMUM_DEPTH {
            return Err(self.malformed("messages nested over 100 deep"));
        }
        Ok(Self { depth: self.depth + 1, ..Self::new(self.dialect, bytes) })
    }

    #[cold]
    const fn malformed(&self, reason: &'static str) -> Malformed {
        Malformed { reason, at: self.length - self.rest.len() }
    }

    /// Returns the next field; `None` at the end.
    ///
    /// # Errors
    /// [`Malformed`] if the dialect's parser does not accept the bytes.
    #[inline(always)]
    pub fn next_field(&mut self) -> Result<Option<Field<'a>>, Malformed> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let start = self.rest;
        let (number, wire_type) = self.tag()?;
        let value = match wire_type {
            3 => self.skip_group(number)?,
            4 => return Err(self.malformed("the end of a group that was not opened")),
            wire_type => self.value(wire_type)?,
        };
        let raw = start.get(..start.len() - self.rest.len()).unwrap_or_default();
        Ok(Some(Field { number, value, raw }))
    }

    /// Returns true if all fields were read.
    #[inline]
    pub const fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the content of the next field if its number is `number`, below 16, with a length
    /// below 128; otherwise reads nothing. A fast path for messages of small fields in the order of
    /// their numbers, for which the general one takes several times as long.
    #[inline]
    pub fn take_short(&mut self, number: u8) -> Option<&'a [u8]> {
        let [tag, length @ ..0x80, rest @ ..] = self.rest else { return None };
        if *tag != number << 3 | 2 {
            return None;
        }
        let (content, rest) = rest.split_at_checked(usize::from(*length))?;
        self.rest = rest;
        Some(content)
    }

    /// Returns the number and the wire type of the next field.
    #[inline(always)]
    fn tag(&mut self) -> Result<(u32, u8), Malformed> {
        let tag = self.dialect.tag(&mut self.rest).ok_or_else(|| self.endless_number())?;
        match tag >> 3 {
            0 => Err(self.malformed("a field with number 0")),
            number => Ok((number, (tag & 7) as u8)),
        }
    }

    /// Returns the value of a field that is not a group.
    #[inline(always)]
    fn value(&mut self, wire_type: u8) -> Result<FieldValue<'a>, Malformed> {
        match wire_type {
            0 => {
                let value = self.dialect.varint(&mut self.rest);
                value.map(FieldValue::Varint).ok_or_else(|| self.endless_number())
            }
            1 => self.take().map(|bytes| FieldValue::Fixed64(u64::from_le_bytes(bytes))),
            2 => self.delimited().map(FieldValue::Bytes),
            5 => self.take().map(|bytes| FieldValue::Fixed32(u32::from_le_bytes(bytes))),
            _ => Err(self.malformed("a wire type that does not exist")),
        }
    }

    #[inline(always)]
    fn delimited(&mut self) -> Result<&'a [u8], Malformed> {
        let length = self.dialect.length(&mut self.rest).ok_or_else(|| self.endless_number())?;
        if length > self.dialect.longest_field() {
            return Err(self.malformed("a length of 2 GiB or more"));
        }
        let split = usize::try_from(length).ok().and_then(|at| self.rest.split_at_checked(at));
        let (bytes, rest) = split.ok_or_else(|| self.overlong_field())?;
        self.rest = rest;
        Ok(bytes)
    }

    #[inline(always)]
    fn take<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or_else(|| self.overlong_field())?;
        self.rest = rest;
        Ok(*bytes)
    }

    #[cold]
    const fn endless_number(&self) -> Malformed {
        self.malformed("a variable-length number that does not end")
    }

    #[cold]
    const fn overlong_field(&self) -> Malformed {
        self.malformed("a field that is longer than the message")
    }

    /// Skips the fields of the group `number`, whose start mark was read, and its end mark.
    #[cold]
    fn skip_group(&mut self, number: u32) -> Result<FieldValue<'a>, Malformed> {
        let mut open = vec![number];
        while let Some(innermost) = open.last().copied() {
            let depth = self.depth + open.len();
            if depth > MAXIMUM_DEPTH {
                return Err(self.malformed("groups nested over 100 deep"));
            }
            if self.rest.is_empty() {
                return Err(self.malformed("a group that does not end"));
            }
            match self.tag()? {
                (end, 4) if end == innermost => drop(open.pop()),
                (_, 4) => return Err(self.malformed("the end of another group")),
                _ if depth == MAXIMUM_DEPTH && !self.dialect.fills_the_deepest_group() => {
                    return Err(self.malformed("a field in groups nested 100 deep"));
                }
                (inner, 3) => open.push(inner),
                (_, wire_type) => drop(self.value(wire_type)?),
            }
        }
        Ok(FieldValue::Group)
    }
}

impl FieldValue<'_> {
    /// Passes each number of a repeated varint field, packed or not, to `each`. A value of another
    /// wire type is an unknown field, and passes none.
    ///
    /// # Errors
    /// [`Malformed`] if a packed list ends inside a number.
    pub fn each_varint(self, dialect: Dialect, mut each: impl FnMut(u64)) -> Result<(), Malformed> {
        match self {
            Self::Varint(value) => each(value),
            Self::Bytes(packed) => {
                let mut list = WireReader::new(dialect, packed);
                while !list.is_at_end() {
                    let value = dialect.varint(&mut list.rest);
                    each(value.ok_or_else(|| list.endless_number())?);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Fails unless `bytes` are a sequence of fields that prost accepts.
///
/// # Errors
/// [`Malformed`].
pub fn check_fields(bytes: &[u8]) -> Result<(), Malformed> {
    let mut reader = WireReader::new(Dialect::Prost, bytes);
    while reader.next_field()?.is_some() {}
    Ok(())
}

#[cfg(test)]
mod tests;
