use std::{
    fmt,
    fs::File,
    io::{self, Read},
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

use super::{
    Error,
    chunks::ChunkSums,
    format::checksum,
    format::{
        header::{Header, PREFIX_BYTES, Prefix},
        index::{ArrayEntry, Index, PieceEntry, Surroundings},
        piece::{self, PieceHeader, chunk_count},
        trailer::{TRAILER_BYTES, Trailer},
    },
};
use crate::{
    codec::{DecodeError, FromProto, decode_message},
    ifrt::{ArraySpec, DType, DeviceId, DeviceLookup, Reach, with_devices},
    read_at::ReadAt,
    version::{DeviceState, SerDesVersion, VersionDef},
};

/// An open state: its header and index, checked; the data is read when it is asked for.
#[derive(Clone)]
pub struct Reader {
    pub(super) shared: Arc<Shared>,
}

pub(super) struct Shared {
    pub(super) source: Box<dyn ReadAt>,
    pub(super) path: PathBuf,
    pub(super) header: Header,
    pub(super) header_bytes: u64,
    pub(super) index: Index,
    pub(super) file_bytes: u64,
    pub(super) data_bytes: u64,
    /// Whether the index was made of what was found, so that it does not know every word.
    pub(super) salvaged: bool,
    specs: Vec<OnceLock<ArraySpec>>,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("path", &self.shared.path)
            .field("tensors", &self.len())
            .field("file_bytes", &self.shared.file_bytes)
            .finish()
    }
}

/// Specs name devices of the build that saved them; any number is one here.
struct AnyDevice;

impl DeviceLookup for AnyDevice {
    fn look_up(&self, _: DeviceId) -> Result<Reach, DecodeError> {
        Ok(Reach::Addressable)
    }
}

