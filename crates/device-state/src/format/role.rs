//! Roles of a file in a state: the whole state, the part of one process, or the index over the
//! parts.

use super::{
    Cursor, Error, length_u32,
    trailer::{TRAILER_BYTES, Trailer},
};

/// Role of a file in a state.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) enum Role {
    /// The whole state.
    #[default]
    Whole,
    /// A part written by one of several processes.
    Part(PartRole),
    /// The index over the parts of all processes; the file has no data itself.
    Merged(MergedRole),
}

/// The part of one process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartRole {
    /// Id of the save.
    pub(crate) save: [u8; 16],
    /// Number of the part, from 0.
    pub(crate) number: u32,
    /// Number of parts of the save.
    pub(crate) count: u32,
}

impl PartRole {
    pub(super) fn encode(self) -> Vec<u8> {
        let mut bytes = self.save.to_vec();
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.count.to_le_bytes());
        bytes
    }

    pub(super) fn decode(value: &[u8]) -> Result<Self, Error> {
        let mut cursor = Cursor::new(value, "header: part");
        let part = Self { save: cursor.array()?, number: cursor.u32()?, count: cursor.u32()? };
        if cursor.remaining() > 0 || part.number >= part.count {
            return Err(Error::corrupt(
                "header: part",
                format!("part {} of {} in {} bytes", part.number, part.count, value.len()),
                "a part below their number, in 24 bytes".to_owned(),
            ));
        }
        Ok(part)
    }
}

/// The parts that make up a state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct MergedRole {
    /// Id of the save that the parts belong to.
    pub(crate) save: [u8; 16],
    /// Name of the directory of the parts, beside the file.
    pub(crate) directory: String,
    /// Parts in the order of their numbers.
    pub(crate) parts: Vec<PartRecord>,
}

/// Length and checksum of a part, so that no other file is mistaken for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartRecord {
    /// Length of the part's header in bytes.
    pub(crate) header_bytes: u64,
    /// The part's trailer.
    pub(crate) trailer: Trailer,
}

impl MergedRole {
    pub(super) fn encode(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = self.save.to_vec();
        bytes.extend(length_u32(self.parts.len(), "parts")?.to_le_bytes());
        bytes.extend(length_u32(self.directory.len(), "name of the directory")?.to_le_bytes());
        bytes.extend(self.directory.as_bytes());
        bytes.resize(bytes.len().next_multiple_of(8), 0);
        for part in &self.parts {
            bytes.extend(part.header_bytes.to_le_bytes());
            bytes.extend(part.trailer.encode());
        }
        Ok(bytes)
    }

    pub(super) fn decode(value: &[u8]) -> Result<Self, Error> {
        const WHAT: &str = "header: merged parts";
        let mut cursor = Cursor::new(value, WHAT);
        let save = cursor.array()?;
        let (count, length) = (cursor.u32()? as usize, cursor.u32()? as usize);
        let name = cursor.take(length)?;
        let padding = length.next_multiple_of(8) - length;
        Cursor::new(cursor.take(padding)?, WHAT).zeros()?;
        let directory = std::str::from_utf8(name).ok().filter(|name| is_plain_name(name));
        let Some(directory) = directory else {
            let found = format!("the directory {:?}", String::from_utf8_lossy(name));
            return Err(Error::corrupt(WHAT, found, "the plain name of one".to_owned()));
        };
        if Some(cursor.remaining()) != count.checked_mul(8 + TRAILER_BYTES) || count == 0 {
            let found = format!("{} bytes for {count} parts", cursor.remaining());
            return Err(Error::corrupt(WHAT, found, "72 bytes a part, at least one".to_owned()));
        }
        let mut parts = Vec::with_capacity(count);
        let mut total = 0_u64;
        for _ in 0..count {
            let header_bytes = cursor.u64()?;
            let trailer: [u8; TRAILER_BYTES] = cursor.array()?;
            let length = super::u64_at(&trailer, 16);
            let trailer = Trailer::decode(&trailer, length)?;
            total = total
                .checked_add(length)
                .filter(|_| header_bytes <= trailer.index_offset)
                .ok_or_else(|| {
                    let found = format!("a part of {length} bytes with a header of {header_bytes}");
                    Error::corrupt(WHAT, found, "lengths that a file can have".to_owned())
                })?;
            parts.push(PartRecord { header_bytes, trailer });
        }
        Ok(Self { save, directory: directory.to_owned(), parts })
    }

    /// Returns the offset of each part in the concatenation of all parts.
    pub(crate) fn bases(&self) -> impl Iterator<Item = u64> {
        self.parts.iter().scan(0_u64, |base, part| {
            let this = *base;
            *base = base.saturating_add(part.trailer.file_bytes);
            Some(this)
        })
    }
}

/// Returns true if `name` is a plain file name without a path.
fn is_plain_name(name: &str) -> bool {
    !name.is_empty()
        && name.len() <= 255
        && !matches!(name, "." | "..")
        && !name.contains(['/', '\\', ':', '\0'])
}
