//! Numbers and stretches of bytes, read from the front.

/// Bytes that mean nothing to any reader: where, and what should be there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Damage {
    pub(crate) at: usize,
    pub(crate) expected: &'static str,
}

pub(crate) type Result<T, E = Damage> = std::result::Result<T, E>;

/// A stretch of a file that is read from the front.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cursor<'a> {
    rest: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// The bytes, the first of which is byte `at` of the file.
    pub(crate) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { rest: bytes, at }
    }

    /// The offset of the next byte in the file.
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    #[cold]
    pub(crate) fn damage<T>(&self, expected: &'static str) -> Result<T> {
        Err(Damage { at: self.at, expected })
    }

    pub(crate) fn bytes(&mut self, count: usize) -> Result<&'a [u8]> {
        let Some((bytes, rest)) = self.rest.split_at_checked(count) else {
            return self.damage("as many bytes as were announced");
        };
        self.rest = rest;
        self.at = self.at.saturating_add(count);
        Ok(bytes)
    }

    pub(crate) fn byte(&mut self) -> Result<u8> {
        match self.rest {
            [byte, rest @ ..] => {
                self.rest = rest;
                self.at = self.at.saturating_add(1);
                Ok(*byte)
            }
            [] => self.damage("another byte"),
        }
    }

    /// A number of 1 to 9 bytes: zeros at the low end of the first byte count the bytes that
    /// follow.
    pub(crate) fn varint(&mut self) -> Result<u64> {
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

    /// A number of 3 to 9 bytes.
    fn long_varint(&mut self, first: u8) -> Result<u64> {
        let following = first.trailing_zeros() as usize;
        let mut value = [0; 16];
        value[0] = first;
        let more = self.bytes(following)?;
        if let Some(place) = value.get_mut(1..=following) {
            place.copy_from_slice(more);
        }
        // The 9th byte leaves no bit of the first one: the value is what follows it.
        let shifted = u128::from_le_bytes(value) >> following.saturating_add(1).min(8);
        // At most 64 bits are left.
        Ok(shifted as u64)
    }

    /// A number, and the flag in its lowest bit.
    pub(crate) fn flagged(&mut self) -> Result<(u64, bool)> {
        let value = self.varint()?;
        Ok((value >> 1, value & 1 != 0))
    }

    /// A number of things each of which takes at least one byte, or an index.
    pub(crate) fn count(&mut self) -> Result<usize> {
        let value = self.varint()?;
        usize::try_from(value).or_else(|_| self.damage("a number that fits memory"))
    }

    /// Reads over `count` numbers.
    pub(crate) fn skip_varints(&mut self, count: u64) -> Result<()> {
        for _ in 0..count {
            self.varint()?;
        }
        Ok(())
    }
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
}
