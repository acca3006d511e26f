//! The file to be detected, with its ends in memory.

use std::io;

use serdes_files::{ReadAt, read_at::read_up_to};

/// Number of bytes that are read from the beginning of a file, and from the end of one that may be
/// text.
pub(crate) const HEAD: usize = 4096;

/// The file to be detected.
pub(super) struct File<'f> {
    pub(super) source: &'f dyn ReadAt,
    pub(super) size: u64,
    /// Its first bytes: all of them if there are at most [`HEAD`].
    pub(super) head: &'f [u8],
    /// Its name in lower case; empty for standard input.
    pub(super) name: &'f str,
}

impl File<'_> {
    /// Reads up to `buffer.len()` bytes from `offset`.
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
