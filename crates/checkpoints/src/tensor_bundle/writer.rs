//! Writing a bundle as TensorFlow does: data under partial names, then the index, then all files
//! are renamed, the index last.
//!
//! A bundle appears with its index; `supersede` describes how it replaces another.

use std::{
    collections::BTreeMap,
    fs,
    io::{self, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use serdes_files as files;
use serdes_files::{Crc32c, Durability, Replacement};
use serdes_graph_format::data_type::DataType;
use serdes_version_registry::VersionDef;
use serdes_wire::varint;

use super::{
    error::BundleError,
    files::{data_path, index_path},
    messages::{Endianness, Header, RawEntry, element_count},
    supersede::Switch,
};
use crate::{
    checksum::mask,
    slice::{Extent, TensorSlice},
    table::{TableError, TableOptions, TableWriter},
};

/// Small writes are gathered into buffers of this size, in bytes.
const BUFFER: usize = 1 << 20;
/// Large writes are split into pieces of this size, in bytes, which are still in the processor's
/// cache after their checksum.
const STEP: usize = 512 << 10;
/// Size in bytes from which the checksum is computed on another thread while the system copies the
/// data; for less, starting the thread takes too long.
const LARGE_CHUNK: usize = 4 << 20;

/// Options of the writer of bundles. The defaults are TensorFlow's.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BundleOptions {
    /// Number of data files for the tensors (at least 1). The bundle gets one more, which is empty,
    /// if it replaces one with the same number.
    shards: u16,
    /// Alignment of the start of every tensor, in bytes (at least 1).
    alignment: u32,
    /// The durability of the files and the directory when [`BundleWriter::finish`] returns.
    durability: Durability,
    /// The versions in the header.
    versions: VersionDef,
}

impl Default for BundleOptions {
    fn default() -> Self {
        let versions =
            VersionDef { producer: super::default_consumer().version, ..VersionDef::default() };
        Self { shards: 1, alignment: 1, durability: Durability::None, versions }
    }
}

impl BundleOptions {
    /// Sets the number of data files.
    #[must_use]
    pub fn with_shards(self, shards: u16) -> Self {
        Self { shards: shards.max(1), ..self }
    }

    /// Sets the alignment, in bytes.
    #[must_use]
    pub fn with_alignment(self, alignment: u32) -> Self {
        Self { alignment: alignment.max(1), ..self }
    }

    /// Sets the durability of the files.
    #[must_use]
    pub fn with_durability(self, durability: Durability) -> Self {
        Self { durability, ..self }
    }

    /// Sets the versions in the header.
    #[must_use]
    pub fn with_versions(self, versions: VersionDef) -> Self {
        Self { versions, ..self }
    }
}

/// A summary of the bundle that was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BundleSummary {
    /// Number of tensors; a partitioned one counts once.
    pub tensors: usize,
    /// Number of bytes in the data files.
    pub bytes: u64,
    /// Time spent syncing and renaming.
    pub sync_time: Duration,
}

/// Writes a bundle. If dropped before [`BundleWriter::finish`], it leaves no files behind, and an
/// existing bundle stays untouched.
#[derive(Debug)]
pub struct BundleWriter {
    prefix: PathBuf,
    options: BundleOptions,
    shards: Vec<ShardFile>,
    entries: BTreeMap<Vec<u8>, (RawEntry, Vec<TensorSlice>)>,
    /// The directory, absolute, if it was created for the bundle.
    made: Option<PathBuf>,
}

#[derive(Debug)]
struct ShardFile {
    /// The path used in messages.
    path: PathBuf,
    file: Replacement,
    buffer: Vec<u8>,
    /// Number of bytes written, including buffered ones.
    at: u64,
}

impl ShardFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        if self.buffer.len() + bytes.len() > BUFFER {
            self.flush()?;
        }
        if bytes.len() >= BUFFER / 2 {
            self.flush()?;
            self.file.file().write_all(bytes)?;
        } else {
            self.buffer.extend_from_slice(bytes);
        }
        self.at += bytes.len() as u64;
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.file().write_all(&self.buffer)?;
        self.buffer.clear();
        Ok(())
    }

    fn failed(&self, source: io::Error) -> BundleError {
        BundleError::Io { path: self.path.clone(), source }
    }

    /// Discards everything from `at`.
    fn truncate(&mut self, at: u64) -> io::Result<()> {
        self.flush()?;
        let mut file = self.file.file();
        file.set_len(at)?;
        file.seek(SeekFrom::Start(at))?;
        self.at = at;
        Ok(())
    }
}

