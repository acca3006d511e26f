use std::{
    collections::HashMap,
    fs::File,
    io::Read,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use prost::Message;

use super::{
    Commit, Error, Versions, WriteOptions,
    chunks::ChunkSums,
    format::{
        ALIGNMENT, checksum,
        header::Header,
        index::{IndexBuilder, Placement},
        piece::{self, Domain, PieceHeader, PieceLayout},
        role::Role,
        trailer::{TRAILER_BYTES, Trailer},
    },
    output::{Output, Sink},
    staging::{BUFFERS, Filling},
};
use crate::{
    codec::ToProto,
    ifrt::{ArraySpec, DType},
    stream_executor::{Device, DeviceMemory, Stream},
    version::VersionDef,
};

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
    /// Whether the data went to the disk past the system's page cache, as
    /// [`WriteOptions::with_direct`] asks for; `false` also where the file system refused it.
    pub direct: bool,
}

/// A state that is being written.
///
/// Tensors are streamed out in the order in which they are added. The file appears when
/// [`finish`](Self::finish) succeeds; a writer that is dropped before leaves nothing.
pub struct Writer {
    pub(super) options: WriteOptions,
    pub(super) path: PathBuf,
    pub(super) output: Output,
    commit: Option<Box<dyn Commit>>,
    /// The file behind the output, if pieces can be written at any place of it.
    pub(super) file: Option<File>,
    pub(super) current: Option<Filling>,
    /// The header, until the first tensor says what memory the buffers are made of.
    prologue: Vec<u8>,
    /// The device whose memory the buffers are made of.
    pub(super) device: Option<Device>,
    pub(super) streams: Vec<Stream>,
    /// Bytes of the file so far.
    pub(super) position: u64,
    pub(super) index: IndexBuilder,
    header_checksum: u32,
    data_bytes: u64,
    begin: Option<Instant>,
    /// A piece is half written: nothing can follow it.
    pub(super) broken: bool,
    specs: HashMap<ArraySpec, Vec<u8>>,
}

impl Writer {
    /// Begins a state at `path` for readers of these versions, with the defaults of
    /// [`WriteOptions`].
    ///
    /// # Errors
    /// If no file can be made beside `path`.
    pub fn create(path: impl AsRef<Path>, versions: Versions) -> Result<Self, Error> {
        WriteOptions::new(versions).create(path)
    }

    pub(super) fn new(
        options: WriteOptions,
        sink: Sink,
        path: PathBuf,
        commit: Option<Box<dyn Commit>>,
    ) -> Result<Self, Error> {
        let container = options.versions.container();
        let versions = VersionDef::stamped(container);
        let header = Header {
            format: container.number(),
            producer: versions.producer,
            min_consumer: versions.min_consumer,
            bad_consumers: versions.bad_consumers,
            producer_release: options.producer_release.clone(),
            ifrt_version: options.versions.specs().number(),
            chunk_bytes: options.chunk_bytes,
            metadata: options.metadata.clone(),
            role: options.part.map_or(Role::Whole, |part| Role::Part(part.role())),
        }
        .encode()?;
        let file = commit.as_ref().and_then(|commit| commit.file()?.try_clone().ok());
        Ok(Self {
            file,
            output: Output::new(sink, BUFFERS, options.threaded),
            options,
            path,
            commit,
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
        let Self { output, path, begin, commit, options, .. } = self;
        drop(output.finish().map_err(|error| Error::io("write", &path, error))?);
        let time = begin.map(|begin| begin.elapsed()).unwrap_or_default();
        let direct = commit.as_ref().is_some_and(|commit| commit.is_direct());
        let sync_time = match commit {
            Some(commit) => {
                options.watch.check()?;
                commit.commit(options.sync)?
            }
            // A stream has all its bytes, an object is there: too late to stop.
            None => Duration::ZERO,
        };
        let (bytes, file_bytes) = (trailer.data_bytes, trailer.file_bytes);
        Ok(Written { tensors, bytes, file_bytes, time, sync_time, direct })
    }

    pub(super) fn begin_array(&mut self, name: &str, spec: &ArraySpec) -> Result<(), Error> {
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
            let message = spec.to_proto(self.options.versions.specs()).map_err(|source| {
                Error::Encode { name: name.to_owned(), source: Box::new(source) }
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
    pub(super) fn begin_piece(
        &mut self,
        name: &str,
        spec: &ArraySpec,
        device: i32,
        domain: Domain,
        data_bytes: u64,
    ) -> Result<ChunkSums, Error> {
        let (layout, _, header) = self.place_piece(name, spec, device, domain, data_bytes)?;
        self.put(&header)?;
        self.put_zeros(layout.data - layout.header - header.len() as u64)?;
        Ok(ChunkSums::new(self.options.chunk_bytes))
    }

    /// Finds the place of the next piece and puts it into the index: its layout, number and header
    /// without padding. Nothing is written.
    pub(super) fn place_piece(
        &mut self,
        name: &str,
        spec: &ArraySpec,
        device: i32,
        domain: Domain,
        data_bytes: u64,
    ) -> Result<(PieceLayout, u32, Vec<u8>), Error> {
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
        self.data_bytes += data_bytes;
        Ok((layout, number, header))
    }

    /// Writes everything of a piece that comes behind its data.
    pub(super) fn end_piece(&mut self, sums: ChunkSums) -> Result<(), Error> {
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
