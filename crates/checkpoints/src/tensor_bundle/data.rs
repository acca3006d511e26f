//! The bytes of a tensor that is stored in one place: read in order, verified on the way.

use std::{io, sync::Arc};

use serdes_files::Crc32c;
use serdes_graph_format::data_type::{DataType, describe};

use super::{Bundle, entry::TensorEntry, error::BundleError, messages::Endianness, reader::Shard};
use crate::checksum::unmask;

/// Small reads are served from a buffer of this size, in bytes; a multiple of every element size.
const BUFFER: usize = 64 * 1024;

/// Large reads are split into pieces of this size, in bytes, so that the checksum finds them in the
/// processor's cache.
const STEP: usize = 128 * 1024;

/// The location of an entry's bytes, after all checks that do not read them.
#[derive(Debug)]
pub(super) struct StoredBytes {
    pub(super) shard: Arc<Shard>,
    pub(super) data_type: DataType,
    pub(super) count: u64,
    pub(super) offset: u64,
    /// Stored size in bytes. For strings and variants this is the entry's claim, which may be too
    /// large.
    pub(super) size: u64,
}

impl Bundle {
    /// Checks an entry that is stored in one place, in TensorFlow's order: shape, type, size, file,
    /// offset, length.
    pub(super) fn place(&self, entry: &TensorEntry) -> Result<StoredBytes, BundleError> {
        let count = entry.checked_count()?;
        let data_type = entry.checked_type()?;
        let stored = entry.raw.size;
        let expected = match data_type {
            DataType::Resource => {
                let reason = "a handle has no value in a checkpoint";
                return Err(BundleError::Unsupported {
                    name: entry.display(),
                    found: describe(entry.raw.dtype),
                    reason,
                });
            }
            // Strings need at least one byte of length per element.
            DataType::String => count,
            DataType::Variant => 0,
            fixed => count.saturating_mul(fixed.element_size().unwrap_or(1)),
        };
        let wrong_size = || BundleError::EntrySize { name: entry.display(), stored, expected };
        let size = u64::try_from(stored).map_err(|_| wrong_size())?;
        let exact = data_type.element_size().is_some();
        if size < expected || (exact && size != expected) {
            return Err(wrong_size());
        }
        let shard = self.shard(entry)?;
        let offset = u64::try_from(entry.raw.offset).map_err(|_| BundleError::EntryOffset {
            name: entry.display(),
            offset: entry.raw.offset,
        })?;
        let end = offset.saturating_add(size.max(if exact { 0 } else { count }));
        if end > shard.len && size > 0 {
            return Err(BundleError::ShardShort {
                name: entry.display(),
                path: shard.path.clone(),
                offset,
                end,
                len: shard.len,
            });
        }
        Ok(StoredBytes { shard, data_type, count, offset, size })
    }

    /// Returns true if the byte order of the data files differs from the one that is returned.
    pub(super) fn swaps(&self) -> bool {
        self.header().endianness == Endianness::Big
    }
}

/// Reads a tensor of fixed element size that is stored in one place.
#[derive(Debug)]
pub(super) struct PlainStream {
    shard: Arc<Shard>,
    entry: Box<TensorEntry>,
    at: u64,
    left: u64,
    crc: Crc32c,
    /// Bytes of the unit whose order is reversed; 1 for none.
    unit: usize,
    buffer: Vec<u8>,
    used: usize,
    capacity: usize,
}

impl PlainStream {
    /// Creates a stream from the start of the tensor, which returns little-endian elements.
    /// `capacity` limits the memory for small reads, in bytes.
    pub(super) fn new(
        bundle: &Bundle,
        entry: TensorEntry,
        capacity: usize,
    ) -> Result<Self, BundleError> {
        let place = bundle.place(&entry)?;
        if place.data_type.element_size().is_none() {
            let reason = "its elements have no fixed size; read them as strings";
            return Err(BundleError::Unsupported {
                name: entry.display(),
                found: describe(entry.raw.dtype),
                reason,
            });
        }
        let unit = if bundle.swaps() { place.data_type.swap_unit() } else { 1 };
        let stream = Self {
            at: place.offset,
            left: place.size,
            shard: place.shard,
            entry: Box::new(entry),
            crc: Crc32c::new(),
            unit,
            buffer: Vec::new(),
            used: 0,
            capacity: capacity.clamp(64, BUFFER) / 16 * 16,
        };
        stream.check()?;
        Ok(stream)
    }

