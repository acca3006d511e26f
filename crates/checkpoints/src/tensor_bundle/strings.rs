//! String and variant tensors: elements of any length, with embedded checksums.

use serdes_files::Crc32c;
use serdes_graph_format::data_type::{DataType, describe};
use serdes_wire::varint;

use super::{
    Bundle,
    data::{StoredBytes, check_crc, read_failed},
    entry::TensorEntry,
    error::BundleError,
};
use crate::checksum::unmask;

/// Bytes that are read from a data file at a time.
const BUFFER: usize = 64 * 1024;

/// Reads the bytes of an entry from its start; it may read past the entry's end, as TensorFlow's
/// reader may.
struct Walk<'a> {
    place: &'a StoredBytes,
    entry: &'a TensorEntry,
    buffer: Vec<u8>,
    used: usize,
    /// Offset in the file of the byte after the buffer.
    next: u64,
}

impl<'a> Walk<'a> {
    fn new(place: &'a StoredBytes, entry: &'a TensorEntry) -> Self {
        Self { place, entry, buffer: Vec::new(), used: 0, next: place.offset }
    }

    /// Returns the number of bytes read since the start of the entry.
    fn passed(&self) -> u64 {
        let ready = (self.buffer.len() - self.used) as u64;
        self.next.saturating_sub(self.place.offset).saturating_sub(ready)
    }

    /// Returns the number of bytes of the file that are left.
    fn rest(&self) -> u64 {
        self.place.shard.len.saturating_sub(self.place.offset).saturating_sub(self.passed())
    }

    fn short(&self) -> BundleError {
        read_failed(&self.place.shard, self.entry, std::io::ErrorKind::UnexpectedEof.into())
    }

    /// Returns up to `wanted` bytes, at least one.
    fn some(&mut self, wanted: usize) -> Result<&[u8], BundleError> {
        if self.used == self.buffer.len() {
            let rest = self.place.shard.len.saturating_sub(self.next);
            let count = usize::try_from(rest).unwrap_or(BUFFER).min(BUFFER);
            if count == 0 {
                return Err(self.short());
            }
            self.buffer.resize(count, 0);
            self.used = 0;
            let read = self.place.shard.source.read_exact_at(&mut self.buffer, self.next);
            read.map_err(|source| read_failed(&self.place.shard, self.entry, source))?;
            self.next += count as u64;
        }
        let end = self.buffer.len().min(self.used.saturating_add(wanted));
        let taken = self.buffer.get(self.used..end).unwrap_or_default();
        self.used = end;
        Ok(taken)
    }

    fn byte(&mut self) -> Result<u8, BundleError> {
        Ok(self.some(1)?.first().copied().unwrap_or(0))
    }

    /// Returns a length; bits above the 64th are dropped, as in LevelDB.
    fn length(&mut self) -> Result<u64, BundleError> {
        let length = varint::wrapping_from(|| self.byte())?;
        length.ok_or_else(|| BundleError::StringLength { name: self.entry.display() })
    }

    /// Reads the next `len` bytes, appending them to `out` and to the checksum.
    fn bytes(
        &mut self,
        mut len: u64,
        crc: &mut Crc32c,
        out: &mut Vec<u8>,
    ) -> Result<(), BundleError> {
        if len > self.rest() {
            return Err(self.short());
        }
        while len > 0 {
            let some = self.some(usize::try_from(len).unwrap_or(usize::MAX))?;
            crc.update(some);
            out.extend_from_slice(some);
            len -= some.len() as u64;
        }
        Ok(())
    }

    fn four(&mut self) -> Result<[u8; 4], BundleError> {
        let mut four = [0; 4];
        for byte in &mut four {
            *byte = self.byte()?;
        }
        Ok(four)
    }
}

impl Bundle {
    /// Calls `each` with every element of a string tensor, in order. The checksum of the lengths is
    /// compared before the first element, the checksum of the bytes after the last: the elements
    /// are valid only if this returns without an error.
    ///
    /// # Errors
    /// If the tensor does not hold strings, is damaged, or is partitioned.
    pub fn for_each_string(
        &self,
        entry: &TensorEntry,
        each: impl FnMut(&[u8]),
    ) -> Result<(), BundleError> {
        self.elements(entry, DataType::String, each)
    }

    /// Returns the elements of a string tensor, in row-major order.
    ///
    /// # Errors
    /// As [`Bundle::for_each_string`].
    pub fn strings(&self, entry: &TensorEntry) -> Result<Vec<Vec<u8>>, BundleError> {
        let mut strings = Vec::new();
        self.for_each_string(entry, |string| strings.push(string.to_vec()))?;
        Ok(strings)
    }

