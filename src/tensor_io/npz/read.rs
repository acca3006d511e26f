//! Reading archives of arrays.

use std::{
    collections::HashSet,
    io::{self, Read, Seek, SeekFrom},
    path::{Path, PathBuf},
    sync::Arc,
};

use zip::CompressionMethod;

use super::{
    super::{
        Error, Refused, Source, TensorInfo,
        npy::{NpyHeader, elements},
        section::Section,
    },
    KIND,
};
use crate::files::ReadAt;

/// Bytes of an entry in which its npy header must end if the entry is compressed.
const HEAD_BYTES: u64 = 64 << 10;
/// Compressed arrays in Fortran order are turned in memory, up to this size.
const TURNED_IN_MEMORY: u64 = 16 << 20;

/// An npz file.
pub(in super::super) struct NpzSource {
    file: Arc<dyn ReadAt>,
    path: PathBuf,
    tensors: Vec<TensorInfo>,
    entries: Vec<Entry>,
    refused: Vec<Refused>,
    /// Every file of the archive that is stored or deflated, arrays or not.
    members: Vec<(String, Content)>,
}

/// Where a file lies in the archive, and what its bytes must be.
#[derive(Clone, Copy)]
struct Content {
    begin: u64,
    stored_bytes: u64,
    bytes: u64,
    compressed: bool,
    checksum: u32,
}

/// An array of the archive.
struct Entry {
    content: Content,
    header: NpyHeader,
}

impl NpzSource {
    pub(in super::super) fn new(file: Arc<dyn ReadAt>, path: &Path) -> Result<Self, Error> {
        let size = file.size().map_err(|error| Error::io("read", path, error))?;
        let corrupt = |error: zip::result::ZipError| match error {
            zip::result::ZipError::Io(error) if error.kind() != io::ErrorKind::UnexpectedEof => {
                Error::io("read", path, error)
            }
            error => Error::corrupt(path, KIND, error.to_string(), "a zip archive"),
        };
        let positioned = Positioned { file: Arc::clone(&file), position: 0, size };
        let mut archive = zip::ZipArchive::new(positioned).map_err(corrupt)?;
        // Of entries that share a name the archive gives out the last one alone.
        if archive.has_duplicate_names() {
            return Err(Error::corrupt(path, KIND, "two entries of one name", "each name once"));
        }
        let mut source = Self {
            file,
            path: path.to_path_buf(),
            tensors: Vec::new(),
            entries: Vec::new(),
            refused: Vec::new(),
            members: Vec::new(),
        };
        let mut seen = HashSet::new();
        for number in 0..archive.len() {
            let found = archive.by_index_raw(number).map_err(corrupt)?;
            let name = found.name().map_err(corrupt)?.into_owned();
            let content = Content::of(&found);
            source.members.extend(content.map(|content| (name.clone(), content)));
            let Some(name) = name.strip_suffix(".npy") else {
                let reason = "is no npy file".to_owned();
                source.refused.push(Refused { name, reason });
                continue;
            };
            if !seen.insert(name.to_owned()) {
                let found = format!("{name:?} twice");
                return Err(Error::corrupt(path, KIND, found, "each name once"));
            }
            let method = found.compression();
            if !matches!(method, CompressionMethod::Stored | CompressionMethod::Deflated) {
                let reason = format!("is compressed by {method:?}; NumPy stores or deflates");
                source.refused.push(Refused { name: name.to_owned(), reason });
                continue;
            }
            let is_inside = |content: &Content| {
                let end = content.begin.checked_add(content.stored_bytes);
                end.is_some_and(|end| end <= size) && !found.encrypted()
            };
            let Some(content) = content.filter(is_inside) else {
                let found = format!("{name:?} outside the archive, or encrypted");
                return Err(Error::corrupt(path, KIND, found, "an array inside it"));
            };
            drop(found);
            source.add(name, content)?;
        }
        Ok(source)
    }

