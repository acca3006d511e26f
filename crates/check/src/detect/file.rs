//! The file that is looked at: its ends are in memory.

use std::io;

use serdes_files::{ReadAt, read_at::read_up_to};

/// Bytes that are read of the beginning of a file, and of the end of one that may be a text.
pub(crate) const HEAD: usize = 4096;

/// The file that is looked at.
pub(super) struct File<'f> {
    pub(super) source: &'f dyn ReadAt,
    pub(super) size: u64,
    /// Its first bytes: all of them if they are fewer than [`HEAD`].
    pub(super) head: &'f [u8],
    /// Its name, in small letters; empty for standard input.
    pub(super) name: &'f str,
}

impl File<'_> {
    /// Up to `buffer.len()` bytes from `offset`.
    pub(super) fn read<'b>(&self, buffer: &'b mut [u8], offset: u64) -> io::Result<&'b [u8]> {
        let here = usize::try_from(offset).ok().and_then(|offset| self.head.get(offset..));
        match here {
            Some(here) if here.len() >= buffer.len() || self.is_whole() => {
                let count = here.len().min(buffer.len());
                let (filled, _) = buffer.split_at_mut(count);
                let (here, _) = here.split_at(count);
                filled.copy_from_slice(here);
                Ok(filled)
            }
            _ => read_up_to(self.source, buffer, offset),
        }
    }

    /// Returns true if the head is the whole file.
    pub(super) fn is_whole(&self) -> bool {
        self.head.len() as u64 == self.size
    }
}
