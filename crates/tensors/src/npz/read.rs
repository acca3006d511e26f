//! Reads archives of arrays.

use std::{
    collections::HashSet,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
};

use serdes_files::ReadAt;

use super::{
    super::{
        Error, Listing, Refused, Source, TensorInfo,
        archive::{self, Content, Member, read_error},
        npy::{
            NpyHeader,
            read::{bytes_behind, elements},
        },
    },
    KIND,
};

/// Number of bytes in which the npy header of a compressed entry must end.
const HEAD_BYTES: u64 = 64 << 10;
/// Maximum size in bytes of a compressed entry whose elements are reordered (to C order and little
/// endian) in memory.
const MAX_BYTES_REORDERED_IN_MEMORY: u64 = 16 << 20;

/// An npz file.
pub(in super::super) struct NpzSource {
    file: Arc<dyn ReadAt>,
    path: PathBuf,
    listing: Listing,
    entries: Vec<Entry>,
    /// Files of the archive that are stored or deflated, arrays or not.
    members: Vec<(String, Content)>,
}

/// An array of the archive.
struct Entry {
    content: Content,
    header: NpyHeader,
}

impl NpzSource {
    pub(in super::super) fn new(file: Arc<dyn ReadAt>, path: &Path) -> Result<Self, Error> {
        let corrupt = |found: String, expected: &str| Error::corrupt(path, KIND, found, expected);
        let members =
            archive::members(&file, path, KIND, |found| format!("{:?}", found.compression()))?;
        let mut source = Self {
            file,
            path: path.to_path_buf(),
            listing: Listing::default(),
            entries: Vec::new(),
            members: Vec::new(),
        };
        let mut seen = HashSet::new();
        for Member { name, content, is_inside, detail: method } in members {
            source.members.extend(content.map(|content| (name.clone(), content)));
            let Some(name) = name.strip_suffix(".npy") else {
                let reason = "is no npy file".to_owned();
                source.listing.refused.push(Refused { name, reason });
                continue;
            };
            if !seen.insert(name.to_owned()) {
                return Err(corrupt(format!("{name:?} twice"), "each name once"));
            }
            let Some(content) = content else {
                let reason = format!("is compressed by {method}; NumPy stores or deflates");
                source.listing.refused.push(Refused { name: name.to_owned(), reason });
                continue;
            };
            if !is_inside {
                let found = format!("{name:?} outside the archive, or encrypted");
                return Err(corrupt(found, "an array inside it"));
            }
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
            .map_err(|error| read_error(&path, KIND, error))?;
        let header = NpyHeader::read(&head, &path)?;
        let dtype = match &header.dtype {
            Ok(dtype) => *dtype,
            Err(reason) => {
                let (name, reason) = (name.to_owned(), reason.clone());
                self.listing.pickled.extend(header.is_pickled.then(|| name.clone()));
                self.listing.refused.push(Refused { name, reason });
                return Ok(());
            }
        };
        let info = TensorInfo::new(name, dtype, header.shape.clone())?;
        let end = header.data_offset.checked_add(info.bytes);
        let behind = end.and_then(|end| bytes.checked_sub(end));
        let Some(behind) = behind.filter(|_| compressed || stored_bytes == bytes) else {
            return Err(Error::corrupt(
                &path,
                KIND,
                format!("{bytes} bytes for {name:?}"),
                format!("{} bytes of elements behind the header", info.bytes),
            ));
        };
        self.listing.passed_over.extend(bytes_behind(name, behind));
        self.listing.tensors.push(info);
        self.entries.push(Entry { content, header });
        Ok(())
    }
}

impl Source for NpzSource {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn listing(&self) -> &Listing {
        &self.listing
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
        let Some((info, entry)) =
            self.listing.tensors.get(position).zip(self.entries.get(position))
        else {
            return Err(Error::io("read", &self.path, io::ErrorKind::NotFound.into()));
        };
        let content = entry.content;
        let mut checked = content.checked(&self.file);
        let io = |error| read_error(&self.path, KIND, error);
        let is_transposed = entry.header.fortran_order && info.shape.rank() > 1;
        let end = entry.header.data_offset.saturating_add(info.bytes);
        if content.bytes > end && !is_transposed && !entry.header.big_endian {
            // Read twice: first for the checksum, which also covers trailing bytes.
            io::copy(&mut checked, &mut io::sink()).map_err(io)?;
            let mut elements = content.raw(&self.file).take(end);
            io::copy(&mut elements.by_ref().take(entry.header.data_offset), &mut io::sink())
                .map_err(io)?;
            return Ok(Box::new(elements));
        }
        if !is_transposed && !entry.header.big_endian {
            io::copy(&mut checked.by_ref().take(entry.header.data_offset), &mut io::sink())
                .map_err(io)?;
            return Ok(Box::new(checked));
        }
        if !content.compressed {
            // Read twice: for the checksum, and in element order.
            io::copy(&mut checked, &mut io::sink()).map_err(io)?;
            return elements(
                Window { file: &self.file, begin: content.begin },
                &entry.header,
                info,
            );
        }
        if content.bytes > MAX_BYTES_REORDERED_IN_MEMORY {
            let reason = "it is compressed, not in the order of this machine, and larger than 16 \
                          MiB; save it in C order and little endian, or without compression";
            return Err(Error::refused(&info.name, reason));
        }
        let mut bytes = Vec::new();
        checked.read_to_end(&mut bytes).map_err(io)?;
        elements(bytes, &entry.header, info)
    }
}

/// A stored entry as a source.
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
