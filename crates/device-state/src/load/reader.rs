//! An open state: its description, and its tensors by name.

use std::{
    fmt,
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use serdes::version::{UnknownVersion, VersionDef};
use serdes_files::{FileSystem, Files, ReadAt, open_together, read_at};

use super::{Tensor, header::read_header, open_state::OpenState};
use crate::{
    Error, LocalParts, Part, PartStore, Versions,
    format::{
        header::Header,
        index::{Index, Surroundings},
        role::{MergedRole, Role},
        spread,
        trailer::{TRAILER_BYTES, Trailer},
    },
    store::{Parts, ReadOnlyParts, Spread},
};

/// An open state with validated header and index; data are read on request.
#[derive(Clone)]
pub struct Reader {
    pub(crate) state: Arc<OpenState>,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("path", &self.state.path)
            .field("tensors", &self.len())
            .field("file_bytes", &self.state.file_bytes)
            .finish()
    }
}

impl Reader {
    /// Opens the state at `path`: reads its header and index, but not its data.
    ///
    /// # Errors
    /// [`Error::TooNew`], [`Error::TooNewFeature`], [`Error::BadConsumer`], [`Error::TooOld`] or
    /// [`Error::ProducerTooOld`] if this build must not read it, [`Error::NotDeviceState`] or
    /// [`Error::Corrupt`] if no build can.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let index = |_| FileSystem.open(path).map_err(|error| Error::io("open", path, error));
        Self::open_with_parts(index, path, None)
    }

    /// Opens a state and its parts, if it has any, so that all of them are from one save: if the
    /// state is replaced meanwhile, opens the new one. `index` opens the state; with `true` it
    /// opens the current one.
    fn open_with_parts(
        index: impl FnMut(bool) -> Result<Arc<dyn ReadAt>, Error>,
        path: &Path,
        store: Option<&Arc<dyn PartStore>>,
    ) -> Result<Self, Error> {
        let open = |source| {
            Self::from_index(Box::new(source), path.to_owned(), store.cloned(), Parts::open)
        };
        open_together(index, open, |reader| reader.parts() == 0)
    }

    /// Opens a state in any source of bytes; `path` is for messages, and locates the parts if
    /// several processes saved it.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_source(
        source: impl ReadAt + 'static,
        path: impl Into<PathBuf>,
    ) -> Result<Self, Error> {
        Self::from_index(Box::new(source), path.into(), None, Parts::open)
    }

    /// Like [`from_source`](Self::from_source), but opens the parts through `files`; `path` is the
    /// state's path there.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_source_among(
        source: impl ReadAt + 'static,
        path: impl Into<PathBuf>,
        files: Arc<dyn Files>,
    ) -> Result<Self, Error> {
        let path = path.into();
        let parts = ReadOnlyParts::new(Arc::clone(&files), path.clone());
        let parts: Arc<dyn PartStore> = Arc::new(parts);
        let source: Arc<dyn ReadAt> = Arc::new(source);
        let index = |anew| match anew {
            false => Ok(Arc::clone(&source)),
            true => files.open_anew(&path).map_err(|error| Error::io("open", &path, error)),
        };
        Self::open_with_parts(index, &path, Some(&parts))
    }

    /// Opens the state in a store.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_in(store: Arc<dyn PartStore>) -> Result<Self, Error> {
        let index = |_| store.open_index().map(Arc::from);
        Self::open_with_parts(index, &store.place(), Some(&store))
    }

    /// Opens a state, and its parts, if it has any, through `open_parts`; errors name the file.
    pub(super) fn from_index(
        source: Box<dyn ReadAt>,
        path: PathBuf,
        store: Option<Arc<dyn PartStore>>,
        open_parts: impl FnOnce(Arc<dyn PartStore>, &MergedRole) -> Result<Parts, Error>,
    ) -> Result<Self, Error> {
        let place = path.clone();
        let read = Self::read_index(source, path, store, open_parts);
        read.map_err(|error| error.in_file(&place))
    }

    fn read_index(
        source: Box<dyn ReadAt>,
        path: PathBuf,
        store: Option<Arc<dyn PartStore>>,
        open_parts: impl FnOnce(Arc<dyn PartStore>, &MergedRole) -> Result<Parts, Error>,
    ) -> Result<Self, Error> {
        let io = |error| Error::io("read", &path, error);
        let file_bytes = source.size().map_err(io)?;
        let (header, header_checksum, header_bytes) = read_header(&*source, &path, file_bytes)?;

        let trailer_offset = file_bytes
            .checked_sub(TRAILER_BYTES as u64)
            .filter(|offset| *offset >= header_bytes)
            .ok_or_else(|| {
                let found = format!("{file_bytes} bytes");
                Error::corrupt("trailer", found, "a whole state; it was truncated".to_owned())
            })?;
        let mut trailer = [0; TRAILER_BYTES];
        source.read_exact_at(&mut trailer, trailer_offset).map_err(io)?;
        let trailer = Trailer::decode(&trailer, file_bytes)?;
        if trailer.header_checksum != header_checksum {
            return Err(Error::checksum("header", trailer.header_checksum, header_checksum));
        }
        let bytes = read_index(&*source, &trailer, &path)?;
        let around = Surroundings {
            header_bytes,
            chunk_bytes: header.chunk_bytes,
            index_offset: trailer.index_offset,
            data_bytes: trailer.data_bytes,
            index_checksum: trailer.index_checksum,
            gaps: false,
            spread: matches!(header.role, Role::Merged(_)),
        };
        let index = Index::decode(bytes, around)?;
        let (mut source, mut file_bytes, mut merged) = (source, file_bytes, None);
        if let Role::Merged(role) = &header.role {
            let places = spread::places(&index, role, header.chunk_bytes)?;
            let store = store.unwrap_or_else(|| Arc::new(LocalParts::new(&path)));
            let parts = Arc::new(open_parts(store, role)?);
            file_bytes = file_bytes.saturating_add(parts.bytes());
            source = Box::new(Arc::clone(&parts));
            merged = Some(Spread { parts, places });
        }
        Ok(Self::assemble(
            source,
            path,
            (header, header_bytes),
            (index, merged),
            file_bytes,
            trailer.data_bytes,
            false,
        ))
    }

    pub(super) fn assemble(
        source: Box<dyn ReadAt>,
        path: PathBuf,
        (header, header_bytes): (Header, u64),
        (index, merged): (Index, Option<Spread>),
        file_bytes: u64,
        data_bytes: u64,
        salvaged: bool,
    ) -> Self {
        let specs = (0..index.specs_len()).map(|_| OnceLock::new()).collect();
        let state = OpenState {
            source,
            path,
            header,
            header_bytes,
            index,
            file_bytes,
            data_bytes,
            salvaged,
            specs,
            merged,
        };
        Self { state: Arc::new(state) }
    }

    /// Returns the number of tensors.
    pub fn len(&self) -> usize {
        self.state.index.arrays_len()
    }

    /// Returns true if the state has no tensor.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the size of the payload of all tensors, in bytes.
    pub fn data_bytes(&self) -> u64 {
        self.state.data_bytes
    }

    /// Returns which part of a save the file is; `None` if the file is not a part. Arrays with
    /// shards in other parts can be listed and verified, but not restored.
    pub fn part(&self) -> Option<Part> {
        self.state.part()
    }

    /// Returns the number of parts that several processes saved; 0 for a state of one file.
    pub fn parts(&self) -> u32 {
        self.state.merged.as_ref().map_or(0, |merged| merged.parts.count())
    }

    /// Returns the length of the file in bytes, including parts.
    pub fn file_bytes(&self) -> u64 {
        self.state.file_bytes
    }

    /// Returns the number of bytes per checksum.
    pub fn chunk_bytes(&self) -> u32 {
        self.state.header.chunk_bytes
    }

    /// Returns the versions at which the state was written.
    ///
    /// # Errors
    /// If this build reads the state but cannot write one of its versions: a version of a newer
    /// build with an ignorable change. The error has the number, which [`format`](Self::format) and
    /// [`ifrt_version`](Self::ifrt_version) also return.
    pub fn written_at(&self) -> Result<Versions, UnknownVersion> {
        Versions::from_numbers(self.format(), self.ifrt_version())
    }

    /// Returns the number of the file's format.
    pub fn format(&self) -> i32 {
        self.state.header.format
    }

    /// Returns the IFRT SerDes number that was requested when the state was saved.
    pub fn ifrt_version(&self) -> i32 {
        self.state.header.ifrt_version
    }

    /// Returns the version constraints: the builds that may read the state.
    pub fn versions(&self) -> VersionDef {
        let header = &self.state.header;
        VersionDef {
            producer: header.producer,
            min_consumer: header.min_consumer,
            bad_consumers: header.bad_consumers.clone(),
        }
    }

    /// Returns the name and release of the program that wrote the state.
    pub fn producer_release(&self) -> &str {
        &self.state.header.producer_release
    }

    /// Returns the metadata of the source that the state was made from, in its order; `None` if the
    /// source's format has no metadata.
    pub fn metadata(&self) -> Option<&[(String, String)]> {
        self.state.header.metadata.as_deref()
    }

    /// Returns the tensor called `name`.
    ///
    /// # Errors
    /// [`Error::NoSuchTensor`]; or if its spec cannot be read.
    pub fn tensor(&self, name: &str) -> Result<Tensor, Error> {
        match self.state.index.find(name) {
            Some(number) => self.tensor_at(number),
            None => Err(Error::NoSuchTensor { name: name.to_owned(), count: self.len() }),
        }
    }

    /// Returns the names of all tensors, in the order of their bytes.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        let index = &self.state.index;
        (0..index.arrays_len()).map(|number| index.name(number as u32))
    }

    /// Returns all tensors, in the order of their names.
    ///
    /// # Errors
    /// Each item by itself: if the spec cannot be read.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = Result<Tensor, Error>> {
        (0..self.len()).map(|number| self.tensor_at(number as u32))
    }

    /// Returns all tensors, in the order of their data in the file.
    ///
    /// # Errors
    /// If a spec cannot be read.
    pub fn tensors_in_file_order(&self) -> Result<Vec<Tensor>, Error> {
        let mut tensors = self.tensors().collect::<Result<Vec<_>, _>>()?;
        tensors.sort_by_key(|tensor| tensor.first_piece);
        Ok(tensors)
    }

    fn tensor_at(&self, number: u32) -> Result<Tensor, Error> {
        let Some(array) = self.state.index.array_row(number) else {
            return Err(Error::NoSuchTensor { name: String::new(), count: self.len() });
        };
        let tensor = Tensor {
            state: Arc::clone(&self.state),
            number,
            spec: array.spec,
            first_piece: array.first_piece,
            piece_count: array.piece_count,
        };
        tensor.check().map_err(|error| error.in_file(&self.state.path))?;
        Ok(tensor)
    }
}

/// The longest index, enough for a million gigabytes in one file. A sparse file or a lying server
/// can claim a longer one.
const MAXIMUM_INDEX_BYTES: u64 = 4 << 30;

fn read_index(source: &dyn ReadAt, trailer: &Trailer, path: &Path) -> Result<Vec<u8>, Error> {
    let Trailer { index_offset, index_bytes, .. } = *trailer;
    if index_bytes > MAXIMUM_INDEX_BYTES {
        let expected = format!("at most {MAXIMUM_INDEX_BYTES} bytes");
        return Err(Error::corrupt("index", format!("{index_bytes} bytes"), expected));
    }
    let bytes = read_at::read_arriving(source, index_offset, index_bytes);
    bytes.map_err(|error| Error::io("read", path, error))
}
