//! Creates tensors from the description in a pickle and the positions of its storages.

use std::{
    collections::{HashMap, hash_map::RandomState},
    hash::BuildHasher,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use serdes_files::ReadAt;

use super::{
    super::{
        Error, Listing, Source, TensorInfo, archive::Content, elements::Unpack, section::Section,
    },
    KIND,
    accounted::{refuse_page, refuse_part},
    found::{Data, Found, Tensor},
    legacy,
    parsed::Parsed,
    strided::{Layout, Strided},
    tree::{self, Root},
    zipped,
};

/// Limit on the size of a file's tensors, as a multiple of the file: views with repeated or
/// overlapping elements become separate tensors in every other format.
const MOST_GROWTH: u64 = 16;

/// Minimum of the limit in bytes, for files of any size.
const LEAST_GROWTH: u64 = 256 << 20;

/// A storage whose checksum is verified once.
struct Checksum {
    content: Content,
    compared: AtomicBool,
}

/// Place of a tensor.
struct Entry {
    layout: Layout,
    data: Data,
    /// Index of the tensor's storage among those with checksums.
    checksum: Option<usize>,
    /// The tensor of which this is an alias.
    alias_of: Option<usize>,
}

/// A PyTorch file.
pub(in super::super) struct TorchSource {
    file: Arc<dyn ReadAt>,
    path: PathBuf,
    listing: Listing,
    entries: Vec<Entry>,
    checksums: Vec<Checksum>,
}

impl TorchSource {
    /// Reads the description in a file; `path` is for messages, and names a tensor without a name.
    pub(in super::super) fn new(file: Arc<dyn ReadAt>, path: &Path) -> Result<Self, Error> {
        refuse_part(path)?;
        let stem = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        Self::of_file(file, path, Root::Stem(&stem))
    }

    /// Reads a value of a checkpoint, which is a separate file, under its name in the checkpoint.
    pub(super) fn of_value(file: Arc<dyn ReadAt>, path: &Path, name: &str) -> Result<Self, Error> {
        Self::of_file(file, path, Root::Name(name))
    }

    fn of_file(file: Arc<dyn ReadAt>, path: &Path, root: Root<'_>) -> Result<Self, Error> {
        let io = |error| Error::io("read", path, error);
        let size = file.size().map_err(io)?;
        let mut head = [0; 4];
        let is_zip =
            size >= 4 && file.read_exact_at(&mut head, 0).is_ok() && head == *b"PK\x03\x04";
        let parsed = if is_zip {
            zipped::parse(&file, path)?
        } else {
            refuse_page(&file, path)?;
            legacy::parse(&file, path)?
        };
        Self::of_parsed(file, path, size, parsed, root)
    }

    /// Creates the tensors and values of a file of `size` bytes.
    fn of_parsed(
        file: Arc<dyn ReadAt>,
        path: &Path,
        size: u64,
        mut parsed: Parsed,
        root: Root<'_>,
    ) -> Result<Self, Error> {
        let mut budget = parsed.values.take_budget();
        let mut found = Found::new(&parsed);
        let pickle_bytes = parsed.pickle_bytes;
        tree::leaves(&parsed.values, parsed.root, pickle_bytes, root, &mut found, &mut budget)
            .map_err(|error| error.of(path))?;
        let total: u64 =
            found.tensors.iter().fold(0, |total, tensor| total.saturating_add(tensor.info.bytes));
        if total > size.saturating_mul(MOST_GROWTH).saturating_add(LEAST_GROWTH) {
            let reason = format!(
                "its tensors are views that take {total} bytes of a file of {size}; save them with .contiguous(), or the tensors that they are views of"
            );
            return Err(Error::unsupported(path, reason));
        }
        let (tensors, listing) = found.into_parts();
        drop(parsed);
        Ok(Self::of_tensors(file, path, tensors, listing))
    }

    /// Sorts the tensors by their bytes; finds for each the first one at the same position.
    fn of_tensors(
        file: Arc<dyn ReadAt>,
        path: &Path,
        mut tensors: Vec<Tensor>,
        listing: Listing,
    ) -> Self {
        tensors.sort_by_key(|tensor| (tensor.data.is_inside(), tensor.layout.begin));
        let mut source = Self {
            file,
            path: path.to_owned(),
            listing,
            entries: Vec::with_capacity(tensors.len()),
            checksums: Vec::new(),
        };
        source.listing.tensors.reserve_exact(tensors.len());
        let hasher = RandomState::new();
        let mut first: HashMap<u64, usize> = HashMap::new();
        let mut checksums: HashMap<u64, usize> = HashMap::new();
        for (position, Tensor { info, layout, data, checked }) in tensors.into_iter().enumerate() {
            let checksum = checked.map(|content| {
                *checksums.entry(content.begin).or_insert_with(|| {
                    let compared = AtomicBool::new(false);
                    source.checksums.push(Checksum { content, compared });
                    source.checksums.len() - 1
                })
            });
            let mut alias_of = None;
            if info.bytes > 0 && !data.is_inside() {
                let hash = hasher.hash_one((layout.begin, info.dtype, &layout.dimensions));
                let other = *first.entry(hash).or_insert(position);
                let same = source.entries.get(other).zip(source.listing.tensors.get(other));
                let is_same = same.is_some_and(|(entry, other)| {
                    entry.layout == layout && other.dtype == info.dtype && other.shape == info.shape
                });
                alias_of = is_same.then_some(other);
            }
            source.listing.tensors.push(info);
            source.entries.push(Entry { layout, data, checksum, alias_of });
        }
        source
    }

    /// Returns the tensor that is the whole file's value, and its layout.
    pub(super) fn alone(&self) -> Option<(&TensorInfo, &Layout)> {
        match (&*self.listing.tensors, &*self.entries) {
            ([info], [entry]) if self.listing.refused.is_empty() && !entry.data.is_inside() => {
                Some((info, &entry.layout))
            }
            _ => None,
        }
    }

    fn get(&self, position: usize) -> Result<(&TensorInfo, &Entry), Error> {
        let found = self.listing.tensors.get(position).zip(self.entries.get(position));
        found.ok_or_else(|| Error::io("read", &self.path, io::ErrorKind::NotFound.into()))
    }

    /// Returns a reader of a tensor's stored bytes, row by row; two elements that share a byte are
    /// read together.
    fn stored(&self, info: &TensorInfo, entry: &Entry) -> Result<Box<dyn Read + Send + '_>, Error> {
        let bytes = entry.layout.bytes();
        let checksum = entry.checksum.and_then(|place| self.checksums.get(place));
        let checksum = checksum.filter(|checksum| !checksum.compared.load(Ordering::Relaxed));
        let is_contiguous = entry.layout.is_contiguous();
        if let Some(Checksum { content, compared }) = checksum {
            let is_all = entry.layout.begin == content.begin && bytes == content.bytes;
            if is_contiguous && is_all && bytes > 0 {
                return Ok(Box::new(content.checked(&self.file)));
            }
            content
                .compare(&self.file, &mut |_| true)
                .map_err(|source| Error::Data { name: info.name.clone(), source })?;
            compared.store(true, Ordering::Relaxed);
        }
        let source: Arc<dyn ReadAt> = match &entry.data {
            Data::Inside(bytes) => Arc::clone(bytes) as Arc<dyn ReadAt>,
            Data::InFile | Data::Pairs => Arc::clone(&self.file),
        };
        if is_contiguous {
            let begin = entry.layout.begin;
            return Ok(Box::new(Section::new(source, begin, begin.saturating_add(bytes))));
        }
        Ok(Box::new(Strided::new(source, &entry.layout)))
    }
}