impl Reader {
    /// Opens the state at `path`: reads its header and its end, not its data.
    ///
    /// # Errors
    /// [`Error::TooNew`], [`Error::TooNewFeature`] or [`Error::BadConsumer`] if this build must
    /// not read it, [`Error::NotDeviceState`] or [`Error::Corrupt`] if nobody can.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let file = File::open(path).map_err(|error| Error::io("open", path, error))?;
        Self::from_source(file, path)
    }

    /// Opens a state in any source of bytes; `path` is for messages.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn from_source(
        source: impl ReadAt + 'static,
        path: impl Into<PathBuf>,
    ) -> Result<Self, Error> {
        let path = path.into();
        let source: Box<dyn ReadAt> = Box::new(source);
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
        let mut bytes = vec![0; usize::try_from(trailer.index_bytes).unwrap_or(usize::MAX)];
        source.read_exact_at(&mut bytes, trailer.index_offset).map_err(io)?;
        let around = Surroundings {
            header_bytes,
            chunk_bytes: header.chunk_bytes,
            index_offset: trailer.index_offset,
            data_bytes: trailer.data_bytes,
            index_checksum: trailer.index_checksum,
            gaps: false,
        };
        let index = Index::decode(bytes, around)?;
        Ok(Self::assemble(
            source,
            path,
            (header, header_bytes),
            index,
            file_bytes,
            trailer.data_bytes,
            false,
        ))
    }

    pub(super) fn assemble(
        source: Box<dyn ReadAt>,
        path: PathBuf,
        (header, header_bytes): (Header, u64),
        index: Index,
        file_bytes: u64,
        data_bytes: u64,
        salvaged: bool,
    ) -> Self {
        let specs = (0..index.specs_len()).map(|_| OnceLock::new()).collect();
        let shared = Shared {
            source,
            path,
            header,
            header_bytes,
            index,
            file_bytes,
            data_bytes,
            salvaged,
            specs,
        };
        Self { shared: Arc::new(shared) }
    }

    /// Number of tensors.
    pub fn len(&self) -> usize {
        self.shared.index.arrays_len()
    }

    /// Whether the state has no tensor.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Payload of all tensors in bytes.
    pub fn data_bytes(&self) -> u64 {
        self.shared.data_bytes
    }

    /// Length of the file in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.shared.file_bytes
    }

    /// Bytes under one checksum.
    pub fn chunk_bytes(&self) -> u32 {
        self.shared.header.chunk_bytes
    }

    /// The number of the layout that the file follows.
    pub fn format(&self) -> i32 {
        self.shared.header.format
    }

    /// The IFRT SerDes number that was requested when the state was saved.
    pub fn ifrt_version(&self) -> i32 {
        self.shared.header.ifrt_version
    }

    /// Which builds may read the state.
    pub fn versions(&self) -> VersionDef {
        let header = &self.shared.header;
        VersionDef {
            producer: header.producer,
            min_consumer: header.min_consumer,
            bad_consumers: header.bad_consumers.clone(),
        }
    }

    /// Name and release of the program that wrote the state.
    pub fn producer_release(&self) -> &str {
        &self.shared.header.producer_release
    }

    /// Words of the source about itself, in its order; `None` if it had no place for them.
    pub fn metadata(&self) -> Option<&[(String, String)]> {
        self.shared.header.metadata.as_deref()
    }

    /// The tensor called `name`.
    ///
    /// # Errors
    /// [`Error::NoSuchTensor`]; or if its spec cannot be read.
    pub fn tensor(&self, name: &str) -> Result<Tensor, Error> {
        match self.shared.index.find(name) {
            Some(number) => self.tensor_at(number),
            None => Err(Error::NoSuchTensor { name: name.to_owned(), count: self.len() }),
        }
    }

    /// The names of all tensors, in the order of their bytes.
    pub fn names(&self) -> impl ExactSizeIterator<Item = &str> {
        let index = &self.shared.index;
        (0..index.arrays_len())
            .map(|number| index.array(number as u32).map_or("", |array| array.name))
    }

    /// All tensors, in the order of their names.
    ///
    /// # Errors
    /// Each item by itself: if the spec cannot be read.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = Result<Tensor, Error>> {
        (0..self.len()).map(|number| self.tensor_at(number as u32))
    }

    /// All tensors, in the order in which their data lies in the file.
    ///
    /// # Errors
    /// If a spec cannot be read.
    pub fn tensors_in_file_order(&self) -> Result<Vec<Tensor>, Error> {
        let mut tensors = self.tensors().collect::<Result<Vec<_>, _>>()?;
        tensors.sort_by_key(|tensor| tensor.first_piece);
        Ok(tensors)
    }

    fn tensor_at(&self, number: u32) -> Result<Tensor, Error> {
        let Some(array) = self.shared.index.array(number) else {
            return Err(Error::NoSuchTensor { name: String::new(), count: self.len() });
        };
        let tensor = Tensor {
            reader: self.clone(),
            number,
            spec: array.spec,
            first_piece: array.first_piece,
            piece_count: array.piece_count,
        };
        tensor.check(&array)?;
        Ok(tensor)
    }
}

/// Reads and judges the header of a file; answers it, its checksum and its length.
pub(super) fn read_header(
    source: &dyn ReadAt,
    path: &Path,
    file_bytes: u64,
) -> Result<(Header, u32, u64), Error> {
    let io = |error| Error::io("read", path, error);
    let ours = SerDesVersion::<DeviceState>::current().number();
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

/// One tensor of an open state.
#[derive(Clone)]
pub struct Tensor {
    pub(super) reader: Reader,
    number: u32,
    spec: u32,
    pub(super) first_piece: u32,
    pub(super) piece_count: u32,
}

impl fmt::Debug for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tensor").field("name", &self.name()).field("spec", self.spec()).finish()
    }
}

impl Tensor {
    /// Its name.
    pub fn name(&self) -> &str {
        self.reader.shared.index.array(self.number).map_or("", |array| array.name)
    }

