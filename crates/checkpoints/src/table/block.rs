//! One block: its entries, its restart points, its trailer.

use std::ops::Range;

use serdes_files::{ReadAt, crc32c};
use serdes_wire::varint;

use super::{
    TableError,
    format::{BlockHandle, TRAILER_LEN, TYPE_RAW, TYPE_SNAPPY},
};
use crate::checksum::unmask;

/// Growth that no snappy data exceeds: the densest element makes 64 bytes out of 3. A block that
/// claims more is refused.
const SNAPPY_MAX_GROWTH: usize = 22;

/// Reads the block at `handle` into `buffer` (its capacity is reused), checks its checksum, and
/// returns its type; the buffer then holds the block without its trailer.
pub(super) fn read_raw<S: ReadAt + ?Sized>(
    source: &S,
    len: u64,
    handle: BlockHandle,
    buffer: &mut Vec<u8>,
) -> Result<u8, TableError> {
    let BlockHandle { offset, size } = handle;
    let end = size.checked_add(TRAILER_LEN as u64).and_then(|stored| stored.checked_add(offset));
    let stored = usize::try_from(size).ok().and_then(|size| size.checked_add(TRAILER_LEN));
    let (Some(end), Some(stored)) = (end, stored) else {
        return Err(TableError::OutOfRange { offset, size, len });
    };
    if end > len {
        return Err(TableError::OutOfRange { offset, size, len });
    }
    buffer.resize(stored, 0);
    source.read_exact_at(buffer, offset)?;

    let malformed = |reason| TableError::BlockContents { offset, reason };
    let (summed, masked) =
        buffer.split_last_chunk::<4>().map(|(a, b)| (a, *b)).ok_or(malformed("no trailer"))?;
    let kind = *summed.last().ok_or(malformed("no trailer"))?;
    let stored = unmask(u32::from_le_bytes(masked));
    let computed = crc32c(summed);
    if stored != computed {
        return Err(TableError::BlockChecksum { offset, stored, computed });
    }
    buffer.truncate(buffer.len().saturating_sub(TRAILER_LEN));
    Ok(kind)
}

/// A decompressed block whose checksum matched.
#[derive(Debug, Default)]
pub(super) struct Block {
    data: Vec<u8>,
    /// The end of the entries, where the restart points begin.
    entries_end: usize,
    restarts: usize,
    offset: u64,
}

impl Block {
    /// Reads and decompresses the block at `handle`.
    pub(super) fn read<S: ReadAt + ?Sized>(
        source: &S,
        len: u64,
        handle: BlockHandle,
    ) -> Result<Self, TableError> {
        let mut buffer = Vec::new();
        let kind = read_raw(source, len, handle, &mut buffer)?;
        let data = match kind {
            TYPE_RAW => buffer,
            TYPE_SNAPPY => decompress(&buffer, handle.offset)?,
            found => return Err(TableError::BlockType { offset: handle.offset, found }),
        };
        Self::new(data, handle.offset)
    }

    fn new(data: Vec<u8>, offset: u64) -> Result<Self, TableError> {
        let malformed = |reason| TableError::BlockContents { offset, reason };
        let (body, count) = data
            .split_last_chunk::<4>()
            .ok_or(malformed("shorter than its count of restart points"))?;
        let restarts = u32::from_le_bytes(*count) as usize;
        let entries_end = restarts
            .checked_mul(4)
            .and_then(|table| body.len().checked_sub(table))
            .ok_or(malformed("more restart points than fit into it"))?;
        Ok(Self { data, entries_end, restarts, offset })
    }

    fn malformed(&self, reason: &'static str) -> TableError {
        TableError::BlockContents { offset: self.offset, reason }
    }

    fn restart_point(&self, index: usize) -> Result<usize, TableError> {
        let at = self.entries_end + index * 4;
        let bytes = self.data.get(at..).and_then(|rest| rest.first_chunk::<4>());
        bytes
            .map(|bytes| u32::from_le_bytes(*bytes) as usize)
            .ok_or_else(|| self.malformed("a restart point is missing"))
    }