impl BundleWriter {
    /// Starts a bundle with `prefix`. The directory is created if its parent exists.
    ///
    /// # Errors
    /// If the files cannot be created.
    pub fn create(prefix: impl AsRef<Path>, options: BundleOptions) -> Result<Self, BundleError> {
        let prefix = prefix.as_ref().to_owned();
        if prefix.file_name().is_none() || prefix.as_os_str().as_encoded_bytes().ends_with(b"/") {
            let source = io::Error::new(
                io::ErrorKind::InvalidInput,
                "a prefix ends in a name, as in dir/ckpt-1",
            );
            return Err(BundleError::Io { path: prefix, source });
        }
        let mut writer =
            Self { prefix, options, shards: Vec::new(), entries: BTreeMap::new(), made: None };
        writer.make_directory()?;
        let shards = i32::from(writer.options.shards.max(1));
        for shard in 0..shards {
            let path = data_path(&writer.prefix, shard, shards);
            let file = writer.new_file()?;
            writer.shards.push(ShardFile { path, file, buffer: Vec::new(), at: 0 });
        }
        Ok(writer)
    }

    fn make_directory(&mut self) -> Result<(), BundleError> {
        let parent = self.prefix.parent().filter(|parent| !parent.as_os_str().is_empty());
        let Some(directory) = parent.filter(|parent| !parent.exists()) else { return Ok(()) };
        let failed = |source| BundleError::Io { path: directory.to_owned(), source };
        let absolute = std::path::absolute(directory).map_err(failed)?;
        fs::create_dir(directory).map_err(failed)?;
        self.made = Some(absolute);
        Ok(())
    }

    /// Returns a new partial file; all files of a bundle are partial files of its index.
    fn new_file(&self) -> Result<Replacement, BundleError> {
        Ok(match self.shards.first() {
            Some(shard) => shard.file.another()?,
            None => Replacement::create_beside(&index_path(&self.prefix))?,
        })
    }

