//! Host memory for reading and writing files.

#![expect(
    clippy::indexing_slicing,
    reason = "constructors compare lengths once: what counts is no longer than the buffer"
)]

use std::ops::{Deref, DerefMut};

use serdes_stream_executor::HostMemory;

use crate::Error;

/// Size in bytes of one buffer between a device and a file.
pub(crate) const BUFFER_BYTES: usize = 1 << 20;

/// Returns the capacity in bytes of a buffer for `position` of the file: such that the next buffer
/// begins at a multiple of [`BUFFER_BYTES`], so that the system's page cache takes its bytes in one
/// large folio instead of ten of growing sizes.
pub(crate) fn capacity_at(position: u64) -> usize {
    BUFFER_BYTES - (position % BUFFER_BYTES as u64) as usize
}

/// Host memory of a fixed length, of any kind that a copy may need.
#[derive(Debug)]
pub enum Buffer {
    /// Memory of this process.
    Pageable(Vec<u8>),
    /// Memory that asynchronous copies of a StreamExecutor device can use.
    Pinned(HostMemory),
    /// Memory that transfers of a PJRT client can use.
    Transferable(serdes_pjrt::HostMemory),
}

impl Buffer {
    /// Allocates [`BUFFER_BYTES`] of memory of this process.
    pub(crate) fn pageable() -> Self {
        Self::Pageable(vec![0; BUFFER_BYTES])
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Pageable(bytes) => bytes,
            Self::Pinned(memory) => memory,
            Self::Transferable(memory) => memory,
        }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Pageable(bytes) => bytes,
            Self::Pinned(memory) => memory,
            Self::Transferable(memory) => memory,
        }
    }
}

impl From<Vec<u8>> for Buffer {
    fn from(bytes: Vec<u8>) -> Self {
        Self::Pageable(bytes)
    }
}

impl From<HostMemory> for Buffer {
    fn from(memory: HostMemory) -> Self {
        Self::Pinned(memory)
    }
}

/// Returns the buffer if it is of another kind.
impl TryFrom<Buffer> for HostMemory {
    type Error = Buffer;

    fn try_from(buffer: Buffer) -> Result<Self, Buffer> {
        match buffer {
            Buffer::Pinned(memory) => Ok(memory),
            other => Err(other),
        }
    }
}

impl From<serdes_pjrt::HostMemory> for Buffer {
    fn from(memory: serdes_pjrt::HostMemory) -> Self {
        Self::Transferable(memory)
    }
}

/// Returns the buffer if it is of another kind.
impl TryFrom<Buffer> for serdes_pjrt::HostMemory {
    type Error = Buffer;

    fn try_from(buffer: Buffer) -> Result<Self, Buffer> {
        match buffer {
            Buffer::Transferable(memory) => Ok(memory),
            other => Err(other),
        }
    }
}

/// A buffer whose first bytes are valid. Their number is checked once, on creation, so that code
/// which sums or writes them cannot miss any.
#[derive(Debug)]
pub(crate) struct Filled {
    buffer: Buffer,
    used: usize,
}

impl Filled {
    /// Marks the first `used` bytes of a buffer as valid.
    ///
    /// # Errors
    /// If the buffer is shorter.
    pub(crate) fn new(buffer: Buffer, used: usize) -> Result<Self, Error> {
        if used <= buffer.len() {
            return Ok(Self { buffer, used });
        }
        Err(Error::invalid(format!("a buffer of {} bytes cannot hold {used}", buffer.len())))
    }

    /// Returns the buffer, and the number of its valid bytes.
    pub(crate) fn into_parts(self) -> (Buffer, usize) {
        (self.buffer, self.used)
    }

    /// Returns the buffer for reuse.
    pub(crate) fn into_buffer(self) -> Buffer {
        self.buffer
    }
}

impl Deref for Filled {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.buffer[..self.used]
    }
}

impl DerefMut for Filled {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.buffer[..self.used]
    }
}

/// A buffer that is filled sequentially up to a limit, which is at most its length.
#[derive(Debug)]
pub(crate) struct Filling {
    buffer: Buffer,
    used: usize,
    limit: usize,
}

impl Filling {
    /// Creates an empty one with capacity for `limit` bytes, or for as many as the buffer has.
    pub(crate) fn new(buffer: Buffer, limit: usize) -> Self {
        Self { used: 0, limit: limit.min(buffer.len()), buffer }
    }

    /// Returns true if the limit is reached.
    pub(crate) fn is_full(&self) -> bool {
        self.used >= self.limit
    }

    /// Calls `fill` to write the next bytes, at most `most`; returns their number.
    ///
    /// # Errors
    /// The errors of `fill`; its bytes are then ignored.
    pub(crate) fn fill<E>(
        &mut self,
        most: u64,
        fill: impl FnOnce(&mut [u8]) -> Result<(), E>,
    ) -> Result<usize, E> {
        let most = usize::try_from(most).unwrap_or(usize::MAX).min(self.limit - self.used);
        fill(&mut self.buffer[self.used..self.used + most])?;
        self.used += most;
        Ok(most)
    }

    /// Returns the bytes that it has been filled with so far.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.buffer[..self.used]
    }

    /// Ends the filling, and returns the filled buffer.
    pub(crate) fn finish(self) -> Filled {
        Filled { buffer: self.buffer, used: self.used }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_buffer_does_not_count_as_filled_beyond_its_end() {
        let filled = Filled::new(Buffer::from(vec![1, 2, 3]), 2).unwrap();
        assert_eq!(*filled, [1, 2]);
        assert!(Filled::new(Buffer::from(vec![1, 2, 3]), 4).is_err());
    }

    #[test]
    fn a_buffer_is_filled_up_to_its_limit_and_no_further() {
        let mut filling = Filling::new(Buffer::from(vec![0; 5]), 3);
        let put = |filling: &mut Filling, most| {
            filling.fill(most, |part| {
                part.fill(7);
                Ok::<_, ()>(())
            })
        };
        assert_eq!(put(&mut filling, 2), Ok(2));
        assert_eq!(filling.fill(1, |_| Err("no")), Err("no"));
        assert_eq!(put(&mut filling, 2), Ok(1));
        assert!(filling.is_full());
        assert_eq!(*filling.finish(), [7, 7, 7]);
        assert_eq!(Filling::new(Buffer::from(vec![0; 5]), 9).fill(9, |_| Ok::<_, ()>(())), Ok(5));
    }
}
