//! An array that is read.

use std::sync::OnceLock;

use serdes_abi::pjrt::ElementType;

use super::{ArrayTransfer, MemorySpace, transfer::PIECES_FROM};
use crate::{Buffer, HostMemory, PjrtError};

/// An array on a device, with its element type, shape and memory, and the way in which it can be
/// read.
#[derive(Debug)]
pub struct Array {
    buffer: Buffer,
    space: MemorySpace,
    element_type: ElementType,
    dims: Vec<i64>,
    bytes: usize,
    /// True if the array can only be read as a whole; computed on first use.
    is_read_whole: OnceLock<bool>,
}

impl Array {
    /// Creates the array in `buffer`.
    ///
    /// # Errors
    /// As [`Buffer::element_type`], [`Buffer::dims`], [`Buffer::host_bytes`], [`Buffer::device`]
    /// and [`Buffer::memory`]: tokens and other types without data are refused.
    pub fn new(buffer: Buffer) -> Result<Self, PjrtError> {
        let space = MemorySpace::new(&buffer.device()?, buffer.memory()?)?;
        Self::in_space(buffer, &space)
    }

    /// Returns the array in a buffer in this memory.
    pub(super) fn in_space(buffer: Buffer, space: &MemorySpace) -> Result<Self, PjrtError> {
        let (element_type, dims) = (buffer.element_type()?, buffer.dims()?);
        let bytes = buffer.host_bytes()?;
        let is_read_whole = OnceLock::new();
        Ok(Self { buffer, space: space.clone(), element_type, dims, bytes, is_read_whole })
    }

    /// Returns the type of the elements.
    #[must_use]
    pub const fn element_type(&self) -> ElementType {
        self.element_type
    }

    /// Returns its dimensions.
    #[must_use]
    pub fn dims(&self) -> &[i64] {
        &self.dims
    }

    /// Returns the size on the host, in bytes.
    #[must_use]
    pub const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the memory that holds the array.
    #[must_use]
    pub const fn space(&self) -> &MemorySpace {
        &self.space
    }

    /// Returns the plug-in's buffer.
    #[must_use]
    pub const fn buffer(&self) -> &Buffer {
        &self.buffer
    }

    /// Returns the plug-in's buffer.
    #[must_use]
    pub fn into_buffer(self) -> Buffer {
        self.buffer
    }

    /// Returns true if the array can only be read as a whole.
    ///
    /// Pieces are raw bytes of the device, which equal those of the host only if the plug-in
    /// reports that the array is dense and row-major there. A short array takes one call in either
    /// case.
    #[must_use]
    pub fn is_read_whole(&self) -> bool {
        *self.is_read_whole.get_or_init(|| {
            let has_raw_bytes_of_the_host = || -> Result<bool, PjrtError> {
                let is_same = self.buffer.has_raw_reads()
                    && self.buffer.is_row_major()?
                    && self.buffer.device_bytes()? == self.bytes;
                // A plug-in may have the function and return UNIMPLEMENTED.
                Ok(is_same && self.buffer.read_raw(0, &mut [0]).is_ok())
            };
            // If a query fails, the array is read whole, which reports the error.
            self.bytes < PIECES_FROM || !has_raw_bytes_of_the_host().unwrap_or(false)
        })
    }

    /// Fills `target` with the array's bytes from `offset`, and waits for it.
    ///
    /// # Errors
    /// [`PjrtError::OutOfRange`] for bytes that are not inside the array, or a part of one that is
    /// [read whole](Self::is_read_whole); [`PjrtError::Status`] from the plug-in, for example if
    /// the buffer was deleted.
    pub fn read(&self, offset: u64, target: &mut [u8]) -> Result<(), PjrtError> {
        if offset == 0 && target.len() == self.bytes {
            return self.buffer.read_into(target);
        }
        let offset = self.start_of_piece(offset, target.len())?;
        self.buffer.read_raw(offset, target)
    }

    /// Begins to fill the first `bytes` bytes of `target` with the array's bytes from `offset`.
    ///
    /// # Errors
    /// As [`Self::read`]; [`PjrtError::InvalidArgument`] if `target` is shorter.
    pub fn begin_read(
        &self,
        offset: u64,
        bytes: usize,
        target: HostMemory,
    ) -> Result<ArrayTransfer, PjrtError> {
        let transfer = if offset == 0 && bytes == self.bytes {
            self.buffer.begin_read(target)
        } else {
            let offset = self.start_of_piece(offset, bytes)?;
            self.buffer.begin_read_raw(offset, bytes, target)
        };
        transfer.map(ArrayTransfer::under_way)
    }

    /// Returns the offset of a piece, if the array is read in pieces and contains this one.
    fn start_of_piece(&self, offset: u64, bytes: usize) -> Result<usize, PjrtError> {
        let start = usize::try_from(offset).ok();
        let end = start.and_then(|start| start.checked_add(bytes));
        match start {
            Some(start) if end.is_some_and(|end| end <= self.bytes) && !self.is_read_whole() => {
                Ok(start)
            }
            _ => Err(PjrtError::OutOfRange {
                what: "array",
                offset: offset.into(),
                bytes: bytes as u128,
                size: self.bytes as u64,
            }),
        }
    }
}
