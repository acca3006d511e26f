//! An array that is read.

use super::MemorySpace;
use crate::pjrt::{Buffer, ElementType, PjrtError};

/// An array on a device, of which is known what it is made of.
#[derive(Debug)]
pub struct Array {
    buffer: Buffer,
    space: MemorySpace,
    element_type: ElementType,
    dims: Vec<i64>,
    bytes: usize,
}

impl Array {
    /// The array in `buffer`, which lies in `space`.
    ///
    /// # Errors
    /// As [`Buffer::element_type`], [`Buffer::dims`] and [`Buffer::host_bytes`]: tokens and what
    /// else has no data is refused.
    pub fn new(buffer: Buffer, space: &MemorySpace) -> Result<Self, PjrtError> {
        let (element_type, dims) = (buffer.element_type()?, buffer.dims()?);
        let bytes = buffer.host_bytes()?;
        Ok(Self { buffer, space: space.clone(), element_type, dims, bytes })
    }

    /// What it is made of.
    #[must_use]
    pub const fn element_type(&self) -> ElementType {
        self.element_type
    }

    /// Its dimensions.
    #[must_use]
    pub fn dims(&self) -> &[i64] {
        &self.dims
    }

    /// Its length on the host, in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Where it lies.
    #[must_use]
    pub const fn space(&self) -> &MemorySpace {
        &self.space
    }

    /// The plug-in's buffer.
    #[must_use]
    pub const fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// The plug-in's buffer, for whoever wants nothing else.
    #[must_use]
    pub fn into_buffer(self) -> Buffer {
        self.buffer
    }

    /// Whether it is read as a whole or not at all.
    #[must_use]
    pub const fn is_read_whole(&self) -> bool {
        true
    }

    /// Fills `target` with its bytes from `offset` on, and waits for it.
    ///
    /// # Errors
    /// [`PjrtError::OutOfRange`] for bytes that are not inside the array, or a part of one that is
    /// [read whole](Self::is_read_whole); [`PjrtError::Status`] as the plug-in's, such as that the
    /// buffer was deleted.
    pub fn read(&self, offset: u64, target: &mut [u8]) -> Result<(), PjrtError> {
        if offset == 0 && target.len() == self.bytes {
            return self.buffer.read_into(target);
        }
        Err(self.outside(offset, target.len()))
    }

    fn outside(&self, offset: u64, bytes: usize) -> PjrtError {
        PjrtError::OutOfRange {
            what: "array",
            offset: offset.into(),
            bytes: bytes as u128,
            size: self.bytes as u64,
        }
    }
}
