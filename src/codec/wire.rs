//! The encoding of protobuf by hand, where generated messages are too slow or would lose what they do not know.

use super::DecodeError;

/// The value of a field as it lies in the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FieldValue<'a> {
    Varint(u64),
    Fixed64(u64),
    Fixed32(u32),
    Bytes(&'a [u8]),
    /// The fields between the marks of a group, which no message of ours has.
    Group,
}

/// A field of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Field<'a> {
    pub(crate) number: u32,
    pub(crate) value: FieldValue<'a>,
    /// The whole field, its key included.
    pub(crate) raw: &'a [u8],
}

/// Groups are long out of use; this bounds how deep a hostile message can nest them.
const DEEPEST_GROUP: u32 = 64;

/// Reads the fields of a message one after the other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WireReader<'a> {
    type_name: &'static str,
    rest: &'a [u8],
}

impl<'a> WireReader<'a> {
    /// Reads `bytes`; errors name `type_name`.
    pub(crate) const fn new(type_name: &'static str, bytes: &'a [u8]) -> Self {
        Self { type_name, rest: bytes }
    }

    #[cold]
    fn malformed(&self, detail: &'static str) -> DecodeError {
        DecodeError::malformed(self.type_name, detail)
    }

    /// The next field; `None` at the end.
    #[inline]
    pub(crate) fn next_field(&mut self) -> Result<Option<Field<'a>>, DecodeError> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let start = self.rest;
        let (number, wire_type) = self.key()?;
        let value = self.value(number, wire_type, DEEPEST_GROUP)?;
        let length = start.len() - self.rest.len();
        let raw = start.get(..length).unwrap_or_default();
        Ok(Some(Field { number, value, raw }))
    }

    /// Whether all fields were read.
    #[inline]
    pub(crate) const fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    /// The content of the next field if that is `number`, below 16, with a length below 128; otherwise nothing is read. A short way for
    /// messages of small fields in the order of their numbers, for which the general one takes several times as long.
    #[inline]
    pub(crate) fn take_short(&mut self, number: u8) -> Option<&'a [u8]> {
        let [key, length @ ..0x80, rest @ ..] = self.rest else { return None };
        if *key != number << 3 | 2 {
            return None;
        }
        let (content, rest) = rest.split_at_checked(usize::from(*length))?;
        self.rest = rest;
        Some(content)
    }

    #[inline]
    fn key(&mut self) -> Result<(u32, u8), DecodeError> {
        let key = u32::try_from(self.varint()?);
        match key {
            Ok(key) if key >> 3 != 0 => Ok((key >> 3, (key & 7) as u8)),
            _ => Err(self.malformed("the number of a field is not in 1 to 536870911")),
        }
    }

    #[inline]
    fn value(
        &mut self,
        number: u32,
        wire_type: u8,
        depth: u32,
    ) -> Result<FieldValue<'a>, DecodeError> {
        match wire_type {
            0 => self.varint().map(FieldValue::Varint),
            1 => self.take().map(|bytes| FieldValue::Fixed64(u64::from_le_bytes(bytes))),
            2 => {
                let length = self.varint()?;
                let split = usize::try_from(length)
                    .ok()
                    .and_then(|length| self.rest.split_at_checked(length));
                let Some((bytes, rest)) = split else {
                    return Err(self.malformed("a field is longer than the message"));
                };
                self.rest = rest;
                Ok(FieldValue::Bytes(bytes))
            }
            3 => self.skip_group(number, depth),
            5 => self.take().map(|bytes| FieldValue::Fixed32(u32::from_le_bytes(bytes))),
            4 => Err(self.malformed("a group ends that did not begin")),
            _ => Err(self.malformed("a field has an unknown wire type")),
        }
    }

    #[cold]
    fn skip_group(&mut self, number: u32, depth: u32) -> Result<FieldValue<'a>, DecodeError> {
        let Some(depth) = depth.checked_sub(1) else {
            return Err(self.malformed("groups are nested too deep"));
        };
        loop {
            match self.key()? {
                (end, 4) if end == number => return Ok(FieldValue::Group),
                (inner, wire_type) => self.value(inner, wire_type, depth)?,
            };
        }
    }

    #[inline]
    fn take<const N: usize>(&mut self) -> Result<[u8; N], DecodeError> {
        let Some((bytes, rest)) = self.rest.split_first_chunk() else {
            return Err(self.malformed("the message ends inside of a field"));
        };
        self.rest = rest;
        Ok(*bytes)
    }

    #[inline]
    fn varint(&mut self) -> Result<u64, DecodeError> {
        match self.rest {
            [byte, rest @ ..] if *byte < 0x80 => {
                self.rest = rest;
                Ok(u64::from(*byte))
            }
            _ => self.long_varint(),
        }
    }

    fn long_varint(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0;
        for (index, byte) in self.rest.iter().enumerate().take(10) {
            // The tenth byte holds the last bit; what does not fit is an error, as in prost.
            if index == 9 && *byte > 1 {
                return Err(self.malformed("a varint does not fit 64 bits"));
            }
            value |= u64::from(byte & 0x7f) << (7 * index);
            if *byte < 0x80 {
                self.rest = self.rest.get(index + 1..).unwrap_or_default();
                return Ok(value);
            }
        }
        Err(self.malformed(if self.rest.len() < 10 {
            "the message ends inside of a varint"
        } else {
            "a varint is longer than 10 bytes"
        }))
    }
}

