//! The writer of a state: controls the order of writes, and builds the index.

use std::{
    collections::HashMap,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use serdes::{codec::ToProto, ifrt::ArraySpec};
use serdes_files::{Durability, sync_watched};

use super::{output::Sink, staging::Staging};
use crate::{
    Commit, Error, Versions, WriteOptions,
    format::{
        ALIGNMENT, checksum,
        header::Header,
        index::{IndexBuilder, Placement},
        piece::{self, PieceHeader, PieceLayout},
        role::Role,
        trailer::{TRAILER_BYTES, Trailer},
    },
    hosted::{AllStreams, HostedMemory},
    pump::{ChunkSums, Memory},
};

/// Summary of a finished save.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct Written {
    /// Number of tensors.
    pub tensors: u64,
    /// Payload of all tensors in bytes.
    pub bytes: u64,
    /// Length of the file in bytes.
    pub file_bytes: u64,
    /// Time from the first tensor until the system had the last byte.
    pub time: Duration,
    /// Time of syncing and renaming.
    pub sync_time: Duration,
    /// True if the data were written past the system's page cache, as requested by
    /// [`WriteOptions::with_direct`]; `false` also if the file system refused.
    pub direct: bool,
}

/// A state that is being written.
///
/// Tensors are written in the order in which they are added. The file appears when
/// [`finish`](Self::finish) succeeds; dropping the writer before leaves no file.
pub struct Writer {
    options: WriteOptions,
    staging: Staging,
    commit: Option<Box<dyn Commit>>,
    /// The file of the output, if pieces can be written at any position.
    file: Option<File>,
    /// The header, until the first tensor determines the memory of the buffers.
    prologue: Vec<u8>,
    streams: AllStreams,
    index: IndexBuilder,
    header_checksum: u32,
    data_bytes: u64,
    begin: Option<Instant>,
    /// True after an incomplete piece: nothing can follow it.
    broken: bool,
    specs: HashMap<ArraySpec, Arc<[u8]>>,
}

/// A started array, to which pieces are added.
pub(super) struct OpenArray<'a> {
    name: &'a str,
    /// Encoded spec of the array.
    spec: Arc<[u8]>,
}

impl OpenArray<'_> {
    /// Returns the name of the tensor.
    pub(super) const fn name(&self) -> &str {
        self.name
    }
}

/// The position of a piece in the index, and the bytes around its data.
pub(super) struct PlacedPiece {
    pub(super) layout: PieceLayout,
    pub(super) number: u32,
    /// The header without padding.
    pub(super) header: Vec<u8>,
}

/// A started piece, which gets its data next.
pub(super) struct OpenPiece {
    number: u32,
    sums: ChunkSums,
}

impl Writer {
    /// Creates a state at `path` for readers of these versions, with the defaults of
    /// [`WriteOptions`].
    ///
    /// # Errors
    /// If no file can be created beside `path`.
    pub fn create(path: impl AsRef<Path>, versions: Versions) -> Result<Self, Error> {
        WriteOptions::new(versions).create(path)
    }