    /// What it is: element type, shape, sharding.
    pub fn spec(&self) -> &ArraySpec {
        static NONE: OnceLock<ArraySpec> = OnceLock::new();
        // Read by `check` before the tensor was handed out.
        self.reader.shared.specs.get(self.spec as usize).and_then(OnceLock::get).unwrap_or_else(
            || {
                NONE.get_or_init(|| {
                    let sharding = crate::ifrt::SingleDeviceSharding::new(DeviceId(0));
                    ArraySpec::new(DType::Invalid, crate::ifrt::Shape::scalar(), sharding)
                })
            },
        )
    }

    /// Length of its data in bytes, all shards together.
    pub fn bytes(&self) -> u64 {
        self.pieces().map(|(_, piece)| piece.data_bytes).sum()
    }

    /// Number and entry of each of its pieces.
    pub(super) fn pieces(&self) -> impl Iterator<Item = (u32, PieceEntry)> {
        let index = &self.reader.shared.index;
        (self.first_piece..self.first_piece.saturating_add(self.piece_count))
            .filter_map(|number| Some((number, index.piece(number)?)))
    }

    /// Reads the spec, and compares what it says with the lengths of the pieces.
    fn check(&self, array: &ArrayEntry<'_>) -> Result<(), Error> {
        let shared = &self.reader.shared;
        let Some(slot) = shared.specs.get(array.spec as usize) else { return Ok(()) };
        let spec = match slot.get() {
            Some(spec) => spec,
            None => {
                let spec = decode_spec(array.name, shared.index.spec(array.spec))?;
                slot.get_or_init(|| spec)
            }
        };
        for (_, piece) in self.pieces() {
            let domain = shared.index.placement(piece.placement).and_then(|p| p.domain.as_ref());
            check_piece(array.name, spec, domain, piece.data_bytes)?;
        }
        Ok(())
    }

    /// The data, row-major, each chunk compared with its checksum before any of it is given out.
    /// Errors of damaged bytes are of kind [`InvalidData`](io::ErrorKind::InvalidData).
    ///
    /// # Errors
    /// If the tensor is stored in several shards.
    pub fn read(&self) -> Result<impl Read + Send + use<>, Error> {
        match self.pieces().next() {
            Some((number, piece)) if self.is_whole() => {
                Ok(PieceReader::new(self.reader.clone(), number, piece))
            }
            _ => Err(Error::Unsupported {
                name: self.name().to_owned(),
                reason: format!("it is stored in {} shards", self.piece_count),
            }),
        }
    }

    /// Whether one piece holds the whole tensor.
    pub(super) fn is_whole(&self) -> bool {
        let index = &self.reader.shared.index;
        self.piece_count == 1
            && self.pieces().all(|(_, piece)| {
                index.placement(piece.placement).is_some_and(|place| place.domain.is_none())
            })
    }

    /// The elements of a tensor of strings, in row-major order.
    ///
    /// # Errors
    /// If the tensor does not hold strings, or its bytes are damaged.
    pub fn strings(&self) -> Result<Vec<Vec<u8>>, Error> {
        let spec = self.spec();
        if spec.dtype() != DType::String {
            return Err(Error::Unsupported {
                name: self.name().to_owned(),
                reason: format!("it holds {}, not strings", spec.dtype()),
            });
        }
        let path = &self.reader.shared.path;
        let mut data = Vec::new();
        self.read()?.read_to_end(&mut data).map_err(|error| self.read_error(path, error))?;
        let wrong = || {
            let found = format!("strings of {:?} that do not fit", self.name());
            Error::corrupt("data", found, "ascending ends inside the text".to_owned())
        };
        let count = spec.shape().element_count().ok().and_then(|count| usize::try_from(count).ok());
        let table = count.and_then(|count| count.checked_mul(8)).ok_or_else(wrong)?;
        let (ends, text) = data.split_at_checked(table).ok_or_else(wrong)?;
        let mut strings = Vec::with_capacity(table / 8);
        let mut begin = 0;
        for end in ends.chunks_exact(8) {
            let end = super::format::u64_at(end, 0);
            let end = usize::try_from(end).map_err(|_| wrong())?;
            strings.push(text.get(begin..end).ok_or_else(wrong)?.to_vec());
            begin = end;
        }
        if begin == text.len() { Ok(strings) } else { Err(wrong()) }
    }