    fn add(&mut self, name: &str, content: Content) -> Result<(), Error> {
        let path = self.path.clone();
        let Content { stored_bytes, bytes, compressed, .. } = content;
        let mut head = Vec::new();
        content
            .raw(&self.file)
            .take(bytes.min(HEAD_BYTES))
            .read_to_end(&mut head)
            .map_err(|error| read_error(&path, error))?;
        let header = NpyHeader::read(&head, &path)?;
        let dtype = match &header.dtype {
            Ok(dtype) => *dtype,
            Err(reason) => {
                let (name, reason) = (name.to_owned(), reason.clone());
                self.refused.push(Refused { name, reason });
                return Ok(());
            }
        };
        let info = TensorInfo::new(name, dtype, header.shape.clone())?;
        if header.data_offset.checked_add(info.bytes) != Some(bytes)
            || (!compressed && stored_bytes != bytes)
        {
            return Err(Error::corrupt(
                &path,
                KIND,
                format!("{bytes} bytes for {name:?}"),
                format!("{} bytes of elements behind the header", info.bytes),
            ));
        }
        self.tensors.push(info);
        self.entries.push(Entry { content, header });
        Ok(())
    }
}

impl Content {
    /// That of an entry that is stored or deflated.
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

    /// Its bytes, not compared with anything.
    fn raw(self, file: &dyn ReadAt) -> Box<dyn Read + Send + '_> {
        let section = Section::new(file, self.begin, self.begin.saturating_add(self.stored_bytes));
        if self.compressed {
            Box::new(flate2::read::DeflateDecoder::new(section))
        } else {
            Box::new(section)
        }
    }

    /// Its bytes, which end in an error if they are not those that the archive describes.
    fn checked(self, file: &dyn ReadAt) -> Checked<Box<dyn Read + Send + '_>> {
        Checked::new(self.raw(file), self.bytes, self.checksum)
    }

    /// Reads it to its end.
    fn compare(self, file: &dyn ReadAt, go_on: &mut dyn FnMut(u64) -> bool) -> io::Result<()> {
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

fn read_error(path: &Path, error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput | io::ErrorKind::UnexpectedEof => {
            Error::corrupt(path, KIND, error.to_string(), "an intact archive")
        }
        _ => Error::io("read", path, error),
    }
}

impl Source for NpzSource {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn tensors(&self) -> &[TensorInfo] {
        &self.tensors
    }

    fn refused(&self) -> &[Refused] {
        &self.refused
    }

    fn compare_checksums(&self, go_on: &mut dyn FnMut(u64) -> bool) -> Vec<Error> {
        let mut errors = Vec::new();
        for (name, content) in &self.members {
            if let Err(source) = content.compare(&self.file, go_on) {
                errors.push(Error::Data { name: name.clone(), source });
            }
        }
        errors
    }

    fn read(&self, position: usize) -> Result<Box<dyn Read + Send + '_>, Error> {
        let Some((info, entry)) = self.tensors.get(position).zip(self.entries.get(position)) else {
            return Err(Error::io("read", &self.path, io::ErrorKind::NotFound.into()));
        };
        let content = entry.content;
        let mut checked = content.checked(&self.file);
        let io = |error| read_error(&self.path, error);
        let turned = entry.header.fortran_order && info.shape.rank() > 1;
        if !turned && !entry.header.big_endian {
            io::copy(&mut checked.by_ref().take(entry.header.data_offset), &mut io::sink())
                .map_err(io)?;
            return Ok(Box::new(checked));
        }
        if !content.compressed {
            // Read twice: once for the checksum, once in the order of the elements.
            io::copy(&mut checked, &mut io::sink()).map_err(io)?;
            return elements(
                Window { file: &self.file, begin: content.begin },
                &entry.header,
                info,
            );
        }
        if content.bytes > TURNED_IN_MEMORY {
            let reason = "it is compressed, not in the order of this machine, and larger than 16 \
                          MiB; save it in C order and little endian, or without compression";
            return Err(Error::refused(&info.name, reason));
        }
        let mut bytes = Vec::new();
        checked.read_to_end(&mut bytes).map_err(io)?;
        elements(bytes, &entry.header, info)
    }
}

/// Gives out exactly the announced bytes, and an error if they are not those that the archive
/// describes.
struct Checked<R> {
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

/// A stored entry as a file of its own.
struct Window<'a> {
    file: &'a dyn ReadAt,
    begin: u64,
}

impl ReadAt for Window<'_> {
    fn size(&self) -> io::Result<u64> {
        Ok(self.file.size()?.saturating_sub(self.begin))
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.file.read_at(buffer, self.begin.saturating_add(offset))
    }
}

/// A source with a position, as the archive's reader wants it.
struct Positioned {
    file: Arc<dyn ReadAt>,
    position: u64,
    size: u64,
}

impl Read for Positioned {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.file.read_at(out, self.position)?;
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
