//! The fixed parts of a table: footer and block handles. Bits beyond the width of a number are
//! dropped, as in LevelDB.

use serdes_wire::varint;

use super::TableError;

/// Length of the footer at the end of a table, in bytes.
pub(crate) const FOOTER_LEN: usize = 48;
/// Length of what follows every block (type byte and masked checksum), in bytes.
pub(crate) const TRAILER_LEN: usize = 5;
/// The last eight bytes of every table, as a little-endian number.
pub const MAGIC: u64 = 0xdb47_7524_8b80_fb57;

/// Block type of an uncompressed block.
pub(crate) const TYPE_RAW: u8 = 0;
/// Block type of a snappy-compressed block.
pub(crate) const TYPE_SNAPPY: u8 = 1;

/// The location of a block: offset in the file and size without its trailer, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockHandle {
    /// Offset in bytes from the start of the file.
    pub offset: u64,
    /// Size of the block in bytes, without its trailer.
    pub size: u64,
}

impl BlockHandle {
    /// Reads a handle and returns it with the bytes that follow.
    pub(crate) fn read(bytes: &[u8]) -> Option<(Self, &[u8])> {
        let mut rest = bytes;
        let offset = varint::wrapping(&mut rest, varint::LONGEST)?;
        let size = varint::wrapping(&mut rest, varint::LONGEST)?;
        Some((Self { offset, size }, rest))
    }

    pub(crate) fn write(self, out: &mut Vec<u8>) {
        varint::push(out, self.offset);
        varint::push(out, self.size);
    }
}

/// The footer: the handles of the metaindex and the index block.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Footer {
    pub(crate) metaindex: BlockHandle,
    pub(crate) index: BlockHandle,
    /// True if the bytes between the handles and the magic number are zero.
    pub(crate) padding_is_zero: bool,
}

impl Footer {
    pub(crate) fn read(bytes: &[u8; FOOTER_LEN]) -> Result<Self, TableError> {
        let (handles, magic) = bytes.split_at(FOOTER_LEN - 8);
        let found = magic.try_into().map_or(0, u64::from_le_bytes);
        if found != MAGIC {
            return Err(TableError::BadMagic { found });
        }
        // TensorFlow decodes from all 48 bytes, so that a handle may extend into the magic number.
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
