use std::{
    collections::{HashMap, VecDeque},
    io::{Read, Write},
    num::NonZero,
    path::{Path, PathBuf},
    thread::available_parallelism,
    time::{Duration, Instant},
};

use prost::Message;

use super::{
    Error, Replacement, Sync, Watch,
    buffer::{BUFFER_BYTES, Buffer},
    chunks::ChunkSums,
    format::{
        ALIGNMENT, checksum,
        header::Header,
        index::{IndexBuilder, Placement},
        piece::{self, Domain, PieceHeader, PieceLayout},
        trailer::{TRAILER_BYTES, Trailer},
    },
    output::{Output, Sink},
};
use crate::{
    codec::ToProto,
    ifrt::{ArraySpec, DType},
    stream_executor::{Device, DeviceMemory, Stream, Transfer},
    version::{DeviceState, Ifrt, SerDesVersion, VersionDef},
};

/// Copies from a device that are under way at a time.
const IN_FLIGHT: usize = 3;
/// Buffers on the way: those that the device fills, those that are or wait to be written.
const BUFFERS: usize = 2 * IN_FLIGHT;
/// Tensors from this size on are copied by a stream, into buffers of their own; smaller ones share
/// buffers, and a call that waits costs less than an event each.
const STREAMED_FROM: u64 = 1 << 20;
/// Bytes under one checksum.
const CHUNK_BYTES: u32 = 1 << 20;

/// How a state is to be written.
#[derive(Clone, Debug)]
pub struct WriteOptions {
    version: SerDesVersion<Ifrt>,
    format: SerDesVersion<DeviceState>,
    sync: Sync,
    metadata: Option<Vec<(String, String)>>,
    watch: Watch,
    chunk_bytes: u32,
    producer_release: String,
    threaded: bool,
}

impl WriteOptions {
    /// Array specs at `version`, the container at its current version, synced, without metadata.
    pub fn new(version: SerDesVersion<Ifrt>) -> Self {
        Self {
            version,
            format: SerDesVersion::current(),
            sync: Sync::Data,
            metadata: None,
            watch: Watch::new(),
            chunk_bytes: CHUNK_BYTES,
            producer_release: concat!("serdes ", env!("CARGO_PKG_VERSION")).to_owned(),
            threaded: available_parallelism().map_or(1, NonZero::get) > 1,
        }
    }

    /// The container at this version, for readers of older builds.
    #[must_use]
    pub fn with_format(mut self, format: SerDesVersion<DeviceState>) -> Self {
        self.format = format;
        self
    }

    /// How far the file is taken to the disk before it gets its name.
    #[must_use]
    pub fn with_sync(mut self, sync: Sync) -> Self {
        self.sync = sync;
        self
    }

    /// How far files are taken to the disk.
    pub const fn sync(&self) -> Sync {
        self.sync
    }

    /// Words about the state, kept in this order.
    #[must_use]
    pub fn with_metadata(mut self, metadata: Option<Vec<(String, String)>>) -> Self {
        self.metadata = metadata;
        self
    }

    /// Who listens, and who may stop the work.
    #[must_use]
    pub fn with_watch(mut self, watch: Watch) -> Self {
        self.watch = watch;
        self
    }

    /// Bytes under one checksum: a power of two from 64 to 2^24; others are rounded up to one.
    /// Small chunks let a reader verify small parts.
    #[must_use]
    pub fn with_chunk_bytes(mut self, bytes: u32) -> Self {
        self.chunk_bytes = bytes.clamp(64, 1 << 24).next_power_of_two();
        self
    }

    /// Name and release of the program that writes, as readers will name it.
    #[must_use]
    pub fn with_producer_release(mut self, release: impl Into<String>) -> Self {
        self.producer_release = release.into();
        self
    }

    /// Begins a state at `path`, which appears when it is finished.
    ///
    /// # Errors
    /// If no file can be made beside `path`.
    pub fn create(self, path: impl AsRef<Path>) -> Result<Writer, Error> {
        let path = path.as_ref();
        let replacement = Replacement::create(path)?;
        let file =
            replacement.file().try_clone().map_err(|error| Error::io("create", path, error))?;
        Writer::new(self, Box::new(file), path.to_path_buf(), Some(replacement))
    }

    /// Begins a state that goes into a stream: a pipe, a socket. It is never read or rewound.
    ///
    /// # Errors
    /// If the metadata is too large.
    pub fn stream(self, sink: impl Write + Send + 'static) -> Result<Writer, Error> {
        Writer::new(self, Box::new(sink), PathBuf::from("the output stream"), None)
    }
}

