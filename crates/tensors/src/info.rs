//! Descriptions of tensors, available before their bytes are read.

use serdes::ifrt::{DType, Shape};

use super::Error;

/// Key-value metadata of a file, in its order; `None` if its format has no metadata.
pub type Metadata = Option<Vec<(String, String)>>;

/// Description of a tensor, available before its bytes are read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct TensorInfo {
    /// Name, unique in its file.
    pub name: String,
    /// Type of the elements.
    pub dtype: DType,
    /// Extents, in elements.
    pub shape: Shape,
    /// Length of the tensor's bytes in a device state; for strings, of their text if the file gives
    /// it, else 0.
    pub bytes: u64,
}

impl TensorInfo {
    /// Creates the description of a tensor with elements of a fixed size.
    ///
    /// # Errors
    /// [`Error::Refused`] if elements of the type have no fixed size, or all of them exceed 2^63
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

    /// Returns the number of elements.
    pub fn elements(&self) -> u64 {
        self.shape.element_count().ok().and_then(|count| u64::try_from(count).ok()).unwrap_or(0)
    }
}

/// Returns the number of bytes of one element in a device state: 1 for types narrower than a byte;
/// `None` for types without elements of a fixed size.
pub fn element_bytes(dtype: DType) -> Option<u64> {
    dtype.unpacked_byte_size().map(u64::from)
}
