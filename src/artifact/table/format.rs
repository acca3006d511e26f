//! The fixed parts of a table: footer, block handles, variable-length integers.

use super::TableError;

/// Length of the footer at the end of a table, in bytes.
pub(crate) const FOOTER_LEN: usize = 48;
/// Length of what follows every block (type byte and masked checksum), in bytes.
pub(crate) const TRAILER_LEN: usize = 5;
/// The last eight bytes of every table, as a little-endian number.
pub const MAGIC: u64 = 0xdb47_7524_8b80_fb57;

/// Block type of a block that is stored as it is.
pub(crate) const TYPE_RAW: u8 = 0;
/// Block type of a block that is compressed with snappy.
pub(crate) const TYPE_SNAPPY: u8 = 1;

/// Where a block lies: offset in the file and size without its trailer, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockHandle {
    /// Bytes from the start of the file.
    pub offset: u64,
    /// Bytes of the block, without its trailer.
    pub size: u64,
}

impl BlockHandle {
    /// Reads a handle and gives what follows it.
    pub(crate) fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let (offset, rest) = read_varint64(bytes)?;
        let (size, rest) = read_varint64(rest)?;
        Some((Self { offset, size }, rest))
    }

    pub(crate) fn write(self, out: &mut Vec<u8>) {
        write_varint64(out, self.offset);
        write_varint64(out, self.size);
    }
}

/// The footer: where the two index blocks lie.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Footer {
    pub(crate) metaindex: BlockHandle,
    pub(crate) index: BlockHandle,
    /// Whether the bytes between the handles and the magic number are zero.
    pub(crate) padding_is_zero: bool,
}

impl Footer {
    pub(crate) fn read(bytes: &[u8; FOOTER_LEN]) -> Result<Self, TableError> {
        let (handles, magic) = bytes.split_at(FOOTER_LEN - 8);
        let found = magic.try_into().map_or(0, u64::from_le_bytes);
        if found != MAGIC {
            return Err(TableError::BadMagic { found });
        }
        // TensorFlow decodes out of all 48 bytes, so that a handle may run on into the magic number.
        let (metaindex, rest) =
            BlockHandle::read(bytes).ok_or(TableError::BadFooterHandle { which: "metaindex" })?;
        let (index, rest) =
            BlockHandle::read(rest).ok_or(TableError::BadFooterHandle { which: "index" })?;
        let used = FOOTER_LEN.saturating_sub(rest.len());
        let padding_is_zero = handles.iter().skip(used).all(|byte| *byte == 0);
        Ok(Self { metaindex, index, padding_is_zero })
    }

    pub(crate) fn write(metaindex: BlockHandle, index: BlockHandle) -> Vec<u8> {
        let mut out = Vec::with_capacity(FOOTER_LEN);
        metaindex.write(&mut out);
        index.write(&mut out);
        out.resize(FOOTER_LEN - 8, 0);
        out.extend_from_slice(&MAGIC.to_le_bytes());
        out
    }
}

/// Reads a variable-length integer of at most ten bytes; bits beyond the 64th are dropped, as in LevelDB.
pub(crate) fn read_varint64(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let mut value = 0u64;
    for (i, byte) in bytes.iter().enumerate().take(10) {
        value |= u64::from(byte & 0x7f) << (7 * i);
        if byte & 0x80 == 0 {
            return Some((value, bytes.get(i + 1..)?));
        }
    }
    None
}

/// Reads a variable-length integer of at most five bytes; bits beyond the 32nd are dropped, as in LevelDB.
#[inline]
pub(crate) fn read_varint32(bytes: &[u8], at: &mut usize) -> Option<u32> {
    let first = *bytes.get(*at)?;
    if first < 0x80 {
        *at += 1;
        return Some(first.into());
    }
    let mut value = u32::from(first & 0x7f);
    for i in 1..5 {
        let byte = *bytes.get(*at + i)?;
        value |= u32::from(byte & 0x7f) << (7 * i);
        if byte < 0x80 {
            *at += i + 1;
            return Some(value);
        }
    }
    None
}

pub(crate) fn write_varint64(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push((value & 0x7f) as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_round_trip_and_stop_at_ten_bytes() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut bytes = Vec::new();
            write_varint64(&mut bytes, value);
            bytes.push(0xaa);
            assert_eq!(read_varint64(&bytes), Some((value, &[0xaa][..])));
        }
        assert_eq!(read_varint64(&[0xff; 11]), None);
        assert_eq!(read_varint64(&[0x80]), None);
        assert_eq!(read_varint32(&[0xff; 6], &mut 0), None);
    }
}