    /// Calls `each` with every element of a variant tensor, as the stored serialized
    /// VariantTensorDataProto.
    ///
    /// # Errors
    /// As [`Bundle::for_each_string`].
    pub fn for_each_variant(
        &self,
        entry: &TensorEntry,
        each: impl FnMut(&[u8]),
    ) -> Result<(), BundleError> {
        self.elements(entry, DataType::Variant, each)
    }

    fn elements(
        &self,
        entry: &TensorEntry,
        wanted: DataType,
        mut each: impl FnMut(&[u8]),
    ) -> Result<(), BundleError> {
        let unsupported = |reason| BundleError::Unsupported {
            name: entry.display(),
            found: describe(entry.raw.dtype),
            reason,
        };
        if entry.is_partitioned() {
            return Err(unsupported("pieces are joined only for elements of fixed size"));
        }
        let place = self.place(entry)?;
        if place.data_type != wanted {
            return Err(unsupported(match wanted {
                DataType::String => "its elements are not strings",
                _ => "its elements are not variants",
            }));
        }
        match wanted {
            DataType::String => self.walk_strings(&place, entry, &mut each),
            _ => self.walk_variants(&place, entry, &mut each),
        }
    }

    fn walk_strings(
        &self,
        place: &StoredBytes,
        entry: &TensorEntry,
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<(), BundleError> {
        let swap = self.swaps();
        if place.size == 0 {
            // Nothing was stored, not even the checksum of the lengths, so nothing is read.
            return check_crc(entry, Crc32c::new().value());
        }
        let mut walk = Walk::new(place, entry);
        let mut crc = Crc32c::new();
        // A length takes at least a byte of the file, and `place` compared the count with its
        // length; a sparse file can be of any length.
        let mut lengths =
            Vec::with_capacity(usize::try_from(place.count.min(1 << 16)).unwrap_or(0));
        for _ in 0..place.count {
            let length = walk.length()?;
            lengths.push(length);
            // The checksum covers the lengths as numbers in the byte order of the writer, of 32
            // bits where they fit.
            match (u32::try_from(length), swap) {
                (Ok(length), false) => crc.update(&length.to_le_bytes()),
                (Ok(length), true) => crc.update(&length.to_be_bytes()),
                (Err(_), false) => crc.update(&length.to_le_bytes()),
                (Err(_), true) => crc.update(&length.to_be_bytes()),
            }
        }
        if walk.passed() > place.size {
            return Err(BundleError::StringLengths { name: entry.display(), size: entry.raw.size });
        }
        let stored = walk.four()?;
        let masked = if swap { u32::from_be_bytes(stored) } else { u32::from_le_bytes(stored) };
        let (stored_crc, computed) = (unmask(masked), crc.value());
        if stored_crc != computed {
            return Err(BundleError::StringLengthChecksum {
                name: entry.display(),
                stored: stored_crc,
                computed,
            });
        }
        crc.update(&stored);
        let mut string = Vec::new();
        for length in lengths {
            string.clear();
            walk.bytes(length, &mut crc, &mut string)?;
            each(&string);
        }
        check_crc(entry, crc.value())
    }

    fn walk_variants(
        &self,
        place: &StoredBytes,
        entry: &TensorEntry,
        each: &mut dyn FnMut(&[u8]),
    ) -> Result<(), BundleError> {
        if self.swaps() {
            return Err(BundleError::Unsupported {
                name: entry.display(),
                found: describe(entry.raw.dtype),
                reason: "variants are not read from a machine of the other byte order",
            });
        }
        let mut walk = Walk::new(place, entry);
        let mut crc = Crc32c::new();
        let mut variant = Vec::new();
        for _ in 0..place.count {
            let length = walk.length()?;
            crc.update(&length.to_le_bytes());
            if walk.passed().saturating_add(length) > place.size {
                return Err(BundleError::StringLengths {
                    name: entry.display(),
                    size: entry.raw.size,
                });
            }
            variant.clear();
            walk.bytes(length, &mut crc, &mut variant)?;
            let stored = walk.four()?;
            let (stored_crc, computed) = (unmask(u32::from_le_bytes(stored)), crc.value());
            if stored_crc != computed {
                return Err(BundleError::StringLengthChecksum {
                    name: entry.display(),
                    stored: stored_crc,
                    computed,
                });
            }
            crc.update(&stored);
            each(&variant);
        }
        check_crc(entry, crc.value())
    }
}