    /// An error of [`read`](Self::read) as one of this module.
    pub(crate) fn read_error(&self, path: &Path, error: io::Error) -> Error {
        if error.kind() == io::ErrorKind::InvalidData {
            Error::corrupt(
                &format!("data of {:?}", self.name()),
                error.to_string(),
                "the bytes that were saved".to_owned(),
            )
        } else {
            Error::io("read", path, error)
        }
    }
}

pub(super) fn decode_spec(name: &str, bytes: &[u8]) -> Result<ArraySpec, Error> {
    let options = with_devices(AnyDevice);
    decode_message(ArraySpec::NAME, bytes.to_vec().into(), &options)
        .and_then(|message| ArraySpec::from_proto(&message, &options))
        .map_err(|source| Error::Spec { name: name.to_owned(), source: Box::new(source) })
}

/// Whether a piece is as long as its part of the array.
pub(super) fn check_piece(
    name: &str,
    spec: &ArraySpec,
    domain: Option<&Vec<(u64, u64)>>,
    data_bytes: u64,
) -> Result<(), Error> {
    let place = || format!("index entry of {name:?}");
    let dims = spec.shape().dims();
    if let Some(domain) = domain {
        let inside = domain.len() == dims.len()
            && domain.iter().zip(dims).all(|((start, extent), dim)| {
                start.checked_add(*extent).is_some_and(|end| end <= *dim as u64)
            });
        if !inside {
            let expected = format!("a part of {}{}", spec.dtype(), spec.shape());
            return Err(Error::corrupt(&place(), format!("the part {domain:?}"), expected));
        }
    }
    let elements = match domain {
        None => spec.shape().element_count().ok().and_then(|count| u64::try_from(count).ok()),
        Some(domain) if domain.iter().any(|(_, extent)| *extent == 0) => Some(0),
        Some(domain) => domain.iter().try_fold(1_u64, |n, (_, extent)| n.checked_mul(*extent)),
    };
    let fits = match (spec.dtype(), elements) {
        (DType::String, Some(elements)) => {
            elements.checked_mul(8).is_some_and(|table| table <= data_bytes) && domain.is_none()
        }
        (dtype, Some(elements)) => dtype
            .bits()
            .and_then(|bits| elements.checked_mul(u64::from(bits.div_ceil(8))))
            .is_some_and(|bytes| bytes == data_bytes),
        (_, None) => false,
    };
    if fits {
        return Ok(());
    }
    let expected = format!("what {}{} needs", spec.dtype(), spec.shape());
    Err(Error::corrupt(&place(), format!("{data_bytes} bytes"), expected))
}

impl Shared {
    /// The words around a piece's data as they must be: from the end of the piece before to the
    /// data, and from the end of the data to the next piece.
    pub(super) fn expected_surroundings(
        &self,
        number: u32,
        piece: &PieceEntry,
    ) -> Result<(Vec<u8>, Vec<u8>), Error> {
        let array = self.index.array(piece.array);
        let placement = self.index.placement(piece.placement);
        let (Some(array), Some(placement)) = (array, placement) else {
            return Ok((Vec::new(), Vec::new()));
        };
        let mut before = PieceHeader {
            name: array.name,
            spec: self.index.spec(array.spec),
            number,
            device: placement.device,
            domain: placement.domain.clone(),
            data_offset: piece.data_offset,
            data_bytes: piece.data_bytes,
        }
        .encode()?;
        // The header begins where the piece before ended, zeros fill the rest.
        let begin = match number.checked_sub(1).and_then(|before| self.index.piece(before)) {
            Some(before) => self.end_of(&before),
            None => self.header_bytes,
        };
        let gap = usize::try_from(piece.data_offset.saturating_sub(begin));
        before.resize(gap.unwrap_or(before.len()), 0);
        let footer = piece.data_offset + piece.data_bytes;
        let sums: Vec<u32> = (0..chunk_count(piece.data_bytes, self.header.chunk_bytes))
            .map(|chunk| self.index.checksum(u64::from(piece.first_chunk) + chunk))
            .collect();
        let mut after = piece::encode_footer(number, &sums);
        after.resize((self.end_of(piece) - footer) as usize, 0);
        Ok((before, after))
    }