impl Source for TorchSource {
    fn kind(&self) -> &'static str {
        KIND
    }

    fn listing(&self) -> &Listing {
        &self.listing
    }

    fn alias_of(&self, position: usize) -> Option<usize> {
        self.entries.get(position)?.alias_of
    }

    fn read(&self, position: usize) -> Result<Box<dyn Read + Send + '_>, Error> {
        let (info, entry) = self.get(position)?;
        let stored = self.stored(info, entry)?;
        Ok(match entry.data {
            Data::Pairs => Box::new(Unpack::new(stored, 4, info.bytes)),
            _ => stored,
        })
    }

    fn compare_checksums(&self, go_on: &mut dyn FnMut(u64) -> bool) -> Vec<Error> {
        let mut names: HashMap<usize, &str> = HashMap::new();
        for (info, entry) in self.listing.tensors.iter().zip(&self.entries) {
            if let Some(place) = entry.checksum {
                names.entry(place).or_insert(&info.name);
            }
        }
        let mut errors = Vec::new();
        for (place, checksum) in self.checksums.iter().enumerate() {
            if let Err(source) = checksum.content.compare(&self.file, go_on) {
                let name = names.get(&place).copied().unwrap_or_default().to_owned();
                errors.push(Error::Data { name, source });
            }
        }
        errors
    }
}
