//! Converts tensors to a state or another file: from files that the library reads, and from arrays
//! that Python reads piece by piece.

use std::{
    io::{self, Read},
    path::PathBuf,
};

use pyo3::{exceptions::PyValueError, prelude::*, types::PyIterator};
use serdes::ifrt::{DType, Shape};
use serdes_device_state::{Durability, WriteOptions};
use serdes_tensors::{
    self as tensor_io, Error, Listing, Refused, Source, TensorInfo,
    storage::Storage,
    transfers::{self, ConvertOptions},
};

use crate::{
    failures, locations::storage, memory::Readable, raised::Raised, work::interruptible,
    writer::GivenVersion,
};

/// Name, IFRT type and shape of a tensor.
type GivenInfo = (String, String, Vec<i64>);

/// Names with descriptions.
type Words = Vec<(String, String)>;

/// A source of tensors from Python.
#[derive(FromPyObject)]
pub(crate) enum GivenSource<'py> {
    /// A file.
    Path(PathBuf),
    /// Arrays in memory: name of the source; tensors; metadata; values that are left out, with
    /// reasons; function that returns, for the position of a tensor, consecutive arrays of its
    /// bytes.
    Arrays(String, Vec<GivenInfo>, Words, Words, Bound<'py, PyAny>),
}

/// A source, or its location.
enum Prepared {
    Path(PathBuf),
    Arrays(Box<Arrays>),
}

/// Arrays that Python reads.
struct Arrays {
    name: String,
    listing: Listing,
    pieces: Py<PyAny>,
    raised: Raised,
}

impl Prepared {
    fn of(given: GivenSource<'_>, raised: &Raised) -> PyResult<Self> {
        let (name, infos, metadata, refused, pieces) = match given {
            GivenSource::Path(path) => return Ok(Self::Path(path)),
            GivenSource::Arrays(name, infos, metadata, refused, pieces) => {
                (name, infos, metadata, refused, pieces)
            }
        };
        let wrong = |error: &dyn std::fmt::Display| PyValueError::new_err(error.to_string());
        let tensors = infos.into_iter().map(|(name, dtype, dims)| {
            let dtype: DType = dtype.parse().map_err(|error| wrong(&error))?;
            let shape = Shape::new(dims).map_err(|error| wrong(&error))?;
            TensorInfo::new(name, dtype, shape).map_err(|error| wrong(&error))
        });
        let mut listing = Listing::new(tensors.collect::<PyResult<_>>()?);
        listing.metadata = (!metadata.is_empty()).then_some(metadata);
        listing.refused =
            refused.into_iter().map(|(name, reason)| Refused::new(name, reason)).collect();
        Ok(Self::Arrays(Box::new(Arrays {
            name,
            listing,
            pieces: pieces.unbind(),
            raised: raised.clone(),
        })))
    }

    fn open(self, storage: &Storage) -> Result<Box<dyn Source>, Error> {
        match self {
            Self::Path(path) => tensor_io::open_in(storage, path),
            Self::Arrays(arrays) => Ok(arrays),
        }
    }
}

impl Source for Arrays {
    fn kind(&self) -> &'static str {
        "arrays"
    }

    fn listing(&self) -> &Listing {
        &self.listing
    }

    fn read(&self, position: usize) -> Result<Box<dyn Read + Send + '_>, Error> {
        let pieces = Python::attach(|py| {
            let pieces = self.pieces.bind(py).call1((position,))?;
            Ok::<_, PyErr>(pieces.try_iter()?.unbind())
        });
        let pieces = pieces.map_err(|error| {
            let name = self.listing.tensors.get(position).map_or(&self.name, |info| &info.name);
            Error::of_data(name, self.raised.keep(error))
        })?;
        Ok(Box::new(Pieces { pieces, piece: None, taken: 0, raised: self.raised.clone() }))
    }
}

/// Reader of consecutive arrays, each released before the next is requested.
struct Pieces {
    pieces: Py<PyIterator>,
    piece: Option<Readable>,
    taken: usize,
    raised: Raised,
}

impl Pieces {
    fn next(&mut self) -> io::Result<bool> {
        self.taken = 0;
        self.piece = None;
        let found = Python::attach(|py| {
            let next = self.pieces.bind(py).clone().next();
            next.map(|array| Readable::of(&array?)).transpose()
        });
        self.piece = found.map_err(|error| self.raised.keep(error))?;
        Ok(self.piece.is_some())
    }
}

impl Read for Pieces {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        loop {
            let rest = self.piece.as_ref().and_then(|piece| piece.bytes().get(self.taken..));
            match rest {
                Some(mut rest) if !rest.is_empty() => {
                    let count = rest.read(out)?;
                    self.taken += count;
                    return Ok(count);
                }
                _ => {
                    if !self.next()? {
                        return Ok(0);
                    }
                }
            }
        }
    }
}

/// Reads the tensors of sources and writes them to a path; answers how many there are, their bytes,
/// what was left out, and what was not kept with what was read, each with why.
#[pyfunction]
#[pyo3(signature = (sources, target, only, shard_bytes, version, sync, skip_unsupported, progress))]
#[expect(clippy::too_many_arguments, reason = "they are those of a function of Python")]
pub(crate) fn convert(
    py: Python<'_>,
    sources: Vec<GivenSource<'_>>,
    target: PathBuf,
    only: Vec<String>,
    shard_bytes: Option<u64>,
    version: GivenVersion,
    sync: bool,
    skip_unsupported: bool,
    progress: Option<&Bound<'_, PyAny>>,
) -> PyResult<(u64, u64, Words, Words)> {
    let durability = if sync { Durability::Data } else { Durability::None };
    let options = WriteOptions::new(version.versions()?).with_durability(durability);
    let choice = ConvertOptions::new().with_only(only).with_skip_unsupported(skip_unsupported);
    let raised = Raised::default();
    let sources = sources.into_iter().map(|given| Prepared::of(given, &raised));
    let sources = sources.collect::<PyResult<Vec<_>>>()?;
    let converted = interruptible(py, progress, 0, |monitor| {
        let storage = storage(monitor);
        let sources = sources.into_iter().map(|source| source.open(&storage));
        let sources = sources.collect::<Result<Vec<_>, _>>()?;
        let options = options.with_monitor(monitor.clone());
        let target = match shard_bytes {
            Some(bytes) => tensor_io::create_sharded_in(&storage, &target, bytes, &options)?,
            None => tensor_io::create_in(&storage, &target, &options)?,
        };
        transfers::convert(&sources, target, &choice, monitor)
    })?;
    match (converted, raised.take()) {
        (Ok(report), _) => {
            let words = |refused: Vec<Refused>| -> Words {
                refused.into_iter().map(|refused| (refused.name, refused.reason)).collect()
            };
            let (skipped, left_out) = (words(report.skipped), words(report.left_out));
            Ok((report.moved.tensors, report.moved.bytes, skipped, left_out))
        }
        (Err(_), Some(error)) => Err(error),
        (Err(error), None) => Err(failures::of_tensors(py, error)),
    }
}
