//! Writes states from numpy arrays.

use std::path::{Path, PathBuf};

use pyo3::{exceptions::PyValueError, prelude::*, types::PyBytes};
use serdes::{
    ifrt::{
        ArraySpec, DType, DeviceId, DeviceList, HloSharding, IndexDomain, MemoryKind,
        OpaqueSharding, Shape, Sharding, SingleDeviceSharding, xla::OpSharding,
    },
    version::AnyVersionAccessor,
};
use serdes_device_state::{
    DeferredBytes, Durability, Error, Part, SaveId, Shard, Versions, WriteOptions, Writer,
    files::{Tree as _, remove_leftovers_of},
};
use serdes_tensors::storage::Storage;

use crate::{
    deferred::Bytes, failures, locations::storage, memory::NewBytes, raised::Raised,
    reader::domain, work::interruptible,
};

/// A shard: the id of its device, the first index and the extent of each dimension, an array or a
/// function that creates it.
type GivenShard<'py> = (i32, Vec<i64>, Vec<i64>, Bound<'py, PyAny>);

/// A tensor from Python.
#[derive(FromPyObject)]
pub(crate) enum Given<'py> {
    /// Name, IFRT type, shape, an array or a function that creates it.
    Array(String, String, Vec<i64>, Bound<'py, PyAny>),
    /// Name, type, shape, the ids of all devices, the sharding in XLA's words where there are some,
    /// the kind of memory, the shards of this process.
    Shards(
        String,
        String,
        Vec<i64>,
        Vec<i32>,
        Option<String>,
        Option<String>,
        Vec<GivenShard<'py>>,
    ),
}

/// Contents of a tensor for a state.
enum Contents {
    Numbers(Bytes),
    Strings(Vec<Vec<u8>>),
    Shards(Vec<(DeviceId, IndexDomain, Bytes)>),
}

/// A tensor that is ready for writing.
struct Prepared {
    name: String,
    spec: ArraySpec,
    contents: Contents,
}

impl Prepared {
    fn bytes(&self) -> u64 {
        match &self.contents {
            Contents::Numbers(bytes) => bytes.count(),
            Contents::Strings(strings) => strings.iter().map(|one| one.len() as u64 + 8).sum(),
            Contents::Shards(shards) => shards.iter().map(|(.., bytes)| bytes.count()).sum(),
        }
    }

    fn of(given: Given<'_>, raised: &Raised) -> PyResult<Self> {
        match given {
            Given::Array(name, dtype, dims, array) => {
                let sharding = SingleDeviceSharding::new(DeviceId(0));
                let spec = spec_of(&dtype, &dims, sharding)?;
                let contents = if spec.dtype() == DType::String {
                    Contents::Strings(array.extract()?)
                } else {
                    Contents::Numbers(Bytes::of(&array, spec.dtype(), &dims, raised)?)
                };
                Ok(Self { name, spec, contents })
            }
            Given::Shards(name, dtype, dims, devices, words, kind, shards) => {
                let sharding = sharding_of(&devices, words.as_deref(), kind)?;
                let spec = spec_of(&dtype, &dims, sharding)?;
                let shards = shards.into_iter().map(|(device, origin, extent, array)| {
                    let domain = domain(&origin, &extent)?;
                    let bytes = Bytes::of(&array, spec.dtype(), &extent, raised)?;
                    Ok((DeviceId(device), domain, bytes))
                });
                let contents = Contents::Shards(shards.collect::<PyResult<_>>()?);
                Ok(Self { name, spec, contents })
            }
        }
    }

