//! Pieces: the data of one shard, between a header and a footer that repeat its description, so
//! that a truncated file can still be read.

use super::{
    ALIGNMENT, Cursor, Error, PAGE_ALIGNED_FROM, PAGE_ALIGNMENT, align, checksum, length_u32,
};

const HEADER_MAGIC: [u8; 8] = *b"\x8fSDSbuf\n";
const FOOTER_MAGIC: [u8; 4] = *b"\x8fSUM";
/// Bytes of a piece header before the name.
pub(crate) const HEADER_FIXED_BYTES: usize = 48;
/// Bytes of a footer besides the checksums of the chunks.
const FOOTER_FIXED_BYTES: u64 = 12;

/// The part of an array that a piece holds, as one `(start, extent)` in elements per dimension;
/// `None` for the whole array.
pub(crate) type Domain = Option<Vec<(u64, u64)>>;

/// Contents of a piece's header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PieceHeader<'a> {
    /// The name of the array.
    pub(crate) name: &'a str,
    /// The serialized ArraySpec of the array.
    pub(crate) spec: &'a [u8],
    /// Position of the piece in the file, from 0.
    pub(crate) number: u32,
    /// Id of the device that the piece was copied from.
    pub(crate) device: i32,
    /// Part of the array that the piece holds.
    pub(crate) domain: Domain,
    /// Offset of the data in the file.
    pub(crate) data_offset: u64,
    /// Length of the data in bytes.
    pub(crate) data_bytes: u64,
}

/// Positions of a piece's header, data and footer, in bytes from the start of the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PieceLayout {
    pub(crate) header: u64,
    pub(crate) data: u64,
    pub(crate) footer: u64,
    /// End of the padded footer, where the next piece or the index begins.
    pub(crate) end: u64,
}

/// Returns the number of chunks of `chunk_bytes` in `data_bytes`.
pub(crate) fn chunk_count(data_bytes: u64, chunk_bytes: u32) -> u64 {
    data_bytes.div_ceil(u64::from(chunk_bytes.max(1)))
}

impl PieceLayout {
    /// Creates the layout of a piece that begins at `header`; `None` on overflow.
    pub(crate) fn new(
        header: u64,
        header_bytes: u64,
        data_bytes: u64,
        chunk_bytes: u32,
    ) -> Option<Self> {
        let alignment = if data_bytes >= PAGE_ALIGNED_FROM { PAGE_ALIGNMENT } else { ALIGNMENT };
        let data = align(header.checked_add(header_bytes)?, alignment)?;
        let footer = data.checked_add(data_bytes)?;
        let checksums = chunk_count(data_bytes, chunk_bytes).checked_mul(4)?;
        let end = footer.checked_add(FOOTER_FIXED_BYTES)?.checked_add(checksums)?;
        Some(Self { header, data, footer, end: align(end, ALIGNMENT)? })
    }
}

/// Returns the length in bytes of a piece header without its padding.
pub(crate) fn header_length(name_bytes: usize, spec_bytes: usize, rank: usize) -> u64 {
    (HEADER_FIXED_BYTES + 4) as u64 + name_bytes as u64 + spec_bytes as u64 + 16 * rank as u64
}

impl PieceHeader<'_> {
    fn rank(&self) -> usize {
        self.domain.as_ref().map_or(0, Vec::len)
    }

    /// Returns the length in bytes without padding.
    pub(crate) fn length(&self) -> u64 {
        header_length(self.name.len(), self.spec.len(), self.rank())
    }

    /// Encodes the header without padding.
    pub(crate) fn encode(&self) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::with_capacity(self.length() as usize);
        self.encode_into(&mut bytes)?;
        Ok(bytes)
    }

    /// Appends the encoded header without padding.
    #[expect(clippy::indexing_slicing, reason = "`bytes` only grows, so that `begin` is within")]
    pub(crate) fn encode_into(&self, bytes: &mut Vec<u8>) -> Result<(), Error> {
        let begin = bytes.len();
        bytes.extend(HEADER_MAGIC);
        bytes.extend(self.data_offset.to_le_bytes());
        bytes.extend(self.data_bytes.to_le_bytes());
        bytes.extend(self.number.to_le_bytes());
        bytes.extend(self.device.to_le_bytes());
        bytes.extend(length_u32(self.name.len(), "name")?.to_le_bytes());
        bytes.extend(length_u32(self.spec.len(), "array spec")?.to_le_bytes());
        bytes.extend(length_u32(self.rank(), "rank")?.to_le_bytes());
        bytes.extend(u32::from(self.domain.is_some()).to_le_bytes());
        bytes.extend(self.name.as_bytes());
        bytes.extend(self.spec);
        for (start, extent) in self.domain.iter().flatten() {
            bytes.extend(start.to_le_bytes());
            bytes.extend(extent.to_le_bytes());
        }
        let sum = checksum(&bytes[begin..]);
        bytes.extend(sum.to_le_bytes());
        Ok(())
    }
}