    /// Adds a tensor of fixed element size, whose little-endian bytes are then written to the
    /// returned writer. The data file has the tensors in the order in which they are added.
    ///
    /// # Errors
    /// If the name is taken or not valid, or type or shape are impossible.
    pub fn add(
        &mut self,
        name: &str,
        data_type: DataType,
        shape: &[i64],
    ) -> Result<TensorWriter<'_>, BundleError> {
        self.check_name(name)?;
        self.start(name.as_bytes().to_vec(), name, data_type, shape, None)
    }

    /// Adds a tensor of fixed element size with its bytes.
    ///
    /// # Errors
    /// As [`BundleWriter::add`], or if there are more or fewer bytes than the shape needs.
    pub fn add_bytes(
        &mut self,
        name: &str,
        data_type: DataType,
        shape: &[i64],
        bytes: &[u8],
    ) -> Result<(), BundleError> {
        let mut tensor = self.add(name, data_type, shape)?;
        tensor.write_chunk(bytes)?;
        tensor.finish()
    }

    /// Adds a piece of a partitioned tensor of `shape`, whose bytes are then written to the
    /// returned writer.
    ///
    /// # Errors
    /// As [`BundleWriter::add`], or if the piece is not within the tensor, or another piece of it
    /// has another type or shape.
    pub fn add_slice(
        &mut self,
        name: &str,
        data_type: DataType,
        shape: &[i64],
        slice: &TensorSlice,
    ) -> Result<TensorWriter<'_>, BundleError> {
        if slice.is_full() {
            return self.add(name, data_type, shape);
        }
        let unwritable = |reason: &str| BundleError::Unwritable {
            name: name.to_owned(),
            reason: reason.to_owned(),
        };
        match self.entries.get(name.as_bytes()) {
            None => self.check_name(name)?,
            Some((_, slices)) if slices.is_empty() => {
                return Err(unwritable("it is there already, whole"));
            }
            Some((entry, _)) if entry.dtype != data_type.number() || entry.shape != shape => {
                return Err(unwritable("a piece of it was added with another type or shape"));
            }
            Some(_) => {}
        }
        element_count(shape)
            .map_err(|source| BundleError::Shape { name: name.to_owned(), source })?;
        let bounds = slice.bounds(shape);
        let bounds =
            bounds.map_err(|source| BundleError::Slice { name: name.to_owned(), source })?;
        let key = slice.key(name.as_bytes());
        if self.entries.contains_key(&key) {
            return Err(unwritable("the same piece of it was added before"));
        }
        let lengths: Vec<i64> = bounds.iter().map(|(_, length)| *length).collect();
        let whole =
            Whole { name: name.as_bytes().to_vec(), shape: shape.to_vec(), slice: slice.clone() };
        self.start(key, name, data_type, &lengths, Some(whole))
    }

    /// Adds a tensor of strings, in row-major order.
    ///
    /// # Errors
    /// As [`BundleWriter::add`], or if there are more or fewer strings than the shape needs.
    pub fn add_strings<S: AsRef<[u8]>>(
        &mut self,
        name: &str,
        shape: &[i64],
        strings: &[S],
    ) -> Result<(), BundleError> {
        self.check_name(name)?;
        let count = element_count(shape)
            .map_err(|source| BundleError::Shape { name: name.to_owned(), source })?;
        if count != strings.len() as u64 {
            let reason =
                format!("its shape has {count} elements, and {} strings were given", strings.len());
            return Err(BundleError::Unwritable { name: name.to_owned(), reason });
        }
        let mut crc = Crc32c::new();
        let mut lengths = Vec::with_capacity(strings.len() + 4);
        for string in strings {
            let length = string.as_ref().len() as u64;
            varint::push(&mut lengths, length);
            match u32::try_from(length) {
                Ok(length) => crc.update(&length.to_le_bytes()),
                Err(_) => crc.update(&length.to_le_bytes()),
            }
        }
        let length_crc = mask(crc.value()).to_le_bytes();
        lengths.extend_from_slice(&length_crc);
        crc.update(&length_crc);
        let bytes = strings
            .iter()
            .fold(0, |sum: u64, string| sum.saturating_add(string.as_ref().len() as u64));
        let size = bytes.saturating_add(lengths.len() as u64);
        let entry = RawEntry {
            dtype: DataType::String.number(),
            shape: shape.to_vec(),
            ..RawEntry::default()
        };
        let mut tensor = self.open_tensor(name.as_bytes().to_vec(), name, entry, size, None)?;
        tensor.put(&lengths)?;
        for string in strings {
            crc.update(string.as_ref());
            tensor.put(string.as_ref())?;
        }
        tensor.crc = crc;
        tensor.finish()
    }

    fn check_name(&self, name: &str) -> Result<(), BundleError> {
        let reason = if name.is_empty() {
            "the empty name is the header's"
        } else if name.starts_with('\0') {
            "a name that starts with a zero byte would be taken for a piece of a tensor"
        } else if self.entries.contains_key(name.as_bytes()) {
            "a tensor of that name was added before"
        } else {
            return Ok(());
        };
        Err(BundleError::Unwritable { name: name.to_owned(), reason: reason.to_owned() })
    }

    fn start(
        &mut self,
        key: Vec<u8>,
        name: &str,
        data_type: DataType,
        shape: &[i64],
        whole: Option<Whole>,
    ) -> Result<TensorWriter<'_>, BundleError> {
        let unwritable = |reason: String| BundleError::Unwritable { name: name.to_owned(), reason };
        let count = element_count(shape)
            .map_err(|source| BundleError::Shape { name: name.to_owned(), source })?;
        let element = data_type.element_size();
        let element =
            element.ok_or_else(|| unwritable(format!("{data_type} has no fixed element size")))?;
        let size = count.checked_mul(element).filter(|size| i64::try_from(*size).is_ok());
        let size =
            size.ok_or_else(|| unwritable("it has more bytes than can be counted".to_owned()))?;
        let entry =
            RawEntry { dtype: data_type.number(), shape: shape.to_vec(), ..RawEntry::default() };
        self.open_tensor(key, name, entry, size, whole)
    }

    fn open_tensor(
        &mut self,
        key: Vec<u8>,
        name: &str,
        mut entry: RawEntry,
        size: u64,
        whole: Option<Whole>,
    ) -> Result<TensorWriter<'_>, BundleError> {
        let emptiest = self.shards.iter().enumerate().min_by_key(|(_, shard)| shard.at);
        let shard = emptiest.map_or(0, |(number, _)| number);
        let alignment = u64::from(self.options.alignment.max(1));
        let mut tensor = TensorWriter {
            name: name.to_owned(),
            key,
            entry: RawEntry::default(),
            whole,
            expected: size,
            written: 0,
            crc: Crc32c::new(),
            shard,
            start: 0,
            finished: false,
            writer: self,
        };
        if let Some(file) = tensor.writer.shards.get(shard) {
            tensor.start = file.at;
            let padding = file.at.next_multiple_of(alignment).saturating_sub(file.at);
            let padding = vec![0; usize::try_from(padding).unwrap_or(0)];
            tensor.raw(&padding)?;
        }
        let offset = tensor.writer.shards.get(shard).map_or(0, |file| file.at);
        entry.shard = i32::try_from(shard).unwrap_or(0);
        entry.offset = i64::try_from(offset).unwrap_or(i64::MAX);
        entry.size = i64::try_from(size).unwrap_or(i64::MAX);
        tensor.entry = entry;
        Ok(tensor)
    }

    /// Writes the index and makes the bundle appear, replacing an existing one.
    ///
    /// At every moment either the old bundle or the new one can be read: the new one has the
    /// requested number of data files, or one more, which is empty, if the old one has that number.
    /// So the rename of the index switches from one to the other. The old data files are then
    /// removed.
    ///
    /// # Errors
    /// If a file cannot be written or renamed; no files are then left behind, and an existing
    /// bundle stays.
    pub fn finish(mut self) -> Result<BundleSummary, BundleError> {
        for shard in &mut self.shards {
            shard.flush().map_err(|source| shard.failed(source))?;
        }
        let started = Instant::now();
        let durability = self.options.durability;
        if durability == Durability::Data {
            for shard in &self.shards {
                // Most of the syncing happens here, before other savers have to wait.
                let synced = shard.file.file().sync_data();
                synced.map_err(|source| shard.failed(source))?;
            }
        }
        let index = self.new_file()?;
        let name = self.prefix.file_name().unwrap_or_default();
        let wanted = i32::try_from(self.shards.len()).unwrap_or(1);
        let mut switch = Switch::begin(index.directory(), name, wanted)?;
        self.write_index(&index, switch.count())?;
        let bytes = self.shards.iter().map(|shard| shard.at).sum();
        let empty = (wanted..switch.count()).map(|_| self.new_file());
        let empty = empty.collect::<Result<Vec<_>, _>>()?;
        let shards = std::mem::take(&mut self.shards).into_iter().map(|shard| shard.file);
        for file in shards.chain(empty) {
            switch.put(file, durability)?;
        }
        switch.finish(index, durability)?;
        if let Some(made) = self.made.take()
            && durability == Durability::Data
        {
            // The name of a new directory is durable only once its parent is synced.
            files::sync_directory(made.parent().unwrap_or(&made))?;
        }
        let tensors = self.entries.keys().filter(|key| !crate::slice::is_slice_key(key)).count();
        Ok(BundleSummary { tensors, bytes, sync_time: started.elapsed() })
    }

    /// Writes the index of a bundle of `shards` data files.
    fn write_index(&self, file: &Replacement, shards: i32) -> Result<(), BundleError> {
        let path = || index_path(&self.prefix);
        let in_table = |error: TableError| match error {
            TableError::Io(source) => BundleError::Io { path: path(), source },
            source => BundleError::Index { path: path(), source },
        };
        let header = Header {
            num_shards: shards,
            endianness: Endianness::Little,
            versions: self.options.versions.clone(),
            has_versions: true,
        };
        let mut table = TableWriter::new(io::BufWriter::new(file.file()), TableOptions::default());
        table.add(b"", &header.encode()).map_err(in_table)?;
        for (key, (entry, slices)) in &self.entries {
            table.add(key, &entry.encode(slices)).map_err(in_table)?;
        }
        let (file, _) = table.finish().map_err(in_table)?;
        file.into_inner()
            .map_err(|error| BundleError::Io { path: path(), source: error.into_error() })?;
        Ok(())
    }
}

