//! Access to the memory of numpy arrays, without copies.
//!
//! The only module of the crate that uses addresses. It requires arrays to be exactly
//! `numpy.ndarray`, whose attributes describe its memory correctly; a subclass or another type
//! could return anything.

#![expect(unsafe_code, reason = "memory of Python is reached by its address")]

use std::{
    io::{self, Write},
    ptr, slice,
    sync::{Arc, Mutex, PoisonError},
};

use pyo3::{
    exceptions::{PyRuntimeError, PyTypeError, PyValueError},
    ffi,
    prelude::*,
    sync::PyOnceLock,
    types::{PyBytes, PyType},
};
use serdes_device_state::files::ReadAt;

/// Address of an array. The array is referenced, so that its memory stays valid: numpy frees it
/// with the array, and moves it only on `resize(refcheck=False)`, whose caller guarantees that
/// there is no other reference.
struct Location {
    _array: Py<PyAny>,
    address: usize,
    bytes: usize,
}

impl Location {
    /// Returns the address of a contiguous array of numbers.
    fn of(array: &Bound<'_, PyAny>, written: bool) -> PyResult<Self> {
        static NDARRAY: PyOnceLock<Py<PyType>> = PyOnceLock::new();
        let py = array.py();
        let ndarray = NDARRAY.import(py, "numpy", "ndarray")?;
        if !array.get_type().is(ndarray) {
            let found = array.get_type().name()?;
            return Err(PyTypeError::new_err(format!("expected a numpy.ndarray, found {found}")));
        }
        let dtype = array.getattr("dtype")?;
        let kind: String = dtype.getattr("kind")?.extract()?;
        if dtype.getattr("hasobject")?.extract()? || matches!(&*kind, "O" | "T") {
            return Err(PyTypeError::new_err("an array of objects has no bytes of its own"));
        }
        if !array.getattr("flags")?.getattr("c_contiguous")?.extract::<bool>()? {
            return Err(PyValueError::new_err("the array is not contiguous"));
        }
        let interface = array.getattr("__array_interface__")?;
        let (address, read_only): (usize, bool) = interface.get_item("data")?.extract()?;
        if written && read_only {
            return Err(PyValueError::new_err("the array cannot be written to"));
        }
        let bytes = array.getattr("nbytes")?.extract()?;
        Ok(Self { _array: array.clone().unbind(), address, bytes })
    }
}

/// The bytes of an array that is read. The Python caller guarantees that they are not written
/// meanwhile, as with every numpy function that releases the lock.
pub(crate) struct Readable(Location);

impl Readable {
    /// Wraps a contiguous array of numbers.
    pub(crate) fn of(array: &Bound<'_, PyAny>) -> PyResult<Self> {
        Location::of(array, false).map(Self)
    }

    /// Returns the bytes in row-major order.
    pub(crate) fn bytes(&self) -> &[u8] {
        if self.0.bytes == 0 {
            return &[];
        }
        // SAFETY: an exact `numpy.ndarray` that is contiguous has `nbytes` bytes at the address in
        // its interface. It is referenced as long as `self`, so the memory is valid for the life of
        // the slice; its elements are plain numbers, so any byte is valid; and by the guarantee
        // above it is not written.
        unsafe { slice::from_raw_parts(self.0.address as *const u8, self.0.bytes) }
    }
}

impl AsRef<[u8]> for Readable {
    fn as_ref(&self) -> &[u8] {
        self.bytes()
    }
}

impl ReadAt for Readable {
    fn size(&self) -> io::Result<u64> {
        self.bytes().size()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.bytes().read_at(buffer, offset)
    }
}

/// The bytes of arrays that are filled, which do not overlap. The Python caller guarantees that
/// they have no other user meanwhile.
pub(crate) struct Writable(Vec<Location>);

impl Writable {
    /// Wraps contiguous arrays of numbers.
    pub(crate) fn of<'py>(
        arrays: impl IntoIterator<Item = &'py Bound<'py, PyAny>>,
    ) -> PyResult<Self> {
        let locations: Vec<_> =
            arrays.into_iter().map(|array| Location::of(array, true)).collect::<PyResult<_>>()?;
        let mut ranges: Vec<_> = locations
            .iter()
            .filter(|place| place.bytes > 0)
            .map(|place| (place.address, place.address.saturating_add(place.bytes)))
            .collect();
        ranges.sort_unstable();
        let overlap = ranges.iter().zip(ranges.iter().skip(1)).any(|(one, next)| next.0 < one.1);
        if overlap {
            return Err(PyValueError::new_err("two of the arrays share memory"));
        }
        Ok(Self(locations))
    }

    /// Returns the bytes of each array, in the order given.
    pub(crate) fn bytes(&mut self) -> Vec<&mut [u8]> {
        let slice = |place: &mut Location| -> &mut [u8] {
            if place.bytes == 0 {
                return &mut [];
            }
            // SAFETY: as in `Readable::bytes`; the array is writable, none of the others overlaps
            // it, and `self` is borrowed exclusively for the life of the slice.
            unsafe { slice::from_raw_parts_mut(place.address as *mut u8, place.bytes) }
        };
        self.0.iter_mut().map(slice).collect()
    }
}

/// A new `bytes` object that is written sequentially. Clones continue at the same position. Python
/// gets it only when it is complete, so that unwritten bytes are never read.
#[derive(Clone)]
pub(crate) struct NewBytes {
    object: Arc<Py<PyBytes>>,
    rest: Arc<Mutex<Unwritten>>,
}

/// Address of the next byte, and the number of remaining bytes.
struct Unwritten {
    address: usize,
    left: usize,
}

impl NewBytes {
    /// Allocates an object of `bytes` bytes.
    pub(crate) fn new(py: Python<'_>, bytes: usize) -> PyResult<Self> {
        let length = ffi::Py_ssize_t::try_from(bytes)?;
        // SAFETY: without bytes to copy Python returns a new object with space for `length` of
        // them, which its creator may write until another owner gets it, or null with an exception
        // set.
        let object = unsafe {
            let made = ffi::PyBytes_FromStringAndSize(ptr::null(), length);
            Bound::from_owned_ptr_or_err(py, made)?
        };
        // SAFETY: it is a `bytes` object, as stated above.
        let address = unsafe { ffi::PyBytes_AsString(object.as_ptr()) }.expose_provenance();
        let object = Arc::new(object.cast_into::<PyBytes>()?.unbind());
        Ok(Self { object, rest: Arc::new(Mutex::new(Unwritten { address, left: bytes })) })
    }

    /// Returns the complete object.
    pub(crate) fn into_object<'py>(self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
        let left = self.rest.lock().unwrap_or_else(PoisonError::into_inner).left;
        if left > 0 {
            let message = format!("a state is {left} bytes shorter than it was to be");
            return Err(PyRuntimeError::new_err(message));
        }
        Ok(self.object.bind(py).clone())
    }
}

impl Write for NewBytes {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut rest = self.rest.lock().unwrap_or_else(PoisonError::into_inner);
        let count = bytes.len().min(rest.left);
        // SAFETY: the object has `left` bytes from `address`, and lives as long as `self`. There is
        // no other user, the lock is held, and `bytes` belong to another object, so they do not
        // overlap.
        unsafe { ptr::copy_nonoverlapping(bytes.as_ptr(), rest.address as *mut u8, count) };
        rest.address += count;
        rest.left -= count;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