/// What a finished save did.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Written {
    /// Number of tensors.
    pub tensors: u64,
    /// Payload of all tensors in bytes.
    pub bytes: u64,
    /// Length of the file in bytes.
    pub file_bytes: u64,
    /// From the first tensor until the last byte was handed to the system.
    pub time: Duration,
    /// Syncing and renaming.
    pub sync_time: Duration,
}

/// A state that is being written.
///
/// Tensors are streamed out in the order in which they are added. The file appears when
/// [`finish`](Self::finish) succeeds; a writer that is dropped before leaves nothing.
pub struct Writer {
    options: WriteOptions,
    path: PathBuf,
    output: Output,
    replacement: Option<Replacement>,
    current: Option<(Buffer, usize)>,
    /// The header, until the first tensor says what memory the buffers are made of.
    prologue: Vec<u8>,
    /// The device whose memory the buffers are made of.
    device: Option<Device>,
    streams: Vec<Stream>,
    /// Bytes of the file so far.
    position: u64,
    index: IndexBuilder,
    header_checksum: u32,
    data_bytes: u64,
    begin: Option<Instant>,
    /// A piece is half written: nothing can follow it.
    broken: bool,
    specs: HashMap<ArraySpec, Vec<u8>>,
}

impl Writer {
    /// Begins a state at `path` with the defaults of [`WriteOptions`].
    ///
    /// # Errors
    /// If no file can be made beside `path`.
    pub fn create(path: impl AsRef<Path>, version: SerDesVersion<Ifrt>) -> Result<Self, Error> {
        WriteOptions::new(version).create(path)
    }

    fn new(
        options: WriteOptions,
        sink: Sink,
        path: PathBuf,
        replacement: Option<Replacement>,
    ) -> Result<Self, Error> {
        let versions = VersionDef::stamped(options.format);
        let header = Header {
            format: options.format.number(),
            producer: versions.producer,
            min_consumer: versions.min_consumer,
            bad_consumers: versions.bad_consumers,
            producer_release: options.producer_release.clone(),
            ifrt_version: options.version.number(),
            chunk_bytes: options.chunk_bytes,
            metadata: options.metadata.clone(),
        }
        .encode()?;
        Ok(Self {
            output: Output::new(sink, BUFFERS, options.threaded),
            options,
            path,
            replacement,
            current: None,
            device: None,
            streams: Vec::new(),
            position: header.len() as u64,
            index: IndexBuilder::default(),
            header_checksum: header.last_chunk().map_or(0, |sum| u32::from_le_bytes(*sum)),
            data_bytes: 0,
            begin: None,
            broken: false,
            specs: HashMap::new(),
            prologue: header,
        })
    }

    /// Adds a tensor that lies in device memory, all of it.
    ///
    /// The copies are done when this returns; the bytes may still be on their way to the file.
    ///
    /// # Errors
    /// If the name is taken, the spec cannot be written at the requested version, the memory is
    /// not as long as the spec needs, or the device or the file fails.
    pub fn add(
        &mut self,
        name: &str,
        spec: &ArraySpec,
        memory: &DeviceMemory,
    ) -> Result<(), Error> {
        check_size(name, spec, memory.size())?;
        self.device.get_or_insert_with(|| memory.device().clone());
        self.begin_array(name, spec)?;
        let sums = self.whole_piece(name, spec, memory.size())?;
        let sums = self.put_memory(name, memory, sums)?;
        self.end_piece(sums)
    }

    /// Adds a tensor whose bytes lie in memory of this process.
    ///
    /// # Errors
    /// If the name is taken, the spec cannot be written at the requested version, the length is
    /// not what the spec needs, or the file cannot be written.
    pub fn add_bytes(&mut self, name: &str, spec: &ArraySpec, bytes: &[u8]) -> Result<(), Error> {
        self.add_reader(name, spec, &mut &*bytes, bytes.len() as u64)
    }

    /// Adds a tensor of `bytes` bytes that are read as they are written.
    ///
    /// # Errors
    /// As [`add_bytes`](Self::add_bytes); or if the reader fails or ends early.
    pub fn add_reader(
        &mut self,
        name: &str,
        spec: &ArraySpec,
        reader: &mut dyn Read,
        bytes: u64,
    ) -> Result<(), Error> {
        check_size(name, spec, bytes)?;
        self.begin_array(name, spec)?;
        let sums = self.whole_piece(name, spec, bytes)?;
        let sums = self.put_reader(reader, bytes, sums)?;
        self.end_piece(sums)
    }

