//! Writing a table, byte for byte as TensorFlow writes it: no compression, blocks of 262144 bytes,
//! a restart point every 16 entries, shortened keys in the index.

use std::io::Write;

use serdes_files::crc32c;
use serdes_wire::varint;

use super::{
    TableError,
    format::{BlockHandle, Footer, TYPE_RAW, TYPE_SNAPPY},
};
use crate::checksum::mask;

/// Options of the writer of tables. The defaults are TensorFlow's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableOptions {
    /// A data block is closed once it has at least this many bytes.
    block_size: usize,
    /// Number of entries between keys that are written in full (at least 1).
    restart_interval: usize,
    /// True if blocks are compressed with snappy where that saves an eighth; TensorFlow reads such
    /// tables but does not write them.
    snappy: bool,
}

impl Default for TableOptions {
    fn default() -> Self {
        Self { block_size: 262_144, restart_interval: 16, snappy: false }
    }
}

impl TableOptions {
    /// Sets the block size, in bytes.
    #[must_use]
    pub fn with_block_size(self, block_size: usize) -> Self {
        Self { block_size, ..self }
    }

    /// Sets the restart interval, in entries.
    #[must_use]
    pub fn with_restart_interval(self, restart_interval: usize) -> Self {
        Self { restart_interval: restart_interval.max(1), ..self }
    }

    /// Sets whether blocks are compressed with snappy.
    #[must_use]
    pub fn with_snappy(self, snappy: bool) -> Self {
        Self { snappy, ..self }
    }
}

/// Writes a table to an append-only sink. Holds one data block and the index in memory.
#[derive(Debug)]
pub struct TableWriter<W> {
    sink: W,
    options: TableOptions,
    offset: u64,
    block: BlockBuilder,
    index: BlockBuilder,
    last_key: Vec<u8>,
    entries: u64,
    /// The last block that was closed; its index key is known once the next key is.
    pending: Option<BlockHandle>,
}

impl<W: Write> TableWriter<W> {
    /// Starts a table at the current end of `sink`, which counts as offset 0.
    pub fn new(sink: W, options: TableOptions) -> Self {
        Self {
            sink,
            options,
            offset: 0,
            block: BlockBuilder::new(options.restart_interval),
            index: BlockBuilder::new(1),
            last_key: Vec::new(),
            entries: 0,
            pending: None,
        }
    }

    /// Adds an entry.
    ///
    /// # Errors
    /// If the key is not above its predecessor, if the key or value has 4 GiB or more, or if the
    /// sink fails.
    pub fn add(&mut self, key: &[u8], value: &[u8]) -> Result<(), TableError> {
        if self.entries > 0 && key <= self.last_key.as_slice() {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            return Err(TableError::KeyOrder { key: text(key), previous: text(&self.last_key) });
        }
        if let Some(len) =
            [key.len(), value.len()].into_iter().find(|len| u32::try_from(*len).is_err())
        {
            return Err(TableError::EntryTooLarge { len });
        }
        if let Some(handle) = self.pending.take() {
            self.index.add(shortest_separator(&self.last_key, key), handle);
        }
        self.block.append(key, value);
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        self.entries += 1;
        if self.block.size() >= self.options.block_size {
            self.flush_block()?;
        }
        Ok(())
    }

    /// Writes the index and the footer, and returns the sink and the length of the table in bytes.
    ///
    /// # Errors
    /// If the sink fails.
    pub fn finish(mut self) -> Result<(W, u64), TableError> {
        self.flush_block()?;
        let metaindex = self.write_block(BlockBuilder::new(1).finish())?;
        if let Some(handle) = self.pending.take() {
            self.index.add(shortest_successor(&self.last_key), handle);
        }
        let index = std::mem::replace(&mut self.index, BlockBuilder::new(1)).finish();
        let index = self.write_block(index)?;
        let footer = Footer::write(metaindex, index);
        self.sink.write_all(&footer)?;
        self.sink.flush()?;
        Ok((self.sink, self.offset + footer.len() as u64))
    }

    fn flush_block(&mut self) -> Result<(), TableError> {
        if self.block.is_empty() {
            return Ok(());
        }
        let fresh = BlockBuilder::new(self.options.restart_interval);
        let bytes = std::mem::replace(&mut self.block, fresh).finish();
        self.pending = Some(self.write_block(bytes)?);
        Ok(())
    }