    fn write(&self, writer: &mut Writer) -> Result<(), Error> {
        match &self.contents {
            Contents::Numbers(bytes) => writer.add_deferred(&self.name, &self.spec, bytes),
            Contents::Strings(strings) => writer.add_strings(&self.name, &self.spec, strings),
            Contents::Shards(shards) => {
                let here = shards.iter().map(|(device, domain, bytes)| {
                    Some(Shard::new(*device, bytes.here()?).at(domain.clone()))
                });
                if let Some(here) = here.collect::<Option<Vec<_>>>() {
                    return writer.add_sharded_bytes(&self.name, &self.spec, &here);
                }
                let shards = shards.iter().map(|(device, domain, bytes)| {
                    Shard::new(*device, bytes as &dyn DeferredBytes).at(domain.clone())
                });
                let shards: Vec<_> = shards.collect();
                writer.add_sharded_deferred(&self.name, &self.spec, &shards)
            }
        }
    }
}

pub(crate) fn spec_of(
    dtype: &str,
    dims: &[i64],
    sharding: impl Into<Sharding>,
) -> PyResult<ArraySpec> {
    let wrong = |error: &dyn std::fmt::Display| PyValueError::new_err(error.to_string());
    let dtype: DType = dtype.parse().map_err(|error| wrong(&error))?;
    let shape = Shape::new(dims).map_err(|error| wrong(&error))?;
    Ok(ArraySpec::new(dtype, shape, sharding))
}

/// Returns the sharding in XLA's words; where there are none, or none that this build knows, one
/// that only names the devices: the shards say what they hold.
pub(crate) fn sharding_of(
    devices: &[i32],
    words: Option<&str>,
    kind: Option<String>,
) -> PyResult<Sharding> {
    let devices = DeviceList::from_iter(devices.iter().copied().map(DeviceId));
    let kind = kind.map_or_else(MemoryKind::unset, MemoryKind::new);
    let known = words
        .and_then(|words| words.parse::<OpSharding>().ok())
        .and_then(|sharding| HloSharding::new(devices.clone(), kind.clone(), sharding).ok());
    Ok(match known {
        Some(sharding) => sharding.into(),
        None => OpaqueSharding::new(devices, kind).into(),
    })
}

/// A version from Python.
#[derive(FromPyObject)]
pub(crate) enum GivenVersion {
    /// An IFRT SerDes version; the container has the version that builds of that number's day read.
    Number(i32),
    /// A name for versions of both lines.
    Word(String),
}

impl GivenVersion {
    /// Returns the versions of both lines.
    pub(crate) fn versions(&self) -> PyResult<Versions> {
        match self {
            Self::Number(number) => {
                let specs = AnyVersionAccessor::get(*number)
                    .map_err(|error| PyValueError::new_err(error.to_string()))?;
                Ok(Versions::for_reader_of(specs))
            }
            Self::Word(word) => match &**word {
                "current" => Ok(Versions::current()),
                "week-4-old" | "week_4_old" => Ok(Versions::week_4_old()),
                "minimum" => Ok(Versions::minimum()),
                _ => Err(PyValueError::new_err(format!(
                    "serdes_version {word:?}: expected \"current\", \"week-4-old\", \"minimum\" or a number"
                ))),
            },
        }
    }
}

fn options(
    metadata: Option<Vec<(String, String)>>,
    version: &GivenVersion,
    sync: bool,
) -> PyResult<WriteOptions> {
    let durability = if sync { Durability::Data } else { Durability::None };
    let options = WriteOptions::new(version.versions()?);
    Ok(options.with_metadata(metadata).with_durability(durability))
}

