//! Reads states: their descriptions, and their tensors into numpy arrays.

use std::path::PathBuf;

use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyBytes, PyList},
};
use serdes::ifrt::{Index, IndexDomain, Shape};
use serdes_device_state::{
    Error, HostTarget, Tensor, Verification,
    files::{ProgressMonitor, Tree},
};
use serdes_tensors::transfers::{Fit, Needs, Offer};

use crate::{
    failures,
    locations::storage,
    memory::{Readable, Writable},
    work::interruptible,
};

/// A part of a tensor: its name, the first index and the extent of each dimension, an array.
type GivenPart<'py> = (String, Vec<i64>, Vec<i64>, Bound<'py, PyAny>);

/// Maximum size in bytes of tensors that are read without a second thread, whose start would take
/// longer.
const BRIEF_BYTES: u64 = 1 << 20;

/// An open state.
#[pyclass(frozen, module = "serdes_ml._native")]
pub(crate) struct Reader {
    reader: serdes_device_state::Reader,
    path: Option<PathBuf>,
    /// True if the state is in a file system of this machine.
    is_near: bool,
}

#[pymethods]
impl Reader {
    /// Opens the state at a path.
    #[staticmethod]
    fn open(py: Python<'_>, path: PathBuf) -> PyResult<Self> {
        let opened = interruptible(py, None, 0, |monitor| storage(monitor).open_state(&path))?;
        match opened {
            Ok(reader) => {
                let is_near = storage(&ProgressMonitor::new()).is_of_system(&path);
                Ok(Self { reader, path: Some(path), is_near })
            }
            Err(error) => Err(failures::of_state(py, error, Some(&path))),
        }
    }

    /// Opens the state in the bytes of an array, which is held.
    #[staticmethod]
    fn of_bytes(py: Python<'_>, array: &Bound<'_, PyAny>) -> PyResult<Self> {
        let source = Readable::of(array)?;
        match py.detach(|| serdes_device_state::Reader::from_source(source, failures::BYTES)) {
            Ok(reader) => Ok(Self { reader, path: None, is_near: true }),
            Err(error) => Err(failures::of_state(py, error, None)),
        }
    }

    /// Returns the names of all tensors, in the order of their bytes.
    fn names(&self) -> Vec<&str> {
        self.reader.names().collect()
    }

    /// Returns the type in IFRT's words, shape and bytes of a tensor.
    fn describe(&self, py: Python<'_>, name: &str) -> PyResult<(&'static str, Vec<i64>, u64)> {
        let tensor = self.tensor(py, name)?;
        let spec = tensor.spec();
        Ok((spec.dtype().name(), spec.shape().dims().to_vec(), tensor.bytes()))
    }

    /// Returns the sharding of a tensor in words.
    fn sharding(&self, py: Python<'_>, name: &str) -> PyResult<String> {
        Ok(self.tensor(py, name)?.spec().sharding().to_string())
    }

    /// Words of the state about itself.
    fn metadata(&self) -> Vec<(String, String)> {
        self.reader.metadata().map(<[_]>::to_vec).unwrap_or_default()
    }

    /// Returns the number of bytes of all tensors.
    fn data_bytes(&self) -> u64 {
        self.reader.data_bytes()
    }

    /// Returns the IFRT SerDes version that was asked for when the state was saved.
    fn serdes_version(&self) -> i32 {
        self.reader.ifrt_version()
    }

    /// Returns the number of parts that several processes saved; 0 for a state of one file.
    fn parts(&self) -> u32 {
        self.reader.parts()
    }

