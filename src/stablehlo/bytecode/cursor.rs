//! Numbers and stretches of bytes, read from the front.

use crate::stablehlo::StableHloError;

/// Bytes that are read from the front; knows where in the whole file they are.
#[derive(Clone, Copy, Debug)]
pub(in crate::stablehlo) struct Cursor<'a> {
    rest: &'a [u8],
    at: usize,
}

impl<'a> Cursor<'a> {
    /// The bytes, the first of which is byte `at` of the file.
    pub(in crate::stablehlo) fn new(bytes: &'a [u8], at: usize) -> Self {
        Self { rest: bytes, at }
    }

    /// Position of the next byte in the file.
    pub(in crate::stablehlo) fn at(&self) -> usize {
        self.at
    }

    pub(in crate::stablehlo) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    pub(in crate::stablehlo) fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// An error at the next byte.
    #[cold]
    pub(in crate::stablehlo) fn error<T>(
        &self,
        expected: &'static str,
    ) -> Result<T, StableHloError> {
        Err(StableHloError::Malformed { at: self.at, expected })
    }

    pub(in crate::stablehlo) fn bytes(&mut self, count: usize) -> Result<&'a [u8], StableHloError> {
        let Some((bytes, rest)) = self.rest.split_at_checked(count) else {
            return self.error("as many bytes as were announced");
        };
        self.rest = rest;
        self.at += count;
        Ok(bytes)
    }

    pub(in crate::stablehlo) fn byte(&mut self) -> Result<u8, StableHloError> {
        match self.bytes(1)? {
            [byte] => Ok(*byte),
            _ => self.error("a byte"),
        }
    }

    /// A number of 1 to 9 bytes: zeros at the low end of the first byte count the bytes that
    /// follow.
    pub(in crate::stablehlo) fn varint(&mut self) -> Result<u64, StableHloError> {
        let first = self.byte()?;
        let following = first.trailing_zeros() as usize;
        let mut value = [0; 16];
        if let Some(low) = value.first_mut() {
            *low = first;
        }
        let more = self.bytes(following)?;
        if let Some(place) = value.get_mut(1..=following) {
            place.copy_from_slice(more);
        }
        // The 9th byte leaves no bit of the first one: the value is what follows it.
        let shifted = u128::from_le_bytes(value) >> (following + 1).min(8);
        u64::try_from(shifted).or_else(|_| self.error("a number of 64 bits"))
    }

    /// A number, and the flag in its lowest bit.
    pub(in crate::stablehlo) fn flagged(&mut self) -> Result<(u64, bool), StableHloError> {
        let value = self.varint()?;
        Ok((value >> 1, value & 1 != 0))
    }

    /// A number with a sign, the sign in its lowest bit.
    pub(in crate::stablehlo) fn zigzag(&mut self) -> Result<i64, StableHloError> {
        let value = self.varint()?;
        let magnitude = (value >> 1).cast_signed();
        Ok(if value & 1 == 0 { magnitude } else { !magnitude })
    }

    /// A number of things each of which takes at least one byte, or an index in memory.
    pub(in crate::stablehlo) fn count(&mut self) -> Result<usize, StableHloError> {
        let value = self.varint()?;
        usize::try_from(value).or_else(|_| self.error("a number that fits memory"))
    }

    /// The length of a stretch, and the stretch.
    pub(in crate::stablehlo) fn stretch(&mut self) -> Result<&'a [u8], StableHloError> {
        let length = self.count()?;
        self.bytes(length)
    }

    /// Reads over `count` numbers.
    pub(in crate::stablehlo) fn skip_varints(&mut self, count: u64) -> Result<(), StableHloError> {
        for _ in 0..count {
            self.varint()?;
        }
        Ok(())
    }
}

/// The number that bytecode begins with, and what comes after it; `None` if it is not whole.
pub(crate) fn first_number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut cursor = Cursor::new(bytes, 0);
    let number = cursor.varint().ok()?;
    Some((number, cursor.rest))
}

/// The number in as few bytes as it needs.
pub(in crate::stablehlo) fn write_varint(out: &mut Vec<u8>, value: u64) {
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

/// The number with its sign in the lowest bit.
pub(in crate::stablehlo) fn write_zigzag(out: &mut Vec<u8>, value: i64) {
    write_varint(out, ((value << 1) ^ (value >> 63)).cast_unsigned());
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn the_length_of_a_number_stands_in_its_first_byte() {
        assert_eq!(first_number(&[0x0d, 9]), Some((6, &[9][..])));
        assert_eq!(first_number(&[0b10, 1]), Some((0x40, &[][..])));
        assert_eq!(
            first_number(&[0, 1, 0, 0, 0, 0, 0, 0, 0x80]),
            Some((0x8000_0000_0000_0001, &[][..]))
        );
        assert_eq!(first_number(&[0x80, 1, 0, 0, 0, 0, 0, 0]), Some((1, &[][..])));
        for short in [&[][..], &[0b10], &[0, 1, 2], &[0x80, 1]] {
            assert_eq!(first_number(short), None, "{short:?}");
        }
    }

    #[test]
    fn numbers_that_end_early_are_refused_at_their_place() {
        for bytes in [&[][..], &[0], &[0, 1, 2, 3, 4, 5, 6, 7], &[2]] {
            assert!(matches!(
                Cursor::new(bytes, 100).varint(),
                Err(StableHloError::Malformed { at: 100 | 101, .. })
            ));
        }
    }
}
