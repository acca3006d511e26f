//! Variable-length integers: seven bits per byte, the lowest first; the high bit of a byte means
//! that another follows.
//!
//! Readers differ in their handling of bits that do not fit the number: prost refuses them
//! ([`checked`]); TensorFlow's parser and LevelDB drop them ([`wrapping`]).
//!
//! The module knows numbers and bytes. It does not depend on fields or tables.

/// The most bytes that a number of 64 bits takes.
pub const LONGEST: usize = 10;

/// The most bytes that a number of 32 bits takes.
pub const LONGEST_32: usize = 5;

/// Takes a number; returns `None` and takes nothing if it is too long or has more than 64 bits.
#[inline(always)]
pub fn checked(bytes: &mut &[u8]) -> Option<u64> {
    match **bytes {
        [first @ 0..0x80, ref rest @ ..] => {
            *bytes = rest;
            Some(first.into())
        }
        [first, second @ 0..0x80, ref rest @ ..] => {
            *bytes = rest;
            Some(u64::from(first & 0x7f) | u64::from(second) << 7)
        }
        _ => checked_long(bytes),
    }
}

#[inline]
fn checked_long(bytes: &mut &[u8]) -> Option<u64> {
    let before = *bytes;
    let value = wrapping_long(bytes, LONGEST)?;
    // Nine bytes hold 63 bits, so the tenth has space for one.
    let tenth = before.get(LONGEST - 1).filter(|_| before.len() - bytes.len() == LONGEST);
    if tenth.is_some_and(|byte| *byte > 1) {
        *bytes = before;
        return None;
    }
    Some(value)
}

/// Takes a number of at most `longest` bytes, and drops bits that do not fit 64; returns `None` and
/// takes nothing if it is longer.
#[inline(always)]
pub fn wrapping(bytes: &mut &[u8], longest: usize) -> Option<u64> {
    match **bytes {
        [first @ 0..0x80, ref rest @ ..] => {
            *bytes = rest;
            Some(first.into())
        }
        _ => wrapping_long(bytes, longest),
    }
}

#[inline]
fn wrapping_long(bytes: &mut &[u8], longest: usize) -> Option<u64> {
    let mut value = 0;
    for (index, byte) in bytes.iter().enumerate().take(longest) {
        value |= u64::from(byte & 0x7f) << (7 * index);
        if *byte < 0x80 {
            *bytes = bytes.get(index + 1..)?;
            return Some(value);
        }
    }
    None
}

/// Like [`wrapping`], for bytes that arrive one at a time; returns `None` after ten bytes without
/// an end.
///
/// # Errors
/// The errors of `next`.
pub fn wrapping_from<E>(mut next: impl FnMut() -> Result<u8, E>) -> Result<Option<u64>, E> {
    let mut value = 0;
    for index in 0..LONGEST {
        let byte = next()?;
        value |= u64::from(byte & 0x7f) << (7 * index);
        if byte < 0x80 {
            return Ok(Some(value));
        }
    }
    Ok(None)
}

/// Returns the encoded size of a number in bytes.
#[inline]
pub const fn len(bits: u64) -> usize {
    ((63 - (bits | 1).leading_zeros()) * 9 + 73) as usize / 64
}

/// Writes a number to the start of `out` and returns its size in bytes; `None` if `out` is too
/// short.
#[inline(always)]
pub fn put(out: &mut [u8], mut bits: u64) -> Option<usize> {
    let mut length = 0;
    loop {
        let byte = out.get_mut(length)?;
        length += 1;
        if bits < 0x80 {
            *byte = bits as u8;
            return Some(length);
        }
        *byte = bits as u8 | 0x80;
        bits >>= 7;
    }
}

/// Appends a number.
#[inline]
pub fn push(out: &mut Vec<u8>, mut bits: u64) {
    while bits >= 0x80 {
        out.push(bits as u8 | 0x80);
        bits >>= 7;
    }
    out.push(bits as u8);
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_number_of_bytes_is_counted() {
        for bits in 0..64 {
            for value in [1_u64 << bits, (1 << bits) - 1] {
                assert_eq!(len(value), prost::encoding::encoded_len_varint(value), "{value}");
            }
        }
        assert_eq!(len(u64::MAX), LONGEST);
    }

    #[test]
    fn surplus_bits_are_refused_or_dropped() {
        let surplus = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f, 0xaa];
        let mut rest = &surplus[..];
        assert_eq!((checked(&mut rest), rest.len()), (None, 11));
        assert_eq!((wrapping(&mut rest, LONGEST), rest), (Some(u64::MAX), &[0xaa][..]));
        let mut rest = &surplus[5..];
        assert_eq!(wrapping(&mut rest, LONGEST_32), Some(0x7_ffff_ffff));
        assert_eq!(wrapping(&mut &surplus[..], LONGEST_32), None);
        for endless in [&[0xff; 11][..], &[0x80], &[]] {
            assert_eq!(checked(&mut &*endless), None);
            assert_eq!(wrapping(&mut &*endless, LONGEST), None);
        }
    }

    proptest! {
        #[test]
        fn every_reader_takes_what_every_writer_writes(value in any::<u64>(), shift in 0..64_u32) {
            let value = value >> shift;
            let mut pushed = Vec::new();
            push(&mut pushed, value);
            let mut written = [0; LONGEST];
            let length = put(&mut written, value).unwrap();
            prop_assert_eq!(&pushed, &written[..length]);
            prop_assert_eq!(length, len(value));
            prop_assert_eq!(put(&mut written[..length - 1], value), None);
            let mut bytes = pushed.iter().copied();
            let next = || bytes.next().ok_or(());
            prop_assert_eq!(wrapping_from(next), Ok(Some(value)));
            pushed.push(0xaa);
            for take in [checked, |bytes: &mut &[u8]| wrapping(bytes, LONGEST)] {
                let mut rest = &pushed[..];
                prop_assert_eq!((take(&mut rest), rest), (Some(value), &[0xaa][..]));
            }
        }

        #[test]
        fn check_accepts_what_prost_takes(
            bytes in prop::collection::vec(prop_oneof![1 => 0_u8..128, 4 => 0x80_u8.., 2 => 0_u8..3], 0..13)
        ) {
            let (mut ours, mut theirs) = (&bytes[..], &bytes[..]);
            let expected = prost::encoding::decode_varint(&mut theirs).ok();
            prop_assert_eq!(checked(&mut ours), expected);
            if expected.is_some() {
                prop_assert_eq!(ours, theirs);
            }
        }
    }
}