    /// Compares the checksums once all bytes are read.
    fn check(&self) -> Result<(), BundleError> {
        if self.left > 0 {
            return Ok(());
        }
        check_crc(&self.entry, self.crc.value())
    }

    /// Fills `to` directly from the file; its length must be a multiple of the unit and at most the
    /// number of bytes left.
    fn direct(&mut self, to: &mut [u8]) -> Result<(), BundleError> {
        let unit = self.unit;
        for chunk in to.chunks_mut(STEP) {
            if let Err(source) = self.shard.source.read_exact_at(chunk, self.at) {
                return Err(self.failed(source));
            }
            self.crc.update(chunk);
            self.at += chunk.len() as u64;
            self.left -= chunk.len() as u64;
            if unit > 1 {
                chunk.chunks_exact_mut(unit).for_each(<[u8]>::reverse);
            }
        }
        self.check()
    }

    fn failed(&self, source: io::Error) -> BundleError {
        read_failed(&self.shard, &self.entry, source)
    }

    /// Reads up to `to.len()` bytes; 0 only at the end. The last bytes are returned only if the
    /// checksum matches.
    pub(super) fn read(&mut self, to: &mut [u8]) -> Result<usize, BundleError> {
        if to.is_empty() {
            return Ok(0);
        }
        if self.used == self.buffer.len() {
            let left = usize::try_from(self.left).unwrap_or(usize::MAX);
            if left == 0 {
                return Ok(0);
            }
            let count = to.len().min(left) / self.unit * self.unit;
            if count >= self.capacity || (count == left && count > 0) {
                self.direct(to.get_mut(..count).unwrap_or_default())?;
                return Ok(count);
            }
            let mut buffer = std::mem::take(&mut self.buffer);
            buffer.resize(self.capacity.min(left), 0);
            self.used = 0;
            self.direct(&mut buffer)?;
            self.buffer = buffer;
        }
        let ready = self.buffer.get(self.used..).unwrap_or_default();
        let count = ready.len().min(to.len());
        if let (Some(to), Some(from)) = (to.get_mut(..count), ready.get(..count)) {
            to.copy_from_slice(from);
        }
        self.used += count;
        Ok(count)
    }

    /// Fills `to`, whose length must not exceed the number of bytes left.
    pub(super) fn read_exact(&mut self, mut to: &mut [u8]) -> Result<(), BundleError> {
        while !to.is_empty() {
            let count = self.read(to)?;
            if count == 0 {
                return Err(self.failed(io::ErrorKind::UnexpectedEof.into()));
            }
            to = to.get_mut(count..).unwrap_or_default();
        }
        Ok(())
    }
}

/// Compares the checksum of bytes that were read with the one in the index.
pub(super) fn check_crc(entry: &TensorEntry, computed: u32) -> Result<(), BundleError> {
    let stored = unmask(entry.raw.crc);
    if stored == computed {
        return Ok(());
    }
    Err(BundleError::TensorChecksum {
        name: entry.display(),
        shard: entry.raw.shard,
        offset: entry.raw.offset,
        size: entry.raw.size,
        stored,
        computed,
    })
}

/// Returns the error of a failed read of a data file: the file ended early, or the system failed.
pub(super) fn read_failed(shard: &Shard, entry: &TensorEntry, source: io::Error) -> BundleError {
    if source.kind() == io::ErrorKind::UnexpectedEof {
        let offset = u64::try_from(entry.raw.offset).unwrap_or(0);
        let end = offset.saturating_add(u64::try_from(entry.raw.size).unwrap_or(0));
        return BundleError::ShardShort {
            name: entry.display(),
            path: shard.path.clone(),
            offset,
            end,
            len: shard.len,
        };
    }
    BundleError::Io { path: shard.path.clone(), source }
}