    pub(crate) fn new(
        options: WriteOptions,
        sink: Sink,
        path: PathBuf,
        commit: Option<Box<dyn Commit>>,
    ) -> Result<Self, Error> {
        let container = options.versions.container();
        let versions = container.stamp();
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
            staging: Staging::new(sink, options.threaded, path, options.monitor.clone()),
            options,
            commit,
            streams: AllStreams::new(),
            index: IndexBuilder::default(),
            header_checksum: header.last_chunk().map_or(0, |sum| u32::from_le_bytes(*sum)),
            data_bytes: 0,
            begin: None,
            broken: false,
            specs: HashMap::new(),
            prologue: header,
        })
    }

    /// Writes the index, syncs the file with the requested durability, and renames it.
    ///
    /// # Errors
    /// If the file cannot be written, an earlier piece is incomplete, or the work was cancelled.
    pub fn finish(mut self) -> Result<Written, Error> {
        self.check()?;
        self.put_prologue()?;
        let index_offset = self.staging.position();
        let tensors = self.index.arrays_len() as u64;
        let index = self.index.encode()?;
        let trailer = Trailer {
            index_offset,
            index_bytes: index.len() as u64,
            file_bytes: index_offset + (index.len() + TRAILER_BYTES) as u64,
            index_checksum: checksum(&index),
            header_checksum: self.header_checksum,
            data_bytes: self.data_bytes,
        };
        self.staging.put(&index)?;
        self.staging.put(&trailer.encode())?;
        let path = self.staging.path().to_owned();
        self.staging.finish()?;
        let time = self.begin.map(|begin| begin.elapsed()).unwrap_or_default();
        let direct = self.commit.as_ref().is_some_and(|commit| commit.is_direct());
        let sync_time = match self.commit {
            Some(commit) => {
                self.options.monitor.check()?;
                let begin = Instant::now();
                if let (Durability::Data, Some(file)) = (self.options.durability, &self.file) {
                    // The commit cannot be cancelled and then has little left to do.
                    sync_watched(file, &self.options.monitor)
                        .map_err(|error| Error::io("sync", &path, error))??;
                }
                let synced = begin.elapsed();
                synced + commit.commit(self.options.durability)?
            }
            // A stream or an object is complete: too late to cancel.
            None => Duration::ZERO,
        };
        let (bytes, file_bytes) = (trailer.data_bytes, trailer.file_bytes);
        Ok(Written { tensors, bytes, file_bytes, time, sync_time, direct })
    }

    /// Returns the options of the state.
    pub(super) const fn options(&self) -> &WriteOptions {
        &self.options
    }

    /// Adds an array to the index; its pieces follow.
    pub(super) fn begin_array<'a>(
        &mut self,
        name: &'a str,
        spec: &ArraySpec,
    ) -> Result<OpenArray<'a>, Error> {
        self.check()?;
        self.put_prologue()?;
        self.begin.get_or_insert_with(Instant::now);
        let spec = match self.specs.get(spec) {
            Some(bytes) => Arc::clone(bytes),
            None => {
                let bytes = spec.to_bytes(self.options.versions.specs());
                let bytes: Arc<[u8]> = match bytes {
                    Ok(bytes) => Arc::from(&*bytes),
                    Err(source) => {
                        let source = Box::new(source);
                        return Err(Error::Encode { name: name.to_owned(), source });
                    }
                };
                self.specs.insert(spec.clone(), Arc::clone(&bytes));
                bytes
            }
        };
        self.index.array(name, &spec)?;
        Ok(OpenArray { name, spec })
    }

    /// Writes everything of a piece before its data.
    pub(super) fn begin_piece(
        &mut self,
        array: &OpenArray<'_>,
        placement: Placement,
        data_bytes: u64,
    ) -> Result<OpenPiece, Error> {
        let position = self.staging.position();
        let placed = self.place_piece(array, placement, data_bytes, position)?;
        self.staging.put(&placed.header)?;
        self.staging.put_zeros(placed.layout.data - self.staging.position())?;
        Ok(OpenPiece { number: placed.number, sums: ChunkSums::new(self.options.chunk_bytes) })
    }

    /// Writes all data of a piece from device memory.
    pub(super) fn put_memory<M: HostedMemory>(
        &mut self,
        array: &OpenArray<'_>,
        piece: &mut OpenPiece,
        memory: &M,
    ) -> Result<(), Error> {
        let streams = M::streams(&mut self.streams);
        self.staging.put_memory(array.name, memory, streams, &mut piece.sums)
    }

    /// Writes the next `bytes` bytes of a piece's data, read directly into the buffers.
    pub(super) fn put_reader(
        &mut self,
        piece: &mut OpenPiece,
        reader: &mut dyn Read,
        bytes: u64,
    ) -> Result<(), Error> {
        let path = self.staging.path().to_owned();
        self.staging.put_data(bytes, |part| {
            reader.read_exact(part).map_err(|error| Error::io("read data for", &path, error))?;
            piece.sums.update(part);
            Ok(())
        })
    }

    /// Writes the next bytes of a piece's data from memory of this process.
    pub(super) fn put_bytes(&mut self, piece: &mut OpenPiece, bytes: &[u8]) -> Result<(), Error> {
        self.staging.put_bytes(bytes, &mut piece.sums)
    }

    /// Skips the data of a piece, for an output that only counts.
    pub(super) fn leave_out(&mut self, piece: &OpenPiece, bytes: u64) -> Result<(), Error> {
        let end = self.staging.position().checked_add(bytes);
        let end = end.ok_or(Error::TooLarge { what: "data", found: bytes })?;
        self.staging.skip_to(end, || Ok(()))?;
        let sums = piece::chunk_count(bytes, self.options.chunk_bytes);
        let sums =
            usize::try_from(sums).map_err(|_| Error::TooLarge { what: "data", found: bytes })?;
        self.put_footer(piece.number, &vec![0; sums])
    }

    /// Writes everything of a piece after its data.
    pub(super) fn end_piece(&mut self, piece: OpenPiece) -> Result<(), Error> {
        self.put_footer(piece.number, &piece.sums.finish())
    }

    /// Writes everything of a piece after its data, if the data have these checksums.
    pub(super) fn end_piece_of(
        &mut self,
        array: &OpenArray<'_>,
        piece: OpenPiece,
        expected: &[u32],
    ) -> Result<(), Error> {
        let found = piece.sums.finish();
        if found != expected {
            return Err(Error::OtherBytes { name: array.name.to_owned() });
        }
        self.put_footer(piece.number, &found)
    }

    /// Returns the size of the chunks with a checksum each, in bytes.
    pub const fn chunk_bytes(&self) -> u32 {
        self.options.chunk_bytes
    }

    fn put_footer(&mut self, piece: u32, sums: &[u32]) -> Result<(), Error> {
        self.index.checksums(sums);
        self.staging.put(&piece::encode_footer(piece, sums))?;
        let position = self.staging.position();
        self.staging.put_zeros(position.next_multiple_of(ALIGNMENT) - position)?;
        self.broken = false;
        Ok(())
    }

    /// Uses buffers of the memory's device from now on, unless another device's are in use.
    pub(super) fn use_memory_of<M: Memory + 'static>(&mut self, memory: &M) {
        self.staging.use_memory_of(memory);
    }

    /// Adds a piece at `position` to the index, without writing it.
    fn place_piece(
        &mut self,
        array: &OpenArray<'_>,
        placement: Placement,
        data_bytes: u64,
        position: u64,
    ) -> Result<PlacedPiece, Error> {
        self.broken = true;
        let OpenArray { name, spec } = array;
        let rank = placement.domain.as_ref().map_or(0, Vec::len);
        let header_bytes = piece::header_length(name.len(), spec.len(), rank);
        let chunk_bytes = self.options.chunk_bytes;
        let layout = PieceLayout::new(position, header_bytes, data_bytes, chunk_bytes)
            .ok_or(Error::TooLarge { what: "data", found: data_bytes })?;
        let number = self.index.piece(&placement, layout.data, data_bytes, chunk_bytes)?;
        let header = PieceHeader {
            name,
            spec,
            number,
            device: placement.device,
            domain: placement.domain,
            data_offset: layout.data,
            data_bytes,
        }
        .encode()?;
        self.data_bytes += data_bytes;
        Ok(PlacedPiece { layout, number, header })
    }

    /// Returns the file of the output, if pieces can be written at any position, and its path for
    /// messages.
    pub(super) fn file(&self) -> Option<(&File, &Path)> {
        Some((self.file.as_ref()?, self.staging.path()))
    }

    /// Adds consecutive pieces that others write to the index.
    pub(super) fn place_pieces(
        &mut self,
        array: &OpenArray<'_>,
        pieces: impl Iterator<Item = (Placement, u64)>,
    ) -> Result<Vec<PlacedPiece>, Error> {
        self.staging.write_current()?;
        let mut position = self.staging.position();
        let place = |(placement, data_bytes)| {
            let placed = self.place_piece(array, placement, data_bytes, position)?;
            position = placed.layout.end;
            Ok(placed)
        };
        pieces.map(place).collect()
    }

    /// Continues after the pieces that others wrote, with these checksums; `seek` moves the file to
    /// a position.
    pub(super) fn end_pieces(
        &mut self,
        end: u64,
        sums: &[Vec<u32>],
        seek: impl FnOnce(u64) -> io::Result<()>,
    ) -> Result<(), Error> {
        sums.iter().for_each(|sums| self.index.checksums(sums));
        self.staging.skip_to(end, || seek(end))?;
        self.broken = false;
        Ok(())
    }

    fn put_prologue(&mut self) -> Result<(), Error> {
        self.staging.put(&std::mem::take(&mut self.prologue))
    }

    /// Checks that the writer accepts more data.
    fn check(&self) -> Result<(), Error> {
        if self.broken {
            let source = io::Error::other("an earlier tensor was written in part");
            return Err(Error::io("finish", self.staging.path(), source));
        }
        Ok(self.options.monitor.check()?)
    }
}