/// Fails unless `bytes` are a sequence of fields.
pub(crate) fn check_fields(type_name: &'static str, bytes: &[u8]) -> Result<(), DecodeError> {
    let mut reader = WireReader::new(type_name, bytes);
    while reader.next_field()?.is_some() {}
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn fields(bytes: &[u8]) -> Result<Vec<(u32, FieldValue<'_>)>, DecodeError> {
        let mut reader = WireReader::new("Test", bytes);
        let mut fields = Vec::new();
        while let Some(field) = reader.next_field()? {
            fields.push((field.number, field.value));
        }
        Ok(fields)
    }

    #[test]
    fn fields_of_every_wire_type_are_read() {
        let bytes = [
            0x08, 0x96, 0x01, 0x11, 1, 0, 0, 0, 0, 0, 0, 0, 0x1a, 2, b'a', b'b', 0x23, 0x08, 1,
            0x24, 0x2d, 2, 0, 0, 0,
        ];
        assert_eq!(
            fields(&bytes).unwrap(),
            [
                (1, FieldValue::Varint(150)),
                (2, FieldValue::Fixed64(1)),
                (3, FieldValue::Bytes(b"ab")),
                (4, FieldValue::Group),
                (5, FieldValue::Fixed32(2)),
            ]
        );
    }

    #[test]
    fn a_short_field_is_taken_if_it_comes_next() {
        let bytes = [0x12, 1, b'a', 0x12, 0x81, 0, b'b', 0x0a, 3, b'c'];
        let mut reader = WireReader::new("Test", &bytes);
        assert_eq!(reader.take_short(1), None);
        assert_eq!(reader.take_short(2), Some(&b"a"[..]));
        // A length in two bytes, though it fits one.
        assert_eq!(reader.take_short(2), None);
        assert_eq!(reader.next_field().unwrap().unwrap().value, FieldValue::Bytes(b"b"));
        // Longer than the message.
        assert_eq!(reader.take_short(1), None);
        assert!(reader.next_field().is_err());
        assert_eq!(WireReader::new("Test", &[]).take_short(1), None);
    }

    #[test]
    fn what_is_no_message_is_an_error() {
        let deep = vec![0x0b; 1000];
        for bytes in [
            &[0x08][..],
            &[0x0a, 5],
            &[0x11, 0],
            &[0x00],
            &[0x0c],
            &[0x0f],
            &[0x0b, 0x14],
            &[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02],
            &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            &deep,
        ] {
            assert!(fields(bytes).is_err(), "{bytes:?}");
        }
    }

    proptest! {
        #[test]
        fn the_raw_fields_are_the_message(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            let mut reader = WireReader::new("Test", &bytes);
            let mut raw = Vec::new();
            let whole = loop {
                match reader.next_field() {
                    Ok(Some(field)) => raw.extend_from_slice(field.raw),
                    Ok(None) => break true,
                    Err(_) => break false,
                }
            };
            prop_assert!(bytes.starts_with(&raw));
            prop_assert_eq!(whole, raw.len() == bytes.len());
        }
    }
}
