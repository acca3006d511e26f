//! Host memory that files are read into and written from.

use std::ops::{Deref, DerefMut};

use crate::stream_executor::{Device, Error, HostMemory};

/// Bytes of one buffer on the way between a device and a file; 1 MiB in flight three times was the
/// fastest of what was measured.
pub(super) const BUFFER_BYTES: usize = 1 << 20;

/// Bytes of the buffer whose first byte goes to `position` of the file: so many that the next
/// one begins at a multiple of [`BUFFER_BYTES`], which lets the system's page cache take its bytes
/// in one large folio instead of ten of growing sizes.
pub(super) fn capacity_at(position: u64) -> usize {
    BUFFER_BYTES - (position % BUFFER_BYTES as u64) as usize
}

/// A stretch of host memory of a fixed length.
#[derive(Debug)]
pub(super) enum Buffer {
    /// Memory of this process.
    Pageable(Vec<u8>),
    /// Memory that a device's asynchronous copies can use.
    Pinned(HostMemory),
}

impl Buffer {
    /// [`BUFFER_BYTES`] of memory of this process.
    pub(super) fn pageable() -> Self {
        Self::Pageable(vec![0; BUFFER_BYTES])
    }

    /// [`BUFFER_BYTES`] of memory for copies of `device`.
    pub(super) fn pinned(device: &Device) -> Result<Self, Error> {
        device.allocate_host(BUFFER_BYTES).map(Self::Pinned)
    }
}

impl Deref for Buffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Pageable(bytes) => bytes,
            Self::Pinned(memory) => memory,
        }
    }
}

impl DerefMut for Buffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        match self {
            Self::Pageable(bytes) => bytes,
            Self::Pinned(memory) => memory,
        }
    }
}
