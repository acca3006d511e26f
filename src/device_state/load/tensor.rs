//! One tensor of an open state.

use std::{
    fmt,
    io::{self, Read},
    path::Path,
    sync::OnceLock,
};

use bytes::Bytes;

use super::{
    Reader,
    assemble::Assembler,
    pieces::{PieceReader, TensorReader},
};
use crate::{
    codec::{DecodeError, FromProto},
    device_state::{
        Error,
        format::{index::PieceEntry, role::Role, u64_at},
        shards::check_tiling,
    },
    ifrt::{ArraySpec, DType, DeviceId, DeviceLookup, Reach, with_devices},
};

/// Specs name devices of the build that saved them; any number is one here.
struct AnyDevice;

impl DeviceLookup for AnyDevice {
    fn look_up(&self, _: DeviceId) -> Result<Reach, DecodeError> {
        Ok(Reach::Addressable)
    }
}

/// A spec that was read, which all tensors share whose specs are the same bytes.
pub(super) struct KnownSpec {
    pub(super) spec: ArraySpec,
    /// Length in bytes of a piece that is all of such an array; `None` for strings, and where
    /// there is no such length.
    whole_bytes: Option<u64>,
}

impl KnownSpec {
    fn new(spec: ArraySpec) -> Self {
        let elements =
            spec.shape().element_count().ok().and_then(|count| u64::try_from(count).ok());
        let whole_bytes = (spec.dtype() != DType::String)
            .then(|| elements.and_then(|elements| bytes_of(spec.dtype(), elements)))
            .flatten();
        Self { spec, whole_bytes }
    }
}

/// Length in bytes of so many elements; `None` if they have none.
fn bytes_of(dtype: DType, elements: u64) -> Option<u64> {
    dtype.unpacked_byte_size().and_then(|bytes| elements.checked_mul(bytes.into()))
}

/// From which device a piece was saved, and how long it is.
#[cfg(feature = "artifact")]
#[derive(Clone, Copy, Debug)]
pub(crate) struct PieceOfDevice {
    pub(crate) device: i32,
    pub(crate) bytes: u64,
}

/// One tensor of an open state.
#[derive(Clone)]
pub struct Tensor {
    pub(super) reader: Reader,
    pub(super) number: u32,
    pub(in crate::device_state) spec: u32,
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
        self.reader.shared.index.name(self.number)
    }

    /// What it is: element type, shape, sharding.
    pub fn spec(&self) -> &ArraySpec {
        static NONE: OnceLock<ArraySpec> = OnceLock::new();
        // Read by `check` before the tensor was handed out.
        let known = self.reader.shared.specs.get(self.spec as usize).and_then(OnceLock::get);
        known.map(|known| &known.spec).unwrap_or_else(|| {
            NONE.get_or_init(|| {
                let sharding = crate::ifrt::SingleDeviceSharding::new(DeviceId(0));
                ArraySpec::new(DType::Invalid, crate::ifrt::Shape::scalar(), sharding)
            })
        })
    }

    /// The number of its spec, which tensors share whose specs are the same bytes, and these.
    #[cfg(feature = "artifact")]
    pub(crate) fn spec_bytes(&self) -> (u32, &[u8]) {
        (self.spec, self.reader.shared.index.spec(self.spec))
    }

    /// Length of its data in bytes, all shards together.
    pub fn bytes(&self) -> u64 {
        self.pieces().map(|(_, piece)| piece.data_bytes).sum()
    }

    /// The device and the bytes of each of its pieces.
    #[cfg(feature = "artifact")]
    pub(crate) fn piece_devices(&self) -> impl Iterator<Item = PieceOfDevice> {
        let index = &self.reader.shared.index;
        self.pieces().map(|(_, piece)| PieceOfDevice {
            device: index.placement(piece.placement).map_or(0, |placement| placement.device),
            bytes: piece.data_bytes,
        })
    }

    /// Number and entry of each of its pieces.
    pub(in crate::device_state) fn pieces(&self) -> impl Iterator<Item = (u32, PieceEntry)> {
        let index = &self.reader.shared.index;
        (self.first_piece..self.first_piece.saturating_add(self.piece_count))
            .filter_map(|number| Some((number, index.piece(number)?)))
    }

    /// Reads the spec, and compares what it says with the lengths of the pieces.
    pub(super) fn check(&self) -> Result<(), Error> {
        let shared = &self.reader.shared;
        let Some(slot) = shared.specs.get(self.spec as usize) else { return Ok(()) };
        let known = match slot.get() {
            Some(known) => known,
            None => {
                let spec = decode_spec(self.name(), shared.index.spec(self.spec))?;
                slot.get_or_init(|| KnownSpec::new(spec))
            }
        };
        let spec = &known.spec;
        for (_, piece) in self.pieces() {
            let domain = shared.index.placement(piece.placement).and_then(|p| p.domain.as_ref());
            if domain.is_none() && known.whole_bytes == Some(piece.data_bytes) {
                if self.piece_count == 1 {
                    return Ok(());
                }
                continue;
            }
            check_piece(self.name(), spec, domain, piece.data_bytes)?;
        }
        // What a part has of an array need not be all of it.
        if self.is_whole() || matches!(shared.header.role, Role::Part(_)) {
            return Ok(());
        }
        let domains: Vec<_> = self
            .pieces()
            .filter_map(|(_, piece)| shared.index.placement(piece.placement))
            .map(|placement| placement.domain.clone())
            .collect();
        check_tiling(spec, &domains).map_err(|reason| {
            let place = format!("shards of {:?}", self.name());
            Error::corrupt(&place, reason, "each element in one shard".to_owned())
        })
    }

    /// The data, row-major, each chunk compared with its checksum before any of it is given out.
    /// Errors of damaged bytes are of kind [`InvalidData`](io::ErrorKind::InvalidData).
    ///
    /// Shards are put together; in memory is then one chunk of each shard that a row crosses.
    ///
    /// # Errors
    /// If the file is the [part](crate::device_state::Part) of one saver, and has not all shards.
    pub fn read(&self) -> Result<impl Read + Send + use<>, Error> {
        match self.pieces().next() {
            Some((number, piece)) if self.is_whole() => {
                Ok(TensorReader::Whole(PieceReader::new(self.reader.clone(), number, piece, 1)))
            }
            _ => {
                self.check_complete()?;
                Ok(TensorReader::Shards(Box::new(Assembler::new(self)?)))
            }
        }
    }

    /// Whether all of the array is there, which a part of a state need not have.
    pub(super) fn check_complete(&self) -> Result<(), Error> {
        if self.is_whole() || self.reader.part().is_none() {
            return Ok(());
        }
        let index = &self.reader.shared.index;
        let placements = self.pieces().filter_map(|(_, piece)| index.placement(piece.placement));
        let domains: Vec<_> = placements.map(|placement| placement.domain.clone()).collect();
        check_tiling(self.spec(), &domains).map_err(|reason| Error::shards(self.name(), reason))
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
            let end = u64_at(end, 0);
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
    ArraySpec::from_bytes(Bytes::copy_from_slice(bytes), &options)
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
        (dtype, Some(elements)) => bytes_of(dtype, elements) == Some(data_bytes),
        (_, None) => false,
    };
    if fits {
        return Ok(());
    }
    let expected = format!("what {}{} needs", spec.dtype(), spec.shape());
    Err(Error::corrupt(&place(), format!("{data_bytes} bytes"), expected))
}
