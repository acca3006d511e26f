//! The last 64 bytes: the position of the index, and the check that the file is complete.

use super::{Cursor, END_MAGIC, Error, checksum};

/// Length of the trailer in bytes.
pub(crate) const TRAILER_BYTES: usize = 64;

/// The trailer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Trailer {
    pub(crate) index_offset: u64,
    pub(crate) index_bytes: u64,
    /// Length of the whole file, including the trailer.
    pub(crate) file_bytes: u64,
    pub(crate) index_checksum: u32,
    /// Checksum in the last four bytes of the header, which detects the header of another file.
    pub(crate) header_checksum: u32,
    /// Total payload of the pieces in this file.
    pub(crate) data_bytes: u64,
}

impl Trailer {
    pub(crate) fn encode(&self) -> [u8; TRAILER_BYTES] {
        let mut bytes = Vec::with_capacity(TRAILER_BYTES);
        bytes.extend(self.index_offset.to_le_bytes());
        bytes.extend(self.index_bytes.to_le_bytes());
        bytes.extend(self.file_bytes.to_le_bytes());
        bytes.extend(self.index_checksum.to_le_bytes());
        bytes.extend(self.header_checksum.to_le_bytes());
        bytes.extend(self.data_bytes.to_le_bytes());
        bytes.resize(TRAILER_BYTES - 12, 0);
        bytes.extend(checksum(&bytes).to_le_bytes());
        bytes.extend(END_MAGIC);
        let mut trailer = [0; TRAILER_BYTES];
        trailer.copy_from_slice(&bytes);
        trailer
    }

    /// Decodes the trailer from the last bytes of a file of `file_bytes` bytes.
    pub(crate) fn decode(bytes: &[u8; TRAILER_BYTES], file_bytes: u64) -> Result<Self, Error> {
        const WHAT: &str = "trailer";
        if !bytes.ends_with(&END_MAGIC) {
            return Err(Error::corrupt(
                WHAT,
                format!("a file of {file_bytes} bytes without the closing mark"),
                "a whole state; it was truncated, or something was appended".to_owned(),
            ));
        }
        let mut cursor = Cursor::new(bytes, WHAT);
        let trailer = Self {
            index_offset: cursor.u64()?,
            index_bytes: cursor.u64()?,
            file_bytes: cursor.u64()?,
            index_checksum: cursor.u32()?,
            header_checksum: cursor.u32()?,
            data_bytes: cursor.u64()?,
        };
        let reserved = cursor.take(12)?;
        let (stored, computed) = (cursor.u32()?, checksum(&bytes[..TRAILER_BYTES - 12]));
        if stored != computed {
            return Err(Error::checksum(WHAT, stored, computed));
        }
        if reserved.iter().any(|&byte| byte != 0) {
            return Err(Error::corrupt(WHAT, "reserved bytes set".into(), "zeros".into()));
        }
        let end = trailer
            .index_offset
            .checked_add(trailer.index_bytes)
            .and_then(|end| end.checked_add(TRAILER_BYTES as u64));
        if trailer.file_bytes != file_bytes || end != Some(file_bytes) {
            return Err(Error::corrupt(
                WHAT,
                format!("{file_bytes} bytes"),
                format!("{} bytes", trailer.file_bytes),
            ));
        }
        Ok(trailer)
    }
}
