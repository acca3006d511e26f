//! The bytes of a device state, as specified in docs/format.md.
//!
//! Encodes and decodes numbers and names. Does not depend on files, devices or threads; array specs
//! are opaque bytes here.

pub(super) mod header;
pub(super) mod index;
pub(super) mod piece;
pub(super) mod role;
pub(super) mod spread;
pub(super) mod trailer;

#[cfg(test)]
mod tests;

use super::Error;
pub(super) use serdes_files::crc32c as checksum;

/// The first eight bytes. The first of them cannot open a protobuf message (wire type 7), is not
/// ASCII, and the line endings show a transfer in text mode.
pub const MAGIC: [u8; 8] = *b"\x8fSDS\r\n\x1a\n";
/// The last eight bytes.
pub const END_MAGIC: [u8; 8] = *b"\x8fSDSend\n";

/// Headers, pieces and the index begin at multiples of this.
pub(super) const ALIGNMENT: u64 = 64;
/// Data of at least [`PAGE_ALIGNED_FROM`] bytes begins at a multiple of this.
pub(super) const PAGE_ALIGNMENT: u64 = 4096;
/// Smaller data is aligned to [`ALIGNMENT`] only, so that small tensors do not waste a page each.
pub(super) const PAGE_ALIGNED_FROM: u64 = 1 << 20;

/// Bit of a tag whose content a reader must understand.
pub(super) const CRITICAL: u32 = 1 << 31;

/// Rounds `offset` up to a multiple of `alignment`, a power of two; `None` on overflow.
pub(super) fn align(offset: u64, alignment: u64) -> Option<u64> {
    Some(offset.checked_add(alignment - 1)? & !(alignment - 1))
}

/// A cursor over untrusted bytes; every read returns an error instead of reading past the end.
#[derive(Clone)]
pub(super) struct Cursor<'a> {
    bytes: &'a [u8],
    position: usize,
    /// Name of the block for messages.
    what: &'static str,
}

impl<'a> Cursor<'a> {
    pub(super) fn new(bytes: &'a [u8], what: &'static str) -> Self {
        Self { bytes, position: 0, what }
    }

    pub(super) fn remaining(&self) -> usize {
        self.bytes.len() - self.position
    }

    pub(super) fn position(&self) -> usize {
        self.position
    }

    pub(super) fn take(&mut self, count: usize) -> Result<&'a [u8], Error> {
        let rest = self.bytes.get(self.position..).unwrap_or_default();
        let Some(taken) = rest.get(..count) else {
            return Err(Error::corrupt(
                self.what,
                format!("{} bytes after byte {}", rest.len(), self.position),
                format!("{count} bytes"),
            ));
        };
        self.position += count;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let mut array = [0; N];
        array.copy_from_slice(self.take(N)?);
        Ok(array)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    pub(super) fn i32(&mut self) -> Result<i32, Error> {
        Ok(i32::from_le_bytes(self.array()?))
    }

    pub(super) fn u64(&mut self) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    /// Reads a string: its length in bytes as u32, then UTF-8.
    pub(super) fn string(&mut self) -> Result<&'a str, Error> {
        let count = self.u32()? as usize;
        let bytes = self.take(count)?;
        std::str::from_utf8(bytes)
            .map_err(|error| Error::corrupt(self.what, error.to_string(), "UTF-8".to_owned()))
    }

    /// Checks that the remaining bytes are zero.
    pub(super) fn zeros(&mut self) -> Result<(), Error> {
        let rest = self.take(self.remaining())?;
        match rest.iter().find(|&&byte| byte != 0) {
            None => Ok(()),
            Some(byte) => {
                Err(Error::corrupt(self.what, format!("{byte:#04x} in padding"), "zeros".into()))
            }
        }
    }
}

/// Converts `length` to the u32 that the format stores.
pub(super) fn length_u32(length: usize, what: &'static str) -> Result<u32, Error> {
    u32::try_from(length).map_err(|_| Error::TooLarge { what, found: length as u64 })
}

/// Returns the little-endian u32 at `offset` of bytes whose length has been checked.
#[inline]
pub(super) fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    let found = bytes.get(offset..).and_then(|bytes| bytes.first_chunk());
    found.map_or(0, |bytes| u32::from_le_bytes(*bytes))
}

/// Returns the little-endian u64 at `offset` of bytes whose length has been checked.
#[inline]
pub(super) fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    let found = bytes.get(offset..).and_then(|bytes| bytes.first_chunk());
    found.map_or(0, |bytes| u64::from_le_bytes(*bytes))
}