    /// Adds a tensor of byte strings, in row-major order; the spec's type is
    /// [`DType::String`].
    ///
    /// # Errors
    /// As [`add_bytes`](Self::add_bytes).
    pub fn add_strings(
        &mut self,
        name: &str,
        spec: &ArraySpec,
        strings: &[impl AsRef<[u8]>],
    ) -> Result<(), Error> {
        let elements = spec.shape().element_count().ok().and_then(|count| count.try_into().ok());
        if spec.dtype() != DType::String || elements != Some(strings.len()) {
            return Err(Error::Unsupported {
                name: name.to_owned(),
                reason: format!(
                    "{} strings do not make {}{}",
                    strings.len(),
                    spec.dtype(),
                    spec.shape()
                ),
            });
        }
        // End of each string in the text, then the text.
        let mut ends = Vec::with_capacity(8 * strings.len());
        let mut end = 0_u64;
        for string in strings {
            end += string.as_ref().len() as u64;
            ends.extend(end.to_le_bytes());
        }
        self.begin_array(name, spec)?;
        let mut sums = self.whole_piece(name, spec, ends.len() as u64 + end)?;
        for bytes in std::iter::once(&ends[..]).chain(strings.iter().map(AsRef::as_ref)) {
            sums = self.put_reader(&mut &*bytes, bytes.len() as u64, sums)?;
        }
        self.end_piece(sums)
    }

    /// Writes the index, takes the file to the disk as the options say, and gives it its name.
    ///
    /// # Errors
    /// If the file cannot be written, an earlier piece failed half way, or the work was stopped.
    pub fn finish(mut self) -> Result<Written, Error> {
        if self.broken {
            return Err(self.broken());
        }
        self.options.watch.check()?;
        let header = std::mem::take(&mut self.prologue);
        self.position -= header.len() as u64;
        self.put(&header)?;
        let index_offset = self.position;
        let tensors = self.index.arrays_len() as u64;
        let index = std::mem::take(&mut self.index).encode()?;
        let trailer = Trailer {
            index_offset,
            index_bytes: index.len() as u64,
            file_bytes: index_offset + (index.len() + TRAILER_BYTES) as u64,
            index_checksum: checksum(&index),
            header_checksum: self.header_checksum,
            data_bytes: self.data_bytes,
        };
        self.put(&index)?;
        self.put(&trailer.encode())?;
        self.flush()?;
        let Self { output, path, begin, replacement, options, .. } = self;
        drop(output.finish().map_err(|error| Error::io("write", &path, error))?);
        let time = begin.map(|begin| begin.elapsed()).unwrap_or_default();
        options.watch.check()?;
        let sync_time = match replacement {
            Some(replacement) => replacement.finish(options.sync)?,
            None => Duration::ZERO,
        };
        let (bytes, file_bytes) = (trailer.data_bytes, trailer.file_bytes);
        Ok(Written { tensors, bytes, file_bytes, time, sync_time })
    }

    fn begin_array(&mut self, name: &str, spec: &ArraySpec) -> Result<(), Error> {
        self.options.watch.check()?;
        if self.broken {
            return Err(self.broken());
        }
        if !self.prologue.is_empty() {
            let header = std::mem::take(&mut self.prologue);
            self.position -= header.len() as u64;
            self.put(&header)?;
        }
        self.begin.get_or_insert_with(Instant::now);
        if !self.specs.contains_key(spec) {
            let message = spec.to_proto(self.options.version).map_err(|source| Error::Encode {
                name: name.to_owned(),
                source: Box::new(source),
            })?;
            self.specs.insert(spec.clone(), message.encode_to_vec());
        }
        let bytes = self.specs.get(spec).map(Vec::as_slice).unwrap_or_default();
        self.index.array(name, bytes)
    }

    fn whole_piece(
        &mut self,
        name: &str,
        spec: &ArraySpec,
        bytes: u64,
    ) -> Result<ChunkSums, Error> {
        let device = spec.sharding().devices().ids().first().map_or(0, |id| id.0);
        self.begin_piece(name, spec, device, None, bytes)
    }