    fn write_block(&mut self, mut bytes: Vec<u8>) -> Result<BlockHandle, TableError> {
        let mut kind = TYPE_RAW;
        if self.options.snappy
            && let Ok(small) = snap::raw::Encoder::new().compress_vec(&bytes)
            && small.len() < bytes.len() - bytes.len() / 8
        {
            bytes = small;
            kind = TYPE_SNAPPY;
        }
        let handle = BlockHandle { offset: self.offset, size: bytes.len() as u64 };
        bytes.push(kind);
        let crc = mask(crc32c(&bytes));
        bytes.extend_from_slice(&crc.to_le_bytes());
        self.sink.write_all(&bytes)?;
        self.offset += bytes.len() as u64;
        Ok(handle)
    }
}

#[derive(Debug)]
struct BlockBuilder {
    bytes: Vec<u8>,
    restarts: Vec<u32>,
    interval: usize,
    since_restart: usize,
    last_key: Vec<u8>,
}

impl BlockBuilder {
    fn new(interval: usize) -> Self {
        Self {
            bytes: Vec::new(),
            restarts: vec![0],
            interval,
            since_restart: 0,
            last_key: Vec::new(),
        }
    }

    fn is_empty(&self) -> bool {
        self.bytes.is_empty()
    }

    /// Returns the length that the block will have, in bytes.
    fn size(&self) -> usize {
        self.bytes.len() + self.restarts.len() * 4 + 4
    }

    fn append(&mut self, key: &[u8], value: &[u8]) {
        let mut shared = 0;
        if self.since_restart < self.interval {
            shared = self.last_key.iter().zip(key).take_while(|(a, b)| a == b).count();
        } else {
            // A block holds less than 4 GiB unless a single entry is larger, and no restart follows
            // that entry in the block.
            self.restarts.push(u32::try_from(self.bytes.len()).unwrap_or(u32::MAX));
            self.since_restart = 0;
        }
        let suffix = key.get(shared..).unwrap_or_default();
        varint::push(&mut self.bytes, shared as u64);
        varint::push(&mut self.bytes, suffix.len() as u64);
        varint::push(&mut self.bytes, value.len() as u64);
        self.bytes.extend_from_slice(suffix);
        self.bytes.extend_from_slice(value);
        self.last_key.truncate(shared);
        self.last_key.extend_from_slice(suffix);
        self.since_restart += 1;
    }

    fn add(&mut self, key: Vec<u8>, handle: BlockHandle) {
        let mut value = Vec::new();
        handle.write(&mut value);
        self.append(&key, &value);
    }

    fn finish(mut self) -> Vec<u8> {
        for restart in &self.restarts {
            self.bytes.extend_from_slice(&restart.to_le_bytes());
        }
        self.bytes.extend_from_slice(&(self.restarts.len() as u32).to_le_bytes());
        self.bytes
    }
}

/// Returns a short key that is not below `low` and below `high`.
fn shortest_separator(low: &[u8], high: &[u8]) -> Vec<u8> {
    let common = low.iter().zip(high).take_while(|(a, b)| a == b).count();
    let mut key = low.to_vec();
    if let (Some(a), Some(b)) = (low.get(common), high.get(common))
        && let Some(next) = a.checked_add(1)
        && next < *b
    {
        key.truncate(common);
        key.push(next);
    }
    key
}

/// Returns a short key that is not below `key`.
fn shortest_successor(key: &[u8]) -> Vec<u8> {
    let mut short = key.to_vec();
    if let Some(at) = key.iter().position(|byte| *byte != 0xff)
        && let Some(byte) = short.get_mut(at)
    {
        *byte += 1;
        short.truncate(at + 1);
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_lie_between_their_keys() {
        assert_eq!(shortest_separator(b"abcdef", b"abzz"), b"abd");
        assert_eq!(shortest_separator(b"abc", b"abd"), b"abc");
        assert_eq!(shortest_separator(b"ab", b"abc"), b"ab");
        assert_eq!(shortest_separator(b"a\xff", b"b"), b"a\xff");
        assert_eq!(shortest_successor(b"zeta"), b"{");
        assert_eq!(shortest_successor(b"\xff\xffa"), b"\xff\xffb");
        assert_eq!(shortest_successor(b"\xff\xff"), b"\xff\xff");
        assert_eq!(shortest_successor(b""), b"");
    }
}