    /// Compares the checksums of a piece's chunks with those in the index.
    pub(super) fn compare_sums(
        &self,
        name: &str,
        piece: &PieceEntry,
        sums: &[u32],
    ) -> Result<(), Error> {
        for (chunk, computed) in sums.iter().enumerate() {
            let stored = self.index.checksum(u64::from(piece.first_chunk) + chunk as u64);
            if stored != *computed {
                let begin = chunk as u64 * u64::from(self.header.chunk_bytes);
                let place = format!("data of {name:?}, chunk {chunk} from its byte {begin} on");
                return Err(Error::checksum(&place, stored, *computed));
            }
        }
        Ok(())
    }

    /// Where the next piece or the index begins.
    fn end_of(&self, piece: &PieceEntry) -> u64 {
        let footer = piece.data_offset.saturating_add(piece.data_bytes);
        let sums = 4 * chunk_count(piece.data_bytes, self.header.chunk_bytes) + 12;
        footer.saturating_add(sums).next_multiple_of(super::format::ALIGNMENT)
    }
}

/// Checksums of a tensor's bytes as they come from elsewhere.
pub(crate) struct PieceSums(ChunkSums);

impl PieceSums {
    /// The next bytes.
    pub(crate) fn update(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Whether all bytes were those of `tensor`.
    pub(crate) fn compare(self, tensor: &Tensor) -> Result<(), Error> {
        let sums = self.0.finish();
        let same = tensor.pieces().all(|(_, piece)| {
            tensor.reader.shared.compare_sums(tensor.name(), &piece, &sums).is_ok()
        });
        if same { Ok(()) } else { Err(Error::ReadBack { name: tensor.name().to_owned() }) }
    }
}

impl Tensor {
    /// Begins summing bytes that should be this tensor's.
    pub(crate) fn sums(&self) -> PieceSums {
        PieceSums(ChunkSums::new(self.reader.chunk_bytes()))
    }
}

/// The data of one piece, chunk by chunk, each checked before it is given out.
struct PieceReader {
    reader: Reader,
    number: u32,
    piece: PieceEntry,
    next_chunk: u64,
    chunk: Vec<u8>,
    position: usize,
}

impl PieceReader {
    fn new(reader: Reader, number: u32, piece: PieceEntry) -> Self {
        Self { reader, number, piece, next_chunk: 0, chunk: Vec::new(), position: 0 }
    }

    fn fill(&mut self) -> io::Result<bool> {
        let shared = &self.reader.shared;
        let chunk_bytes = u64::from(shared.header.chunk_bytes);
        let begin = self.next_chunk * chunk_bytes;
        if begin >= self.piece.data_bytes {
            return Ok(false);
        }
        let length = (self.piece.data_bytes - begin).min(chunk_bytes);
        self.chunk.resize(length as usize, 0);
        shared.source.read_exact_at(&mut self.chunk, self.piece.data_offset + begin)?;
        let stored = shared.index.checksum(u64::from(self.piece.first_chunk) + self.next_chunk);
        let computed = checksum(&self.chunk);
        if stored != computed {
            let message = format!(
                "chunk {} of piece {} has checksum {computed:08x}, not {stored:08x}",
                self.next_chunk, self.number
            );
            self.chunk.clear();
            self.position = 0;
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        self.next_chunk += 1;
        self.position = 0;
        Ok(true)
    }
}

impl Read for PieceReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.position == self.chunk.len() && !self.fill()? {
            return Ok(0);
        }
        let count = (self.chunk.get(self.position..).unwrap_or_default()).read(out)?;
        self.position += count;
        Ok(count)
    }
}