/// Returns the length in bytes, without padding, of the piece header that begins with `bytes`;
/// `None` if it is not a piece header.
pub(crate) fn announced(bytes: &[u8; HEADER_FIXED_BYTES]) -> Option<u64> {
    if !bytes.starts_with(&HEADER_MAGIC) {
        return None;
    }
    let name = super::u32_at(bytes, 32) as usize;
    let spec = super::u32_at(bytes, 36) as usize;
    let rank = super::u32_at(bytes, 40) as usize;
    Some(header_length(name, spec, rank))
}

/// Verifies the checksum at the end of `bytes`, and returns the bytes before it.
fn checked<'b>(bytes: &'b [u8], what: &'static str) -> Result<&'b [u8], Error> {
    let Some((body, stored)) = bytes.split_last_chunk::<4>() else {
        return Err(Error::corrupt(what, format!("{} bytes", bytes.len()), "more".to_owned()));
    };
    let (stored, computed) = (u32::from_le_bytes(*stored), checksum(body));
    if stored != computed {
        return Err(Error::checksum(what, stored, computed));
    }
    Ok(body)
}

/// Decodes a piece header, without padding.
pub(crate) fn decode_header(bytes: &[u8]) -> Result<PieceHeader<'_>, Error> {
    const WHAT: &str = "piece header";
    let mut cursor = Cursor::new(checked(bytes, WHAT)?, WHAT);
    if cursor.array::<8>()? != HEADER_MAGIC {
        return Err(Error::corrupt(WHAT, "another mark".to_owned(), "a piece".to_owned()));
    }
    let (data_offset, data_bytes) = (cursor.u64()?, cursor.u64()?);
    let (number, device) = (cursor.u32()?, cursor.i32()?);
    let (name_bytes, spec_bytes) = (cursor.u32()? as usize, cursor.u32()? as usize);
    let (rank, partial) = (cursor.u32()?, cursor.u32()?);
    let name = std::str::from_utf8(cursor.take(name_bytes)?)
        .map_err(|error| Error::corrupt(WHAT, error.to_string(), "a name in UTF-8".to_owned()))?;
    let spec = cursor.take(spec_bytes)?;
    let mut domain = Vec::new();
    for _ in 0..rank {
        domain.push((cursor.u64()?, cursor.u64()?));
    }
    if cursor.remaining() != 0 || partial > 1 || (partial == 0 && rank != 0) {
        return Err(Error::corrupt(
            WHAT,
            format!("domain kind {partial}, {} bytes left", cursor.remaining()),
            "kind 0 or 1, nothing left".to_owned(),
        ));
    }
    let domain = (partial == 1).then_some(domain);
    Ok(PieceHeader { name, spec, number, device, domain, data_offset, data_bytes })
}

/// Encodes the footer after a piece's data, without padding.
pub(crate) fn encode_footer(number: u32, checksums: &[u32]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(FOOTER_FIXED_BYTES as usize + 4 * checksums.len());
    encode_footer_into(number, checksums.iter().copied(), &mut bytes);
    bytes
}

/// Appends the footer after a piece's data, without padding.
#[expect(clippy::indexing_slicing, reason = "`bytes` only grows, so that `begin` is within")]
pub(crate) fn encode_footer_into(
    number: u32,
    checksums: impl Iterator<Item = u32>,
    bytes: &mut Vec<u8>,
) {
    let begin = bytes.len();
    bytes.extend(FOOTER_MAGIC);
    bytes.extend(number.to_le_bytes());
    bytes.extend(checksums.flat_map(u32::to_le_bytes));
    let sum = checksum(&bytes[begin..]);
    bytes.extend(sum.to_le_bytes());
}

/// Reads the checksums of piece `number` out of the bytes of its footer, without padding.
pub(crate) fn decode_footer(bytes: &[u8], number: u32) -> Result<Vec<u32>, Error> {
    const WHAT: &str = "piece footer";
    let mut cursor = Cursor::new(checked(bytes, WHAT)?, WHAT);
    let magic = cursor.array::<4>()?;
    let found = cursor.u32()?;
    if magic != FOOTER_MAGIC || found != number {
        return Err(Error::corrupt(WHAT, format!("piece {found}"), format!("piece {number}")));
    }
    let mut checksums = Vec::with_capacity(cursor.remaining() / 4);
    while cursor.remaining() > 0 {
        checksums.push(cursor.u32()?);
    }
    Ok(checksums)
}
