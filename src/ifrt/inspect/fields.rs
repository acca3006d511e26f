//! Splits the bytes of a message into fields.

use crate::codec::DecodeError;

/// How deep groups may nest. No message of IFRT has one; they are skipped.
const DEEPEST_GROUP: usize = 100;

/// The value of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Value<'a> {
    Varint(u64),
    Bytes(&'a [u8]),
    /// 4 or 8 bytes, or a group: nothing that is looked at here.
    Fixed,
}

/// The fields of a message, by number, in the order of the bytes; ends with the first error.
pub(super) struct Fields<'a> {
    type_name: &'static str,
    rest: &'a [u8],
}

impl<'a> Fields<'a> {
    pub(super) const fn new(type_name: &'static str, bytes: &'a [u8]) -> Self {
        Self { type_name, rest: bytes }
    }

    fn malformed(&self, detail: &str) -> DecodeError {
        DecodeError::malformed(self.type_name, detail)
    }

    fn take(&mut self, count: u64) -> Result<&'a [u8], DecodeError> {
        let split = usize::try_from(count).ok().and_then(|count| self.rest.split_at_checked(count));
        let (taken, rest) = split.ok_or_else(|| {
            let left = self.rest.len();
            self.malformed(&format!("a field announces {count} bytes, but {left} are left"))
        })?;
        self.rest = rest;
        Ok(taken)
    }

    fn varint(&mut self) -> Result<u64, DecodeError> {
        let mut value = 0_u64;
        for (index, byte) in self.rest.iter().take(10).enumerate() {
            if index == 9 && *byte > 1 {
                break;
            }
            value |= u64::from(byte & 0x7f) << (7 * index);
            if *byte < 0x80 {
                self.rest = self.rest.get(index + 1..).unwrap_or_default();
                return Ok(value);
            }
        }
        Err(self.malformed("a varint does not end"))
    }

    fn key(&mut self) -> Result<(u32, u64), DecodeError> {
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).ok().filter(|number| (1..1 << 29).contains(number));
        let number =
            number.ok_or_else(|| self.malformed("a field has the number 0 or too large a one"))?;
        Ok((number, key & 7))
    }

    fn value(&mut self, number: u32, wire_type: u64) -> Result<Value<'a>, DecodeError> {
        Ok(match wire_type {
            0 => Value::Varint(self.varint()?),
            1 => self.take(8).map(|_| Value::Fixed)?,
            2 => {
                let length = self.varint()?;
                Value::Bytes(self.take(length)?)
            }
            3 => self.skip_group(number)?,
            5 => self.take(4).map(|_| Value::Fixed)?,
            _ => return Err(self.malformed("a field has a wire type that does not exist")),
        })
    }

    fn skip_group(&mut self, number: u32) -> Result<Value<'a>, DecodeError> {
        let mut open = vec![number];
        while let Some(innermost) = open.last() {
            let innermost = *innermost;
            match self.key()? {
                (number, 3) if open.len() < DEEPEST_GROUP => open.push(number),
                (_, 3) => return Err(self.malformed("groups nest too deep")),
                (number, 4) if number == innermost => drop(open.pop()),
                (number, wire_type) => drop(self.value(number, wire_type)?),
            }
        }
        Ok(Value::Fixed)
    }
}

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u32, Value<'a>), DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let field = self.key().and_then(|(number, wire_type)| {
            self.value(number, wire_type).map(|value| (number, value))
        });
        if field.is_err() {
            self.rest = &[];
        }
        Some(field)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(bytes: &[u8]) -> Result<Vec<(u32, Value<'_>)>, DecodeError> {
        Fields::new("Test", bytes).collect()
    }

    #[test]
    fn fields_of_every_wire_type_are_split() {
        let bytes = [
            0x08, 0x96, 0x01, // 1: varint 150
            0x11, 1, 2, 3, 4, 5, 6, 7, 8, // 2: fixed64
            0x1a, 0x01, b'a', // 3: bytes
            0x23, 0x08, 0x01, 0x2b, 0x2c, 0x24, // 4: a group with a varint and a group
            0x2d, 1, 2, 3, 4, // 5: fixed32
        ];
        assert_eq!(
            split(&bytes).unwrap(),
            [
                (1, Value::Varint(150)),
                (2, Value::Fixed),
                (3, Value::Bytes(b"a")),
                (4, Value::Fixed),
                (5, Value::Fixed)
            ]
        );
    }

    #[test]
    fn bytes_that_are_no_fields_are_errors() {
        for wrong in [
            &[0x08][..],
            &[0x08, 0x80],
            &[0x0a, 5, 1],
            &[0x0a, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01],
            &[0x11, 1],
            &[0x00, 1],
            &[0x23, 0x08],
            &[0x23, 0x2c],
            &[0x24],
            &[0x0e],
            &[0x08, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02],
        ] {
            assert!(split(wrong).is_err(), "{wrong:?}");
        }
        assert!(split(&vec![0x23; 100_000]).is_err());
    }
}
