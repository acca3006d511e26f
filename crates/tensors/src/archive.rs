//! Zip archives whose entries are read in place, for NumPy's and PyTorch's files.
//!
//! Does not depend on the contents of entries.

use std::{
    io::{self, Read, Seek, SeekFrom},
    path::Path,
    sync::Arc,
};

use serdes_files::ReadAt;
use zip::CompressionMethod;

use super::{Error, section::Section};

/// An entry in the archive's directory.
pub(super) type RawEntry<'a> = zip::read::ZipFile<'a, Positioned>;

/// An entry of an archive.
pub(super) struct Member<T> {
    pub(super) name: String,
    /// Position of its bytes; `None` if they are neither stored nor deflated.
    pub(super) content: Option<Content>,
    /// True if the bytes are in the file, and not encrypted.
    pub(super) is_inside: bool,
    /// Further facts that the reader of this kind of archive needs.
    pub(super) detail: T,
}

/// Position of an entry in the archive, and the length and checksum of its bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Content {
    pub(super) begin: u64,
    pub(super) stored_bytes: u64,
    pub(super) bytes: u64,
    pub(super) compressed: bool,
    pub(super) checksum: u32,
}

/// Returns the entries of an archive that is read as a file of this kind, each with its `detail`.
///
/// # Errors
/// If there is no directory; if two entries have one name, of which a reader would see only the
/// last one; or if two share bytes, so that a small archive could expand beyond any disk.
pub(super) fn members<T>(
    file: &Arc<dyn ReadAt>,
    path: &Path,
    kind: &'static str,
    detail: impl Fn(&RawEntry<'_>) -> T,
) -> Result<Vec<Member<T>>, Error> {
    let size = file.size().map_err(|error| Error::io("read", path, error))?;
    let corrupt = |error: zip::result::ZipError| match error {
        zip::result::ZipError::Io(error)
            if !matches!(
                error.kind(),
                io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData
            ) =>
        {
            Error::io("read", path, error)
        }
        error => Error::corrupt(path, kind, error.to_string(), "a zip archive"),
    };
    let positioned = Positioned::new(Arc::clone(file), size);
    let mut archive = zip::ZipArchive::new(positioned).map_err(corrupt)?;
    if archive.has_duplicate_names() {
        return Err(Error::corrupt(path, kind, "two entries of one name", "each name once"));
    }
    let mut members = Vec::with_capacity(archive.len());
    for number in 0..archive.len() {
        let found = archive.by_index_raw(number).map_err(corrupt)?;
        let name = found.name().map_err(corrupt)?.into_owned();
        let content = Content::of(&found);
        let is_inside = content.is_some_and(|content| {
            let end = content.begin.checked_add(content.stored_bytes);
            end.is_some_and(|end| end <= size) && !found.encrypted()
        });
        members.push(Member { name, content, is_inside, detail: detail(&found) });
    }
    match first_overlap(&members) {
        None => Ok(members),
        Some(name) => {
            let found = format!("{name:?} over another entry");
            Err(Error::corrupt(path, kind, found, "entries that lie one behind the other"))
        }
    }
}

/// Returns the first entry that overlaps another one.
fn first_overlap<T>(members: &[Member<T>]) -> Option<&str> {
    let mut places: Vec<(u64, u64, &str)> = members
        .iter()
        .filter(|member| member.is_inside)
        .filter_map(|Member { name, content, .. }| {
            let Content { begin, stored_bytes, .. } = (*content)?;
            Some((begin, begin.checked_add(stored_bytes).filter(|end| *end > begin)?, &**name))
        })
        .collect();
    places.sort_unstable();
    let pairs = places.iter().zip(places.iter().skip(1));
    pairs.filter(|(one, next)| next.0 < one.1).map(|(_, next)| next.2).next()
}

impl Content {
    /// Returns the content of an entry that is stored or deflated.
    fn of<R: Read>(found: &zip::read::ZipFile<'_, R>) -> Option<Self> {
        let compressed = match found.compression() {
            CompressionMethod::Stored => false,
            CompressionMethod::Deflated => true,
            _ => return None,
        };
        Some(Self {
            begin: found.data_start()?,
            stored_bytes: found.compressed_size(),
            bytes: found.size(),
            compressed,
            checksum: found.crc32(),
        })
    }

    /// Returns the bytes without comparing their checksum.
    pub(super) fn raw(self, file: &dyn ReadAt) -> Box<dyn Read + Send + '_> {
        let section = Section::new(file, self.begin, self.begin.saturating_add(self.stored_bytes));
        if self.compressed {
            Box::new(flate2::read::DeflateDecoder::new(section))
        } else {
            Box::new(section)
        }
    }

    /// Returns the bytes; reading fails if they do not match the directory.
    pub(super) fn checked(self, file: &dyn ReadAt) -> Checked<Box<dyn Read + Send + '_>> {
        Checked::new(self.raw(file), self.bytes, self.checksum)
    }

    /// Reads the entry to its end; `go_on` is called with the number of bytes read, and may end the
    /// work.
    ///
    /// # Errors
    /// If the bytes do not match the directory.
    pub(super) fn compare(
        self,
        file: &dyn ReadAt,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> io::Result<()> {
        if self.bytes == 0 {
            return match self.checksum {
                0 => Ok(()),
                _ => Err(io::Error::new(io::ErrorKind::InvalidData, "checksum mismatch")),
            };
        }
        let mut checked = self.checked(file);
        let mut step = vec![0; self.bytes.min(1 << 20) as usize];
        loop {
            let count = checked.read(&mut step)?;
            if count == 0 || !go_on(count as u64) {
                return Ok(());
            }
        }
    }
}

