//! The fields of a small protobuf message that lies in memory, one after the other.
//!
//! The checkpoint formats hold a hundred thousand messages of thirty bytes in tables; this iterator takes each apart without building
//! anything. It accepts and refuses what TensorFlow's parser does: varints of up to ten bytes cut to their width, groups skipped,
//! 100 levels. Graphs, which do not fit into memory, are walked by the scanner of `wire`.
//!
//! Knows no message: which field means what is the business of its caller.

/// The deepest nesting of messages and groups that TensorFlow's parser follows.
const MAX_DEPTH: u32 = 100;

/// What is wrong with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{reason} at byte {at} of the message")]
pub struct Malformed {
    /// What is wrong.
    pub reason: &'static str,
    /// Bytes from the start of the innermost message.
    pub at: usize,
}

/// The value of a field as it is on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Value<'a> {
    /// Wire type 0.
    Varint(u64),
    /// Wire type 1.
    Fixed64(u64),
    /// Wire type 5.
    Fixed32(u32),
    /// Wire type 2: a string, a message, or packed numbers.
    Bytes(&'a [u8]),
}

/// The fields of a message in the order of their bytes.
#[derive(Debug, Clone)]
pub(crate) struct Fields<'a> {
    bytes: &'a [u8],
    at: usize,
    depth: u32,
}

impl<'a> Fields<'a> {
    /// The fields of an outermost message.
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0, depth: 0 }
    }

    /// The fields of a message that is the value of one of these fields.
    pub(crate) fn nested(&self, bytes: &'a [u8]) -> Result<Self, Malformed> {
        if self.depth >= MAX_DEPTH {
            return Err(self.malformed("messages nested over 100 deep"));
        }
        Ok(Self { bytes, at: 0, depth: self.depth + 1 })
    }

    /// The next field that is not a group, or `None` at the end.
    #[inline]
    pub(crate) fn next(&mut self) -> Result<Option<(u32, Value<'a>)>, Malformed> {
        while self.at < self.bytes.len() {
            let (number, kind) = self.tag()?;
            match kind {
                3 => self.skip_group(number)?,
                4 => return Err(self.malformed("the end of a group that was not opened")),
                kind => return Ok(Some((number, self.value(kind)?))),
            }
        }
        Ok(None)
    }

    fn malformed(&self, reason: &'static str) -> Malformed {
        Malformed { reason, at: self.at }
    }

    #[inline]
    fn tag(&mut self) -> Result<(u32, u8), Malformed> {
        // A tag has at most five bytes; bits beyond the 32nd are dropped.
        let tag = self.varint(5)? as u32;
        let number = tag >> 3;
        if number == 0 {
            return Err(self.malformed("a field with number 0"));
        }
        Ok((number, (tag & 7) as u8))
    }

    #[inline]
    fn varint(&mut self, max_len: usize) -> Result<u64, Malformed> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let mut value = 0;
        for (i, byte) in rest.iter().enumerate().take(max_len) {
            value |= u64::from(byte & 0x7f) << (7 * i);
            if *byte < 0x80 {
                self.at += i + 1;
                return Ok(value);
            }
        }
        Err(self.malformed("a variable-length number that does not end"))
    }

    #[inline]
    fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = rest
            .get(..len)
            .ok_or_else(|| self.malformed("a field that is longer than the message"))?;
        self.at += len;
        Ok(taken)
    }

    #[inline]
    fn value(&mut self, kind: u8) -> Result<Value<'a>, Malformed> {
        match kind {
            0 => Ok(Value::Varint(self.varint(10)?)),
            1 => Ok(Value::Fixed64(self.take(8)?.try_into().map_or(0, u64::from_le_bytes))),
            2 => {
                let len = self.varint(5)?;
                let len = usize::try_from(len).ok().filter(|_| len <= 0x7fff_ffef);
                let len = len.ok_or_else(|| self.malformed("a length of 2 GiB or more"))?;
                Ok(Value::Bytes(self.take(len)?))
            }
            5 => Ok(Value::Fixed32(self.take(4)?.try_into().map_or(0, u32::from_le_bytes))),
            _ => Err(self.malformed("a wire type that does not exist")),
        }
    }

    fn skip_group(&mut self, number: u32) -> Result<(), Malformed> {
        let mut open = vec![number];
        while let Some(current) = open.last().copied() {
            if self.depth as usize + open.len() > MAX_DEPTH as usize {
                return Err(self.malformed("groups nested over 100 deep"));
            }
            if self.at >= self.bytes.len() {
                return Err(self.malformed("a group that does not end"));
            }
            match self.tag()? {
                (number, 3) => open.push(number),
                (number, 4) if number == current => {
                    open.pop();
                }
                (_, 4) => return Err(self.malformed("the end of another group")),
                (_, kind) => {
                    self.value(kind)?;
                }
            }
        }
        Ok(())
    }
}

