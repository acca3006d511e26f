//! Bytes that are loaded into memory only when they are written, so that memory never holds a whole
//! state.

use std::{io, path::Path};

use serdes::ifrt::ArraySpec;

use super::Writer;
use crate::Error;

/// Bytes of an array, or of a shard, that are not in memory before they are written: for example
/// those on a device of another library.
pub trait DeferredBytes {
    /// Returns the number of bytes.
    fn count(&self) -> u64;

    /// Loads the bytes into memory, where they stay until the result is dropped. A writer drops it
    /// before it requests the next bytes.
    ///
    /// # Errors
    /// If the bytes cannot be fetched.
    fn bytes(&self) -> io::Result<Box<dyn AsRef<[u8]> + '_>>;
}

/// Bytes that are in memory already.
impl DeferredBytes for [u8] {
    fn count(&self) -> u64 {
        self.len() as u64
    }

    fn bytes(&self) -> io::Result<Box<dyn AsRef<[u8]> + '_>> {
        Ok(Box::new(self))
    }
}

/// Returns the bytes of a tensor or of a shard, whose number must match.
pub(super) fn bytes_of<'a, B: DeferredBytes + ?Sized>(
    name: &str,
    deferred: &'a B,
) -> Result<Box<dyn AsRef<[u8]> + 'a>, Error> {
    let bytes = deferred.bytes();
    let bytes = bytes.map_err(|error| Error::io("get data of", Path::new(name), error))?;
    let (found, expected) = ((*bytes).as_ref().len() as u64, deferred.count());
    if found != expected {
        return Err(Error::SizeMismatch { name: name.to_owned(), found, expected });
    }
    Ok(bytes)
}

impl Writer {
    /// Like [`add_bytes`](Self::add_bytes), for bytes that are loaded into memory now and then
    /// released.
    ///
    /// ```
    /// use std::io;
    /// use serdes_device_state::{DeferredBytes, Reader, Versions, Writer};
    /// use serdes::ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding};
    ///
    /// /// What another program computes.
    /// struct Zeros(usize);
    ///
    /// impl DeferredBytes for Zeros {
    ///     fn count(&self) -> u64 {
    ///         self.0 as u64
    ///     }
    ///
    ///     fn bytes(&self) -> io::Result<Box<dyn AsRef<[u8]> + '_>> {
    ///         Ok(Box::new(vec![0; self.0]))
    ///     }
    /// }
    ///
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("a.sds");
    /// let spec = ArraySpec::new(DType::F32, Shape::new([2])?, SingleDeviceSharding::new(DeviceId(0)));
    /// let mut state = Writer::create(&path, Versions::current())?;
    /// state.add_deferred("bias", &spec, &Zeros(8))?;
    /// state.finish()?;
    /// assert_eq!(Reader::open(&path)?.data_bytes(), 8);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`add_bytes`](Self::add_bytes); or if the bytes cannot be loaded.
    pub fn add_deferred(
        &mut self,
        name: &str,
        spec: &ArraySpec,
        bytes: &dyn DeferredBytes,
    ) -> Result<(), Error> {
        let bytes = bytes_of(name, bytes)?;
        self.add_bytes(name, spec, (*bytes).as_ref())
    }
}