    /// Writes everything of a piece that comes before its data.
    fn begin_piece(
        &mut self,
        name: &str,
        spec: &ArraySpec,
        device: i32,
        domain: Domain,
        data_bytes: u64,
    ) -> Result<ChunkSums, Error> {
        self.broken = true;
        let spec = self.specs.get(spec).map(Vec::as_slice).unwrap_or_default();
        let rank = domain.as_ref().map_or(0, Vec::len);
        let header_bytes = piece::header_length(name.len(), spec.len(), rank);
        let chunk_bytes = self.options.chunk_bytes;
        let layout = PieceLayout::new(self.position, header_bytes, data_bytes, chunk_bytes)
            .ok_or(Error::TooLarge { what: "data", found: data_bytes })?;
        let placement = Placement { device, domain };
        let number = self.index.piece(&placement, layout.data, data_bytes, chunk_bytes)?;
        let header = PieceHeader {
            name,
            spec,
            number,
            device,
            domain: placement.domain,
            data_offset: layout.data,
            data_bytes,
        }
        .encode()?;
        self.put(&header)?;
        self.put_zeros(layout.data - layout.header - header_bytes)?;
        self.data_bytes += data_bytes;
        Ok(ChunkSums::new(chunk_bytes))
    }

    /// Writes everything of a piece that comes behind its data.
    fn end_piece(&mut self, sums: ChunkSums) -> Result<(), Error> {
        let sums = sums.finish();
        self.index.checksums(&sums);
        let number = (self.index.pieces_len().saturating_sub(1)) as u32;
        self.put(&piece::encode_footer(number, &sums))?;
        self.put_zeros(self.position.next_multiple_of(ALIGNMENT) - self.position)?;
        self.broken = false;
        Ok(())
    }

    fn broken(&self) -> Error {
        let source = std::io::Error::other("an earlier tensor was written in part");
        Error::io("finish", &self.path, source)
    }

    /// Hands the buffer that is being filled to the file.
    fn flush(&mut self) -> Result<(), Error> {
        let Some((buffer, used)) = self.current.take() else { return Ok(()) };
        self.give(buffer, used)
    }

    fn give(&mut self, buffer: Buffer, used: usize) -> Result<(), Error> {
        self.output.give(buffer, used).map_err(|error| Error::io("write", &self.path, error))
    }

    /// An empty buffer, of the device's memory where there is a device.
    fn take(&mut self) -> Result<Buffer, Error> {
        let device = self.device.as_ref();
        self.output
            .take(|| match device {
                Some(device) => Buffer::pinned(device)
                    .map_err(|error| Error::device("allocating host memory for", "", error)),
                None => Ok(Buffer::pageable()),
            })
            .map_err(|error| Error::io("write", &self.path, error))?
    }

    /// The buffer that is being filled, with room in it.
    fn room(&mut self) -> Result<&mut (Buffer, usize), Error> {
        if self.current.as_ref().is_some_and(|(buffer, used)| *used == buffer.len()) {
            self.flush()?;
        }
        if self.current.is_none() {
            let buffer = self.take()?;
            return Ok(self.current.insert((buffer, 0)));
        }
        // Never `None` here; the insertion is for the type.
        Ok(self.current.get_or_insert_with(|| (Buffer::pageable(), 0)))
    }

    /// The data of a piece out of device memory.
    fn put_memory(
        &mut self,
        name: &str,
        memory: &DeviceMemory,
        sums: ChunkSums,
    ) -> Result<ChunkSums, Error> {
        if memory.size() >= STREAMED_FROM {
            self.put_streamed(name, memory, sums)
        } else {
            self.put_copied(name, memory, 0, sums)
        }
    }

    /// Data from byte `offset` on through calls that wait, into the buffer that is being filled.
    fn put_copied(
        &mut self,
        name: &str,
        memory: &DeviceMemory,
        mut offset: u64,
        mut sums: ChunkSums,
    ) -> Result<ChunkSums, Error> {
        while offset < memory.size() {
            let (buffer, used) = self.room()?;
            let now = (memory.size() - offset).min((buffer.len() - *used) as u64) as usize;
            let part = &mut buffer[*used..*used + now];
            memory
                .device()
                .copy_to_host(memory, offset, part)
                .map_err(|error| Error::device("reading", name, error))?;
            sums.update(part);
            *used += now;
            self.position += now as u64;
            offset += now as u64;
            self.options.watch.advance(now as u64)?;
        }
        Ok(sums)
    }