    /// Decodes the entry at `at`: shared key bytes, the range of the other key bytes, the range of
    /// the value.
    #[inline]
    fn entry(&self, at: usize) -> Option<(usize, Range<usize>, Range<usize>)> {
        let mut rest = self.data.get(at..self.entries_end)?;
        // Bits beyond 32 are dropped, as in LevelDB.
        let mut number = || Some(varint::wrapping(&mut rest, varint::LONGEST_32)? as u32 as usize);
        let (shared, unshared, value) = (number()?, number()?, number()?);
        let key_start = self.entries_end.checked_sub(rest.len())?;
        let key_end = key_start.checked_add(unshared)?;
        let value_end = key_end.checked_add(value)?;
        (value_end <= self.entries_end).then_some((shared, key_start..key_end, key_end..value_end))
    }
}

fn decompress(bytes: &[u8], offset: u64) -> Result<Vec<u8>, TableError> {
    let failed = |reason: String| TableError::BlockCompression { offset, reason };
    let len = snap::raw::decompress_len(bytes).map_err(|error| failed(error.to_string()))?;
    if len > bytes.len().saturating_mul(SNAPPY_MAX_GROWTH) {
        return Err(failed(format!("{} bytes cannot become {len}", bytes.len())));
    }
    snap::raw::Decoder::new().decompress_vec(bytes).map_err(|error| failed(error.to_string()))
}

/// A position in a block. It does not borrow the block, so that its owner can change blocks; each
/// call passes the same block until `first` or `seek` is called with another.
#[derive(Debug, Default)]
pub(super) struct BlockCursor {
    key: Vec<u8>,
    value: Range<usize>,
    valid: bool,
}

impl BlockCursor {
    pub(super) fn valid(&self) -> bool {
        self.valid
    }

    pub(super) fn invalidate(&mut self) {
        self.valid = false;
    }

    pub(super) fn key(&self) -> &[u8] {
        &self.key
    }

    pub(super) fn value<'a>(&self, block: &'a Block) -> &'a [u8] {
        block.data.get(self.value.clone()).unwrap_or_default()
    }

    /// Goes to the first entry.
    pub(super) fn first(&mut self, block: &Block) -> Result<(), TableError> {
        self.valid = false;
        if block.restarts == 0 {
            return Ok(());
        }
        self.restart(block, 0)?;
        self.advance(block)
    }

    /// Goes to the first entry whose key is not below `target`, by a search that trusts the order
    /// of the keys.
    pub(super) fn seek(&mut self, block: &Block, target: &[u8]) -> Result<(), TableError> {
        self.valid = false;
        let Some(mut right) = block.restarts.checked_sub(1) else { return Ok(()) };
        let mut left = 0;
        while left < right {
            let middle = (left + right).div_ceil(2);
            let at = block.restart_point(middle)?;
            let (_, key, _) = block
                .entry(at)
                .filter(|(shared, ..)| *shared == 0)
                .ok_or_else(|| block.malformed("a restart point does not lead to a whole key"))?;
            if block.data.get(key).unwrap_or_default() < target {
                left = middle;
            } else {
                right = middle - 1;
            }
        }
        self.restart(block, left)?;
        self.advance(block)?;
        while self.valid && self.key.as_slice() < target {
            self.advance(block)?;
        }
        Ok(())
    }

    fn restart(&mut self, block: &Block, index: usize) -> Result<(), TableError> {
        let at = block.restart_point(index)?;
        self.key.clear();
        self.value = at..at;
        Ok(())
    }

    /// Goes to the next entry, or becomes invalid at the end.
    #[inline]
    pub(super) fn advance(&mut self, block: &Block) -> Result<(), TableError> {
        self.valid = false;
        let at = self.value.end;
        if at >= block.entries_end {
            return Ok(());
        }
        let entry = block.entry(at);
        let (shared, key, value) =
            entry.ok_or_else(|| block.malformed("an entry runs over its end"))?;
        if shared > self.key.len() {
            return Err(block.malformed("an entry shares more key bytes than the key before has"));
        }
        self.key.truncate(shared);
        self.key.extend_from_slice(block.data.get(key).unwrap_or_default());
        self.value = value;
        self.valid = true;
        Ok(())
    }
}