impl Drop for BundleWriter {
    fn drop(&mut self) {
        self.shards.clear();
        if let Some(made) = self.made.take() {
            // Fails unless the directory is empty.
            let _ = fs::remove_dir(made);
        }
    }
}

/// The tensor that a piece belongs to.
#[derive(Debug)]
struct Whole {
    name: Vec<u8>,
    shape: Vec<i64>,
    slice: TensorSlice,
}

/// Writes the bytes of one tensor. If dropped before [`TensorWriter::finish`], the tensor is not in
/// the bundle.
#[derive(Debug)]
pub struct TensorWriter<'a> {
    writer: &'a mut BundleWriter,
    name: String,
    key: Vec<u8>,
    entry: RawEntry,
    whole: Option<Whole>,
    expected: u64,
    written: u64,
    crc: Crc32c,
    shard: usize,
    /// The length of the data file before the tensor, in bytes.
    start: u64,
    finished: bool,
}

impl TensorWriter<'_> {
    /// Adds the next bytes of the tensor.
    ///
    /// # Errors
    /// If there are more bytes than the shape needs, or the file cannot be written.
    pub fn write_chunk(&mut self, bytes: &[u8]) -> Result<(), BundleError> {
        if bytes.len() >= LARGE_CHUNK
            && let Some(written) = self.write_large_chunk(bytes)
        {
            return written;
        }
        for step in bytes.chunks(STEP) {
            self.crc.update(step);
            self.put(step)?;
        }
        Ok(())
    }

    /// Writes on this thread while another computes the checksum; `None` if there is no other.
    fn write_large_chunk(&mut self, bytes: &[u8]) -> Option<Result<(), BundleError>> {
        if std::thread::available_parallelism().map_or(1, usize::from) < 2 {
            return None;
        }
        let before = self.crc.clone();
        let sum = || {
            let mut crc = before.clone();
            crc.update(bytes);
            crc
        };
        std::thread::scope(|scope| {
            let summing = std::thread::Builder::new().spawn_scoped(scope, sum).ok()?;
            let written = self.put(bytes);
            self.crc = summing.join().unwrap_or_else(|_| sum());
            Some(written)
        })
    }

    fn put(&mut self, bytes: &[u8]) -> Result<(), BundleError> {
        self.written = self.written.saturating_add(bytes.len() as u64);
        if self.written > self.expected {
            return Err(self.wrong_length());
        }
        self.raw(bytes)
    }

    fn raw(&mut self, bytes: &[u8]) -> Result<(), BundleError> {
        let Some(shard) = self.writer.shards.get_mut(self.shard) else { return Ok(()) };
        shard.write(bytes).map_err(|source| BundleError::Io { path: shard.path.clone(), source })
    }

    fn wrong_length(&self) -> BundleError {
        let reason = format!(
            "its type and shape need {} bytes, and {} were given",
            self.expected, self.written
        );
        BundleError::Unwritable { name: self.name.clone(), reason }
    }

    /// Ends the tensor.
    ///
    /// # Errors
    /// If bytes are missing.
    pub fn finish(mut self) -> Result<(), BundleError> {
        if self.written != self.expected {
            return Err(self.wrong_length());
        }
        self.finished = true;
        let mut entry = std::mem::take(&mut self.entry);
        entry.crc = mask(self.crc.value());
        if let Some(Whole { name, shape, slice }) = self.whole.take() {
            let blank = RawEntry { dtype: entry.dtype, shape, ..RawEntry::default() };
            self.writer.entries.entry(name).or_insert((blank, Vec::new())).1.push(slice);
        }
        self.writer.entries.insert(std::mem::take(&mut self.key), (entry, Vec::new()));
        Ok(())
    }
}

impl Write for TensorWriter<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.write_chunk(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for TensorWriter<'_> {
    fn drop(&mut self) {
        if !self.finished
            && let Some(shard) = self.writer.shards.get_mut(self.shard)
        {
            // If the file cannot be truncated, the bytes stay as a gap that no entry refers to.
            let _ = shard.truncate(self.start);
        }
    }
}

/// Splits a dimension of `size` elements into `parts` extents, as evenly as possible; for writers
/// of partitioned tensors.
#[must_use]
pub fn even_extents(size: i64, parts: i64) -> Vec<Extent> {
    let parts = parts.clamp(1, size.max(1));
    let (each, more) = (size / parts, size % parts);
    let mut start = 0;
    let extents = (0..parts).map(|part| {
        let length = each + i64::from(part < more);
        let extent = if length == size { Extent::Full } else { Extent::Range { start, length } };
        start += length;
        extent
    });
    extents.collect()
}
