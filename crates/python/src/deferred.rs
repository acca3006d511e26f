//! Bytes to save: of an existing array, or of one that Python creates when it is written, so that
//! copies of remote data need not be in memory together.

use std::io;

use pyo3::{exceptions::PyValueError, prelude::*};
use serdes::ifrt::DType;
use serdes_device_state::DeferredBytes;

use crate::{memory::Readable, raised::Raised};

/// The bytes of a whole array, or of a shard.
pub(crate) enum Bytes {
    /// An existing array.
    Here(Readable),
    /// A Python function without parameters that creates the array.
    Later {
        make: Py<PyAny>,
        count: u64,
        /// Slot for an exception of the function.
        raised: Raised,
    },
}

impl Bytes {
    /// Creates the bytes from an array or a function: `dims` elements of a type.
    pub(crate) fn of(
        given: &Bound<'_, PyAny>,
        dtype: DType,
        dims: &[i64],
        raised: &Raised,
    ) -> PyResult<Self> {
        if !given.is_callable() {
            return Readable::of(given).map(Self::Here);
        }
        let mut extents = dims.iter().map(|extent| u64::try_from(*extent).ok());
        let element = dtype.unpacked_byte_size().map(u64::from);
        let count = element.and_then(|element| {
            extents.try_fold(element, |count, extent| count.checked_mul(extent?))
        });
        let count = count.ok_or_else(|| {
            PyValueError::new_err(format!("{dtype}{dims:?} has no size in bytes"))
        })?;
        Ok(Self::Later { make: given.clone().unbind(), count, raised: raised.clone() })
    }

    /// Returns the bytes of an existing array.
    pub(crate) fn here(&self) -> Option<&[u8]> {
        match self {
            Self::Here(array) => Some(array.bytes()),
            Self::Later { .. } => None,
        }
    }
}

impl DeferredBytes for Bytes {
    fn count(&self) -> u64 {
        match self {
            Self::Here(array) => array.bytes().len() as u64,
            Self::Later { count, .. } => *count,
        }
    }

    fn bytes(&self) -> io::Result<Box<dyn AsRef<[u8]> + '_>> {
        match self {
            Self::Here(array) => Ok(Box::new(array.bytes())),
            Self::Later { make, count, raised } => match made(make, *count) {
                Ok(array) => Ok(Box::new(array)),
                Err(error) => Err(raised.keep(error)),
            },
        }
    }
}

/// Calls the function; its array must have `expected` bytes.
fn made(make: &Py<PyAny>, expected: u64) -> PyResult<Readable> {
    Python::attach(|py| {
        let array = Readable::of(&make.bind(py).call0()?)?;
        let found = array.bytes().len() as u64;
        if found == expected {
            return Ok(array);
        }
        Err(PyValueError::new_err(format!(
            "an array that was to have {expected} bytes has {found}"
        )))
    })
}