    /// Reads whole tensors into arrays; answers how many bytes were read.
    #[pyo3(signature = (tensors, verify, progress))]
    fn read_into(
        &self,
        py: Python<'_>,
        tensors: Vec<(String, Bound<'_, PyAny>)>,
        verify: bool,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let found = tensors.iter().map(|(name, _)| self.tensor(py, name));
        let found = found.collect::<PyResult<Vec<_>>>()?;
        let mut memory = Writable::of(tensors.iter().map(|(_, array)| array))?;
        let targets = found.iter().zip(memory.bytes());
        let targets = targets.map(|(tensor, bytes)| HostTarget::new(tensor, bytes)).collect();
        let total = found.iter().map(Tensor::bytes).sum();
        if self.is_near && total <= BRIEF_BYTES && progress.is_none() {
            let read = py.detach(|| {
                self.reader.read_into(targets, verification(verify), &ProgressMonitor::new())
            });
            return read.map_err(|error| self.failure(py, error));
        }
        self.read(py, targets, verify, total, progress)
    }

    /// Reads parts of tensors, each a name, the first index and the extent of each dimension, into
    /// arrays; answers how many bytes were read.
    #[pyo3(signature = (parts, verify, progress))]
    fn read_parts(
        &self,
        py: Python<'_>,
        parts: Vec<GivenPart<'_>>,
        verify: bool,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let found = parts.iter().map(|(name, ..)| self.tensor(py, name));
        let found = found.collect::<PyResult<Vec<_>>>()?;
        let mut memory = Writable::of(parts.iter().map(|(.., array)| array))?;
        let mut targets = Vec::with_capacity(parts.len());
        let mut total = 0;
        for ((tensor, bytes), (_, origin, extent, _)) in
            found.iter().zip(memory.bytes()).zip(&parts)
        {
            total += bytes.len() as u64;
            let domain = domain(origin, extent)?;
            let target = HostTarget::part(tensor, &domain, bytes);
            targets.push(target.map_err(|error| self.failure(py, error))?);
        }
        self.read(py, targets, verify, total, progress)
    }

    /// Returns the elements of a tensor of strings, row by row.
    #[pyo3(signature = (name, verify))]
    fn strings<'py>(
        &self,
        py: Python<'py>,
        name: &str,
        verify: bool,
    ) -> PyResult<Bound<'py, PyList>> {
        let tensor = self.tensor(py, name)?;
        let read = |monitor: &_| self.reader.read_strings(&tensor, verification(verify), monitor);
        let strings = if self.is_near && tensor.bytes() <= BRIEF_BYTES {
            py.detach(|| read(&ProgressMonitor::new()))
        } else {
            interruptible(py, None, 0, read)?
        };
        let strings = strings.map_err(|error| self.failure(py, error))?;
        PyList::new(py, strings.iter().map(|string| PyBytes::new(py, string)))
    }

    /// Compares the needs of tensors with the bytes that devices have free, as JSON. `needed` is a
    /// device's id and its bytes, in the order of the devices; without it the tensors lie as they
    /// were saved. `on_host` are bytes that stay there besides.
    #[pyo3(signature = (names, needed, on_host, free))]
    fn fit(
        &self,
        py: Python<'_>,
        names: Vec<String>,
        needed: Option<Vec<(i32, u64)>>,
        on_host: u64,
        free: Vec<Option<u64>>,
    ) -> PyResult<String> {
        let tensors = names.iter().map(|name| self.tensor(py, name));
        let mut needs = Needs::of(&tensors.collect::<PyResult<Vec<_>>>()?);
        if let Some(needed) = needed {
            needs.devices = needed.into_iter().collect();
        }
        needs.host_bytes = needs.host_bytes.saturating_add(on_host);
        let offer = Offer { devices: free.len(), free, types: None };
        Ok(serdes_cli::objects::fit(&Fit::of(needs, offer, 0)).to_string())
    }
}

/// Names that a pattern matches.
#[pyfunction]
pub(crate) fn matching(pattern: &str, names: Vec<String>) -> Vec<String> {
    names.into_iter().filter(|name| serdes_device_state::matches_any(&[pattern], name)).collect()
}

impl Reader {
    fn tensor(&self, py: Python<'_>, name: &str) -> PyResult<Tensor> {
        self.reader.tensor(name).map_err(|error| self.failure(py, error))
    }

    fn failure(&self, py: Python<'_>, error: Error) -> PyErr {
        failures::of_state(py, error, self.path.as_deref())
    }

    fn read(
        &self,
        py: Python<'_>,
        targets: Vec<HostTarget<'_>>,
        verify: bool,
        total: u64,
        progress: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<u64> {
        let reader = &self.reader;
        let work = |monitor: &_| reader.read_into(targets, verification(verify), monitor);
        interruptible(py, progress, total, work)?.map_err(|error| self.failure(py, error))
    }
}

const fn verification(verify: bool) -> Verification {
    if verify { Verification::Checksums } else { Verification::Skipped }
}

/// Creates the index domain of a part of an array.
pub(crate) fn domain(origin: &[i64], extent: &[i64]) -> PyResult<IndexDomain> {
    let made = Shape::new(extent).and_then(|shape| IndexDomain::new(Index::new(origin), shape));
    made.map_err(|error| PyValueError::new_err(error.to_string()))
}
