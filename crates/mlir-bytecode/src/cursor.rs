//! Numbers and byte ranges, read from the front.

/// Malformed bytes: their position, and the contents expected there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    /// Offset in the file, in bytes.
    pub at: usize,
    /// The expected contents.
    pub expected: &'static str,
}

/// A result whose error is [`Damage`] by default.
pub type Result<T, E = Damage> = std::result::Result<T, E>;

/// A byte range of a file that is read from the front.
#[derive(Clone, Copy, Debug)]
pub struct Cursor<'a> {
    rest: &'a [u8],
    /// The offset in the file of the end of the bytes left, so that a step changes only the bytes
    /// left.
    end: usize,
}

impl<'a> Cursor<'a> {
    /// Creates a cursor over the bytes, the first of which is byte `at` of the file.
    #[inline]
    pub fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { rest: bytes, end: at.saturating_add(bytes.len()) }
    }

    /// Returns the offset of the next byte in the file.
    #[inline]
    pub fn at(&self) -> usize {
        self.end.saturating_sub(self.rest.len())
    }

    /// Returns the bytes that are left.
    #[inline]
    pub fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// Returns true if no bytes are left.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Returns the error [`Damage`] at the next byte.
    ///
    /// # Errors
    /// Always.
    #[cold]
    pub fn damage<T>(&self, expected: &'static str) -> Result<T> {
        Err(Damage { at: self.at(), expected })
    }

    /// Reads `count` bytes.
    ///
    /// # Errors
    /// [`Damage`] if fewer are left.
    #[inline]
    pub fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let Some((bytes, rest)) = self.rest.split_at_checked(count) else {
            return self.damage("as many bytes as were announced");
        };
        self.rest = rest;
        Ok(bytes)
    }

    /// Reads a byte.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes).
    #[inline]
    pub fn byte(&mut self) -> Result<u8> {
        match self.rest {
            [byte, rest @ ..] => {
                self.rest = rest;
                Ok(*byte)
            }
            [] => self.damage("another byte"),
        }
    }

    /// Reads a number of 1 to 9 bytes: zeros at the low end of the first byte count the bytes that
    /// follow.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes).
    #[inline]
    pub fn varint(&mut self) -> Result<u64> {
        let first = self.byte()?;
        if first & 1 == 1 {
            return Ok(u64::from(first >> 1));
        }
        if first & 2 == 2 {
            let second = self.byte()?;
            return Ok(u64::from(first >> 2) | u64::from(second) << 6);
        }
        self.long_varint(first)
    }

    /// Reads a number of 3 to 9 bytes.
    fn long_varint(&mut self, first: u8) -> Result<u64> {
        let following = first.trailing_zeros() as usize;
        let mut value = [0; 16];
        value[0] = first;
        let more = self.bytes(following)?;
        if let Some(place) = value.get_mut(1..=following) {
            place.copy_from_slice(more);
        }
        // A number of 9 bytes has no bits in the first one: the value is what follows it.
        let shifted = u128::from_le_bytes(value) >> following.saturating_add(1).min(8);
        // At most 64 bits are left.
        Ok(shifted as u64)
    }

    /// Reads a number with a flag in its lowest bit.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes).
    #[inline]
    pub fn flagged(&mut self) -> Result<(u64, bool)> {
        let value = self.varint()?;
        Ok((value >> 1, value & 1 != 0))
    }

    /// Reads the number of items, each of which takes at least one byte or is an index.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes).
    #[inline]
    pub fn count(&mut self) -> Result<usize> {
        let value = self.varint()?;
        usize::try_from(value).or_else(|_| self.damage("a number that fits memory"))
    }

    /// Reads a signed number, whose sign is in its lowest bit.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes).
    #[inline]
    pub fn zigzag(&mut self) -> Result<i64> {
        let value = self.varint()?;
        let magnitude = (value >> 1).cast_signed();
        Ok(if value & 1 == 0 { magnitude } else { !magnitude })
    }

    /// Reads a length, and that many bytes.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes).
    #[inline]
    pub fn stretch(&mut self) -> Result<&'a [u8]> {
        let length = self.count()?;
        self.bytes(length)
    }

    /// Skips `count` numbers.
    ///
    /// # Errors
    /// As [`bytes`](Self::bytes).
    pub fn skip_varints(&mut self, count: u64) -> Result<()> {
        for _ in 0..count {
            self.varint()?;
        }
        Ok(())
    }
}

/// Returns the number at the start of bytecode, and the bytes after it; `None` if it is incomplete.
pub fn first_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut cursor = Cursor::new(bytes, 0);
    let number = cursor.varint().ok()?;
    Some((number, cursor.rest))
}

/// Writes a number in the fewest bytes possible.
pub fn write_varint(out: &mut Vec<u8>, value: u64) {
    let bits = (64 - value.leading_zeros()).max(1) as usize;
    let length = bits.div_ceil(7);
    if length > 8 {
        out.push(0);
        out.extend_from_slice(&value.to_le_bytes());
        return;
    }
    let shifted = ((value << 1) | 1) << (length - 1);
    out.extend(shifted.to_le_bytes().into_iter().take(length));
}

/// Writes a signed number, with its sign in the lowest bit.
pub fn write_zigzag(out: &mut Vec<u8>, value: i64) {
    write_varint(out, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varint_takes_its_length_from_the_first_byte() {
        let read = |bytes: &[u8]| Cursor::new(bytes, 0).varint();
        assert_eq!(read(&[0x0d, 9]), Ok(6));
        assert_eq!(read(&[0b10, 1]), Ok(0x40));
        assert_eq!(read(&[0, 1, 0, 0, 0, 0, 0, 0, 0x80]), Ok(0x8000_0000_0000_0001));
        assert_eq!(read(&[0x80, 1, 0, 0, 0, 0, 0, 0]), Ok(1));
        for short in [&[][..], &[0b10], &[0, 1, 2], &[0x80, 1]] {
            assert!(read(short).is_err(), "{short:?}");
        }
    }

    #[test]
    fn numbers_are_read_as_they_are_written() {
        let edges = (0..64).flat_map(|bit| [1_u64 << bit, (1 << bit) - 1, u64::MAX >> bit]);
        for value in edges {
            let mut bytes = Vec::new();
            write_varint(&mut bytes, value);
            let mut cursor = Cursor::new(&bytes, 0);
            assert_eq!(cursor.varint(), Ok(value), "{bytes:?}");
            assert!(cursor.is_empty());
            let signed = value.cast_signed();
            let mut bytes = Vec::new();
            write_zigzag(&mut bytes, signed);
            assert_eq!(Cursor::new(&bytes, 0).zigzag(), Ok(signed), "{bytes:?}");
        }
        for (value, bytes) in [(0, &[1][..]), (127, &[255]), (128, &[2, 2]), (6, &[13])] {
            let mut out = Vec::new();
            write_varint(&mut out, value);
            assert_eq!(out, bytes);
        }
    }
}
