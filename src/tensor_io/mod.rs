//! Files of tensors as streams: safetensors, npy and npz, TensorFlow V2 checkpoints, device states.
//!
//! A [`Source`] lists its tensors and gives the bytes of one at a time; a [`Target`] takes them the
//! same way. Neither ever holds a whole tensor. The bytes between the two are always those of a
//! device state: dense, row-major, little endian, elements narrower than a byte in a byte each.
//!
//! This room must never know a device or judge an artifact.

#[cfg(feature = "artifact")]
mod bundle;
mod diff;
mod elements;
mod error;
mod form;
mod json;
mod npy;
#[cfg(feature = "npz")]
mod npz;
mod number;
mod output;
mod safetensors;
mod section;
mod state;
#[cfg(test)]
mod tests;
mod transfer;

use std::{io::Read, time::Duration};

pub use diff::{Comparison, Difference, diff};
pub use error::Error;
pub use form::{Form, create, create_stream, open, open_at, open_stream};
pub use number::Tolerance;
use output::Output;
pub use transfer::{RestoreReport, SaveReport, restore, save, save_stream};

use crate::ifrt::{DType, Shape};

/// Words of a file about itself, in its order; `None` if it has no place for them.
pub type Metadata = Option<Vec<(String, String)>>;

/// What is known of a tensor before its bytes are read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TensorInfo {
    /// Name, unique in its file.
    pub name: String,
    /// Type of the elements.
    pub dtype: DType,
    /// Extents, in elements.
    pub shape: Shape,
    /// Length of the tensor's bytes in a device state; for strings, of their text alone where the
    /// file says it, else 0.
    pub bytes: u64,
}

impl TensorInfo {
    /// The description of a tensor whose elements have bytes.
    ///
    /// # Errors
    /// [`Error::Refused`] if elements of the type have no size, or all of them have more than 2^63
    /// bytes.
    pub fn new(name: impl Into<String>, dtype: DType, shape: Shape) -> Result<Self, Error> {
        let name = name.into();
        let bytes = shape
            .element_count()
            .ok()
            .and_then(|count| u64::try_from(count).ok())
            .zip(element_bytes(dtype))
            .and_then(|(count, size)| count.checked_mul(size))
            .filter(|bytes| i64::try_from(*bytes).is_ok());
        match bytes {
            Some(bytes) => Ok(Self { name, dtype, shape, bytes }),
            None if dtype == DType::String => Ok(Self { name, dtype, shape, bytes: 0 }),
            None => Err(Error::refused(&name, format!("{dtype}{shape} has no size in bytes"))),
        }
    }

    /// Number of elements.
    pub fn elements(&self) -> u64 {
        self.shape.element_count().ok().and_then(|count| u64::try_from(count).ok()).unwrap_or(0)
    }
}

/// Bytes of one element in a device state: 1 for types narrower than a byte; `None` for types
/// without elements of a fixed size.
pub fn element_bytes(dtype: DType) -> Option<u64> {
    dtype.unpacked_byte_size().map(u64::from)
}

/// A tensor of a source that no device state can hold.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Refused {
    /// Its name.
    pub name: String,
    /// Why, with the type as the file calls it.
    pub reason: String,
}

/// A file that tensors are read from.
pub trait Source: Send {
    /// What kind of file it is, in the words of the command.
    fn kind(&self) -> &'static str;

    /// The tensors, in the order in which the file holds their data.
    fn tensors(&self) -> &[TensorInfo];

    /// Tensors that are in the file and cannot be read from it: none, unless the kind of file says otherwise.
    fn refused(&self) -> &[Refused] {
        &[]
    }

    /// Words of the file about itself: none, unless the kind of file has room for them.
    fn metadata(&self) -> &Metadata {
        &None
    }

    /// The bytes of the tensor at a position in [`tensors`](Self::tensors), not for strings.
    ///
    /// # Errors
    /// If the file cannot be read. The reader answers errors of kind
    /// [`InvalidData`](std::io::ErrorKind::InvalidData) for damaged bytes.
    fn read(&self, position: usize) -> Result<Box<dyn Read + Send + '_>, Error>;

    /// The elements of the string tensor at a position, in row-major order. Unless the kind of file says otherwise, it holds none.
    ///
    /// # Errors
    /// If the tensor does not hold strings, or cannot be read.
    fn strings(&self, position: usize) -> Result<Vec<Vec<u8>>, Error> {
        let name = self.tensors().get(position).map_or("", |info| &info.name);
        Err(Error::refused(name, format!("a file of the kind {} holds no strings", self.kind())))
    }

    /// Compares the length of the file with what tensors take that cannot be read from it, where the file tells that.
    ///
    /// # Errors
    /// If the file is shorter or longer.
    fn compare_size(&self) -> Result<(), Error> {
        Ok(())
    }

    /// Reads whatever the file has checksums for, whether its elements can be moved or not, and answers what differs; `go_on` hears of
    /// bytes that were read, and may end the work. Nothing, unless the kind of file has checksums.
    fn compare_checksums(&self, _go_on: &mut dyn FnMut(u64) -> bool) -> Vec<Error> {
        Vec::new()
    }
}

/// A file that tensors are written to; it appears when it is finished, or not at all.
///
/// [`begin`](Self::begin), then for each tensor, in the order that `begin` answered,
/// [`write`](Self::write) or [`write_strings`](Self::write_strings), then [`finish`](Self::finish).
pub trait Target: Send {
    /// Takes note of all tensors, and answers the order in which their bytes must come.
    ///
    /// # Errors
    /// [`Error::Refused`] if the kind of file cannot hold one of them; or the system's error.
    fn begin(&mut self, tensors: &[TensorInfo], metadata: &Metadata) -> Result<Vec<usize>, Error>;

    /// Writes the tensor at `position` in the list given to `begin`, reading as many bytes of
    /// `data` as it has.
    ///
    /// # Errors
    /// If `data` fails or ends early, or the file cannot be written.
    fn write(&mut self, position: usize, data: &mut dyn Read) -> Result<(), Error>;

    /// Writes the string tensor at `position`: all its elements, in row-major order.
    ///
    /// # Errors
    /// If the file cannot hold strings or cannot be written.
    fn write_strings(&mut self, position: usize, strings: &[Vec<u8>]) -> Result<(), Error>;

    /// Gives the file its name; answers how long syncing and renaming took.
    ///
    /// # Errors
    /// If the file cannot be written.
    fn finish(self: Box<Self>) -> Result<Duration, Error>;
}

/// Bytes that are moved at a time.
const STEP_BYTES: u64 = 1 << 20;

/// Hands exactly `count` bytes of `data` on to `put`, a step at a time.
fn pass_on(
    name: &str,
    data: &mut dyn Read,
    mut count: u64,
    mut put: impl FnMut(&[u8]) -> Result<(), Error>,
) -> Result<(), Error> {
    let mut step = vec![0; count.min(STEP_BYTES) as usize];
    while count > 0 {
        let part = step.get_mut(..count.min(STEP_BYTES) as usize).unwrap_or_default();
        data.read_exact(part).map_err(|source| Error::Data { name: name.to_owned(), source })?;
        put(part)?;
        count -= part.len() as u64;
    }
    Ok(())
}
