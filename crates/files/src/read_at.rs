//! Positioned reading, as the readers of states, tables and bundles need it.
//!
//! Does not depend on any format. A source is shared between threads and has no position of its
//! own, so that verification can read in parallel; bytes in memory can be a source as well as a
//! file.

mod spool;

use std::{
    fs::File,
    io,
    ops::Range,
    path::Path,
    sync::{Arc, mpsc::Receiver},
};

use bytes::Bytes;

pub use self::spool::{IN_MEMORY, LONGEST_STREAM, spill, spool};
use super::Stamp;

/// A sequence of bytes of known length that can be read from any position.
pub trait ReadAt: Send + Sync {
    /// Returns the length in bytes.
    ///
    /// # Errors
    /// If the system does not report it.
    fn size(&self) -> io::Result<u64>;

    /// Reads up to `buffer.len()` bytes at `offset` (bytes from the start) and returns how many
    /// were read; 0 at the end.
    ///
    /// # Errors
    /// If the system cannot read.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;

    /// Fills `buffer` from `offset`.
    ///
    /// # Errors
    /// [`io::ErrorKind::UnexpectedEof`] if the source ends before, or the system's error.
    fn read_exact_at(&self, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
        while !buffer.is_empty() {
            match self.read_at(buffer, offset) {
                Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
                Ok(count) => {
                    // A count beyond the buffer's length is a broken implementation.
                    buffer = buffer.get_mut(count..).ok_or(io::ErrorKind::InvalidData)?;
                    offset = offset.saturating_add(count as u64);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Starts reading the bytes of `range`, for sources with high latency that can serve several
    /// reads at a time; the answer, which may have fewer bytes, arrives on the channel. `None`, the
    /// default, if the caller should read the bytes when it needs them.
    fn begin_read(&self, _range: Range<u64>) -> Option<Receiver<io::Result<Bytes>>> {
        None
    }

    /// Returns true if [`begin_read`](Self::begin_read) starts reads, so that it pays to announce
    /// reads early.
    fn answers_late(&self) -> bool {
        false
    }

    /// Returns the stamp that distinguishes the source, as it was opened, from another one of the
    /// same name. `None`, the default, if there is none.
    fn stamp(&self) -> Option<Stamp> {
        None
    }
}

/// Opens a file for reading at any position.
///
/// # Errors
/// The error that the system reports. A pipe or a device is refused: it cannot be read at any
/// position, and opening a pipe waits for a writer.
pub fn open(path: &Path) -> io::Result<File> {
    let check = |metadata: std::fs::Metadata| {
        let kind = metadata.file_type();
        if kind.is_file() || kind.is_dir() {
            return Ok(());
        }
        let reason = "it is a pipe or a device; expected a file, which can be read from any place";
        Err(io::Error::new(io::ErrorKind::InvalidInput, reason))
    };
    // Opening a device may have effects, so the path is checked before; and again after, since it
    // may have been swapped.
    check(std::fs::metadata(path)?)?;
    let mut options = std::fs::OpenOptions::new();
    options.read(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::custom_flags(
        &mut options,
        rustix::fs::OFlags::NONBLOCK.bits().cast_signed(),
    );
    let file = options.open(path)?;
    check(file.metadata()?)?;
    Ok(file)
}

/// Reads from `offset` until the buffer is full or the source ends.
pub fn read_up_to<'b>(
    source: &dyn ReadAt,
    buffer: &'b mut [u8],
    offset: u64,
) -> io::Result<&'b [u8]> {
    let mut filled = 0;
    while let Some(rest) = buffer.get_mut(filled..)
        && !rest.is_empty()
    {
        match source.read_at(rest, offset + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(buffer.get(..filled).unwrap_or_default())
}

/// Step in which memory is allocated for arriving bytes, in bytes.
const ARRIVING_STEP: u64 = 16 << 20;

/// Returns the `length` bytes from `offset`. Memory is allocated as they arrive: a sparse file or a
/// server may report a length beyond all memory.
///
/// # Errors
/// As [`ReadAt::read_exact_at`]; [`io::ErrorKind::OutOfMemory`] if there is not enough.
pub fn read_arriving(source: &dyn ReadAt, offset: u64, length: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let mut left = length;
    while left > 0 {
        let (begin, step) = (bytes.len(), left.min(ARRIVING_STEP));
        // A short range gets exactly the memory that it needs.
        let room = usize::try_from(step).map_err(|_| io::ErrorKind::OutOfMemory)?;
        let reserved =
            if step == length { bytes.try_reserve_exact(room) } else { bytes.try_reserve(room) };
        reserved.map_err(|_| io::ErrorKind::OutOfMemory)?;
        bytes.resize(begin + room, 0);
        let at = offset.saturating_add(begin as u64);
        source.read_exact_at(bytes.get_mut(begin..).unwrap_or_default(), at)?;
        left -= step;
    }
    Ok(bytes)
}

impl ReadAt for File {
    fn size(&self) -> io::Result<u64> {
        let metadata = self.metadata()?;
        if metadata.is_dir() {
            return Err(io::ErrorKind::IsADirectory.into());
        }
        Ok(metadata.len())
    }

    #[cfg(unix)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::unix::fs::FileExt::read_at(self, buffer, offset)
    }

    #[cfg(windows)]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        std::os::windows::fs::FileExt::seek_read(self, buffer, offset)
    }

    fn stamp(&self) -> Option<Stamp> {
        Stamp::of_file(self)
    }
}

impl ReadAt for [u8] {
    fn size(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let rest =
            usize::try_from(offset).ok().and_then(|start| self.get(start..)).unwrap_or_default();
        let count = rest.len().min(buffer.len());
        if let (Some(to), Some(from)) = (buffer.get_mut(..count), rest.get(..count)) {
            to.copy_from_slice(from);
        }
        Ok(count)
    }
}

impl ReadAt for Vec<u8> {
    fn size(&self) -> io::Result<u64> {
        self.as_slice().size()
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        self.as_slice().read_at(buffer, offset)
    }
}

/// Implements the trait for pointers to a source.
macro_rules! pointers {
    ($($pointer:ty),*) => {$(
        impl<T: ReadAt + ?Sized> ReadAt for $pointer {
            fn size(&self) -> io::Result<u64> {
                (**self).size()
            }

            fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
                (**self).read_at(buffer, offset)
            }

            fn begin_read(&self, range: Range<u64>) -> Option<Receiver<io::Result<Bytes>>> {
                (**self).begin_read(range)
            }

            fn answers_late(&self) -> bool {
                (**self).answers_late()
            }

            fn stamp(&self) -> Option<Stamp> {
                (**self).stamp()
            }
        }
    )*};
}

pointers!(&T, Arc<T>, Box<T>);

#[cfg(test)]
mod tests {
    use super::*;

    /// A source that claims the largest possible length, and has a few bytes.
    struct Boaster(&'static [u8]);

    impl ReadAt for Boaster {
        fn size(&self) -> io::Result<u64> {
            Ok(u64::MAX)
        }

        fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
            self.0.read_at(buffer, offset)
        }
    }

    #[test]
    fn memory_is_taken_for_bytes_that_arrive_not_for_announced_ones() {
        let error = read_arriving(&Boaster(b"few"), 0, u64::MAX).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        let long: Vec<u8> = (0..ARRIVING_STEP + 5).map(|number| number as u8).collect();
        assert!(read_arriving(&long, 3, ARRIVING_STEP + 2).unwrap() == long[3..]);
        assert_eq!(read_arriving(&long, 1, 3).unwrap(), [1, 2, 3]);
        assert!(read_arriving(&long, u64::MAX, 0).unwrap().is_empty());
    }
}