    /// Data through a stream, several copies ahead of what is summed and written.
    fn put_streamed(
        &mut self,
        name: &str,
        memory: &DeviceMemory,
        mut sums: ChunkSums,
    ) -> Result<ChunkSums, Error> {
        let failed = |error| Error::device("reading", name, error);
        self.flush()?;
        let known = self.streams.iter().position(|stream| stream.device().is(memory.device()));
        let stream = match known {
            Some(position) => self.streams.swap_remove(position),
            None => memory.device().create_stream().map_err(failed)?,
        };
        let mut under_way = VecDeque::with_capacity(IN_FLIGHT);
        let mut offset = 0;
        while offset < memory.size() || !under_way.is_empty() {
            if offset < memory.size() && under_way.len() < IN_FLIGHT {
                let now = (memory.size() - offset).min(BUFFER_BYTES as u64) as usize;
                match self.take()? {
                    Buffer::Pinned(target) => {
                        let transfer =
                            stream.copy_to_host(memory, offset, now, target).map_err(failed)?;
                        under_way.push_back((transfer, now));
                    }
                    // A buffer from before the first device; it must not come between the others.
                    Buffer::Pageable(mut bytes) => {
                        self.complete(name, &mut under_way, 0, &mut sums)?;
                        let part = bytes.get_mut(..now).unwrap_or_default();
                        memory.device().copy_to_host(memory, offset, part).map_err(failed)?;
                        sums.update(part);
                        self.position += now as u64;
                        self.give(Buffer::Pageable(bytes), now)?;
                        self.options.watch.advance(now as u64)?;
                    }
                }
                offset += now as u64;
                continue;
            }
            let left = under_way.len().saturating_sub(1);
            self.complete(name, &mut under_way, left, &mut sums)?;
        }
        self.streams.push(stream);
        Ok(sums)
    }

    /// Waits for the oldest copies until `left` are under way, sums and writes what they brought.
    fn complete(
        &mut self,
        name: &str,
        under_way: &mut VecDeque<(Transfer, usize)>,
        left: usize,
        sums: &mut ChunkSums,
    ) -> Result<(), Error> {
        while under_way.len() > left {
            let Some((transfer, bytes)) = under_way.pop_front() else { return Ok(()) };
            let memory = transfer.wait().map_err(|error| Error::device("reading", name, error))?;
            sums.update(memory.get(..bytes).unwrap_or_default());
            self.position += bytes as u64;
            self.give(Buffer::Pinned(memory), bytes)?;
            self.options.watch.advance(bytes as u64)?;
        }
        Ok(())
    }

    /// The next bytes of the file.
    fn put(&mut self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            let (buffer, used) = self.room()?;
            let (now, later) = bytes.split_at(bytes.len().min(buffer.len() - *used));
            buffer[*used..*used + now.len()].copy_from_slice(now);
            *used += now.len();
            self.position += now.len() as u64;
            bytes = later;
        }
        Ok(())
    }

    fn put_zeros(&mut self, mut count: u64) -> Result<(), Error> {
        while count > 0 {
            let now = count.min(64);
            self.put(&[0; 64][..now as usize])?;
            count -= now;
        }
        Ok(())
    }

    /// The next `count` bytes of a piece's data, read straight into the buffers.
    fn put_reader(
        &mut self,
        reader: &mut dyn Read,
        mut count: u64,
        mut sums: ChunkSums,
    ) -> Result<ChunkSums, Error> {
        let path = self.path.clone();
        while count > 0 {
            let (buffer, used) = self.room()?;
            let now = count.min((buffer.len() - *used) as u64) as usize;
            let part = &mut buffer[*used..*used + now];
            reader.read_exact(part).map_err(|error| Error::io("read data for", &path, error))?;
            sums.update(part);
            *used += now;
            self.position += now as u64;
            count -= now as u64;
            self.options.watch.advance(now as u64)?;
        }
        Ok(sums)
    }
}

fn check_size(name: &str, spec: &ArraySpec, bytes: u64) -> Result<(), Error> {
    let expected = spec.byte_size().ok().flatten().and_then(|size| u64::try_from(size).ok());
    match expected {
        Some(expected) if expected == bytes => Ok(()),
        Some(expected) => {
            Err(Error::SizeMismatch { name: name.to_owned(), found: bytes, expected })
        }
        None => Err(Error::Unsupported {
            name: name.to_owned(),
            reason: format!("{}{} has no size in bytes", spec.dtype(), spec.shape()),
        }),
    }
}