/// Writes a state: to a path, as the part `(id, number, count)` of the state at a path, or where
/// there is no path into bytes, which it answers.
#[pyfunction]
#[pyo3(signature = (path, tensors, metadata, version, sync, part, progress))]
#[expect(clippy::too_many_arguments, reason = "they are those of a function of Python")]
pub(crate) fn save<'py>(
    py: Python<'py>,
    path: Option<PathBuf>,
    tensors: Vec<Given<'py>>,
    metadata: Option<Vec<(String, String)>>,
    version: GivenVersion,
    sync: bool,
    part: Option<([u8; 16], u32, u32)>,
    progress: Option<&Bound<'py, PyAny>>,
) -> PyResult<Option<Bound<'py, PyBytes>>> {
    let options = options(metadata, &version, sync)?;
    let raised = Raised::default();
    let tensors = tensors.into_iter().map(|given| Prepared::of(given, &raised));
    let tensors = tensors.collect::<PyResult<Vec<_>>>()?;
    let total = tensors.iter().map(Prepared::bytes).sum();
    let failed = |error: Error| failures::of_state(py, error, path.as_deref());
    let target = match (path.as_deref(), part) {
        (None, _) => {
            let parts = tensors.iter().map(|one| (&*one.name, &one.spec, one.bytes()));
            let length = options.clone().length_of(parts).map_err(failed)?;
            Target::Bytes(NewBytes::new(py, usize::try_from(length)?)?)
        }
        (Some(path), None) => Target::File(path),
        (Some(path), Some((id, number, count))) => {
            Target::Part(path, Part::new(SaveId::new(id), number, count).map_err(failed)?)
        }
    };
    let saved = interruptible(py, progress, total, |monitor| -> Result<(), Error> {
        let mut writer = target.begin(&storage(monitor), options.with_monitor(monitor.clone()))?;
        for tensor in &tensors {
            tensor.write(&mut writer)?;
        }
        writer.finish().map(drop)
    })?;
    saved.map_err(|error| raised.take().unwrap_or_else(|| failed(error)))?;
    match target {
        Target::Bytes(bytes) => bytes.into_object(py).map(Some),
        Target::File(_) | Target::Part(..) => Ok(None),
    }
}

/// Destination of a state.
enum Target<'a> {
    File(&'a Path),
    Part(&'a Path, Part),
    /// A `bytes` object.
    Bytes(NewBytes),
}

impl Target<'_> {
    fn begin(&self, storage: &Storage, options: WriteOptions) -> Result<Writer, Error> {
        match self {
            Self::File(path) => storage.create_state(path, options),
            Self::Part(path, part) => storage.create_part(path, *part, options),
            Self::Bytes(bytes) => options.stream(bytes.clone()),
        }
    }
}

/// Makes a state at a path of the parts of a save, all of which are there.
#[pyfunction]
#[pyo3(signature = (path, id, metadata, version, sync))]
pub(crate) fn merge(
    py: Python<'_>,
    path: PathBuf,
    id: [u8; 16],
    metadata: Option<Vec<(String, String)>>,
    version: GivenVersion,
    sync: bool,
) -> PyResult<()> {
    let options = options(metadata, &version, sync)?;
    let merged = interruptible(py, None, 0, |monitor| {
        storage(monitor).merge(&path, SaveId::new(id), &options.with_monitor(monitor.clone()))
    })?;
    merged.map(drop).map_err(|error| failures::of_state(py, error, Some(&path)))
}

/// Removes the parts of a save that failed, unless another process still writes one of them.
#[pyfunction]
pub(crate) fn discard(py: Python<'_>, path: PathBuf, id: [u8; 16]) -> PyResult<()> {
    interruptible(py, None, 0, |monitor| storage(monitor).discard(&path, SaveId::new(id)))
}

/// Removes the state at a path, then its parts, and what dead savers have left of it.
#[pyfunction]
pub(crate) fn remove_state(py: Python<'_>, path: PathBuf) -> PyResult<()> {
    let removed = interruptible(py, None, 0, |monitor| {
        let storage = storage(monitor);
        let removed = storage.remove_state(&path);
        if storage.is_of_system(&path) {
            remove_leftovers_of(&path);
        }
        removed
    })?;
    removed.map_err(|error| failures::of_state(py, error, Some(&path)))
}

/// Returns the id of a new save of several processes.
#[pyfunction]
pub(crate) fn new_save_id(py: Python<'_>) -> Bound<'_, PyBytes> {
    PyBytes::new(py, &serdes_device_state::SaveId::random().bytes())
}