/// Returns the error for an entry that cannot be read: of the file, or of the system.
pub(super) fn read_error(path: &Path, kind: &'static str, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
            Error::corrupt(path, kind, error.to_string(), "an intact archive")
        }
        _ => Error::io("read", path, error),
    }
}

/// Reader of exactly the announced bytes, which fails if they do not match the directory.
pub(super) struct Checked<R> {
    inner: R,
    left: u64,
    digest: crc_fast::Digest,
    expected: u32,
}

impl<R: Read> Checked<R> {
    fn new(inner: R, bytes: u64, expected: u32) -> Self {
        let digest = crc_fast::Digest::new(crc_fast::CrcAlgorithm::Crc32IsoHdlc);
        Self { inner, left: bytes, digest, expected }
    }
}

impl<R: Read> Read for Checked<R> {
    #[expect(clippy::indexing_slicing, reason = "a reader gives no more than it is asked for")]
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.left.min(out.len() as u64) as usize;
        if count == 0 {
            return Ok(0);
        }
        let count = self.inner.read(&mut out[..count])?;
        if count == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "an array that ends early"));
        }
        self.digest.update(&out[..count]);
        self.left -= count as u64;
        if self.left == 0 && self.digest.finalize() != u64::from(self.expected) {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "checksum mismatch"));
        }
        Ok(count)
    }
}

/// Limit on the bytes that are read to find the entries, as a multiple of the file. The directory
/// and the header of each entry are read once; the directory's beginning is searched, and a hostile
/// file may contain many of them.
const MOST_TIMES: u64 = 16;

/// Minimum of bytes that may be read of any file to find its entries.
const LEAST_READ: u64 = 16 << 20;

/// Cost of a read besides its bytes, in bytes.
const READ_COST: u64 = 32;

/// A source with a position, as the zip reader requires.
pub(super) struct Positioned {
    file: Arc<dyn ReadAt>,
    position: u64,
    size: u64,
    /// Bytes that may still be read.
    left: u64,
}

impl Positioned {
    fn new(file: Arc<dyn ReadAt>, size: u64) -> Self {
        let left = size.saturating_mul(MOST_TIMES).saturating_add(LEAST_READ);
        Self { file, position: 0, size, left }
    }
}

impl Read for Positioned {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(out, self.position)?;
        let cost = READ_COST.saturating_add(count as u64);
        self.left = self.left.checked_sub(cost).ok_or_else(|| {
            let reason = "its list of entries is looked for again and again";
            io::Error::new(io::ErrorKind::InvalidData, reason)
        })?;
        self.position += count as u64;
        Ok(count)
    }
}

impl Seek for Positioned {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let position = match to {
            SeekFrom::Start(position) => Some(position),
            SeekFrom::End(distance) => self.size.checked_add_signed(distance),
            SeekFrom::Current(distance) => self.position.checked_add_signed(distance),
        };
        self.position = position.ok_or(io::ErrorKind::InvalidInput)?;
        Ok(self.position)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_not_searched_for_its_entries_for_ever() {
        let mut file = Positioned::new(Arc::new(vec![7; 1 << 20]), 1 << 20);
        let mut bytes = vec![0; 1 << 20];
        for _ in 0..MOST_TIMES {
            file.seek(SeekFrom::Start(0)).unwrap();
            file.read_exact(&mut bytes).unwrap();
        }
        let read = (0..64).try_for_each(|_| {
            file.seek(SeekFrom::Start(0))?;
            file.read_exact(&mut bytes)
        });
        assert_eq!(read.unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