/// Gives each element of a repeated varint field, packed or not, to `each`; a value of another wire type is an unknown field and
/// gives none.
pub(crate) fn repeated_varints(
    value: Value<'_>,
    mut each: impl FnMut(u64),
) -> Result<(), Malformed> {
    match value {
        Value::Varint(value) => each(value),
        Value::Bytes(bytes) => {
            let mut packed = Fields::new(bytes);
            while packed.at < bytes.len() {
                each(packed.varint(10)?);
            }
        }
        _ => {}
    }
    Ok(())
}

/// Writes messages field by field, in the order of the calls.
pub(crate) mod put {
    use crate::artifact::table::write_varint64;

    fn tag(out: &mut Vec<u8>, number: u32, kind: u32) {
        write_varint64(out, u64::from(number << 3 | kind));
    }

    /// A varint field, left out if 0.
    pub(crate) fn number(out: &mut Vec<u8>, field: u32, value: i64) {
        if value != 0 {
            tag(out, field, 0);
            // A negative number is written sign-extended to ten bytes.
            write_varint64(out, value as u64);
        }
    }

    /// A field of bytes or a message, written even if empty.
    pub(crate) fn bytes(out: &mut Vec<u8>, field: u32, value: &[u8]) {
        tag(out, field, 2);
        write_varint64(out, value.len() as u64);
        out.extend_from_slice(value);
    }

    /// A fixed32 field, left out if 0.
    pub(crate) fn fixed32(out: &mut Vec<u8>, field: u32, value: u32) {
        if value != 0 {
            tag(out, field, 5);
            out.extend_from_slice(&value.to_le_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8]) -> Result<Vec<(u32, Value<'_>)>, Malformed> {
        let mut fields = Fields::new(bytes);
        let mut found = Vec::new();
        while let Some(field) = fields.next()? {
            found.push(field);
        }
        Ok(found)
    }

    #[test]
    fn fields_are_read_and_groups_passed_over() {
        let bytes =
            b"\x08\x96\x01\x13\x08\x01\x14\x15\x01\x00\x00\x00\x1a\x02ab\x21\x02\0\0\0\0\0\0\0";
        let expected = [
            (1, Value::Varint(150)),
            (2, Value::Fixed32(1)),
            (3, Value::Bytes(b"ab")),
            (4, Value::Fixed64(2)),
        ];
        assert_eq!(all(bytes).unwrap(), expected);
    }

    #[test]
    fn what_no_parser_takes_is_refused() {
        let mut deep = vec![0x0b; 101];
        deep.extend([0x0c; 101]);
        let cases: [&[u8]; 10] = [
            b"\0",
            b"\x08",
            b"\x08\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
            b"\x0a\x02a",
            b"\x0b\x08\x01",
            b"\x0c",
            b"\x0b\x14",
            b"\x0e",
            b"\x0f",
            &deep,
        ];
        for bytes in cases {
            assert!(all(bytes).is_err(), "{bytes:02x?}");
        }
        let mut shallow = vec![0x0b; 100];
        shallow.extend([0x0c; 100]);
        assert_eq!(all(&shallow).unwrap(), []);
    }
}
