//! Reads the header of a file and checks its versions first.

use std::path::Path;

use serdes::version::DeviceState;
use serdes_files::ReadAt;

use crate::{
    Error,
    format::header::{Header, PREFIX_BYTES, Prefix, Supported},
};

/// Reads the header of a file and checks its versions; returns the header, its checksum and its
/// length.
pub(crate) fn read_header(
    source: &dyn ReadAt,
    path: &Path,
    file_bytes: u64,
) -> Result<(Header, u32, u64), Error> {
    let io = |error| Error::io("read", path, error);
    let ours = Supported::in_line::<DeviceState>();
    let mut prefix = vec![0; PREFIX_BYTES.min(usize::try_from(file_bytes).unwrap_or(usize::MAX))];
    source.read_exact_at(&mut prefix, 0).map_err(io)?;
    let length = Prefix::decode(&prefix, ours)?.header_bytes;
    if length as u64 > file_bytes {
        let found = format!("{file_bytes} bytes");
        return Err(Error::corrupt("header", found, format!("{length} bytes")));
    }
    let mut bytes = vec![0; length];
    source.read_exact_at(&mut bytes, 0).map_err(io)?;
    let header = Header::decode(&bytes, ours)?;
    let sum = bytes.last_chunk().map_or(0, |sum| u32::from_le_bytes(*sum));
    Ok((header, sum, length as u64))
}
