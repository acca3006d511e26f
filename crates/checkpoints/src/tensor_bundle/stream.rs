//! A tensor's bytes as a stream, for tensors stored whole or in pieces.

use std::io::{self, Read};

use super::{Bundle, data::PlainStream, entry::TensorEntry, error::BundleError, pieces::Joined};

/// Reads the bytes of a tensor of fixed element size, in order, as little-endian elements in
/// row-major order.
///
/// The last bytes are returned only if the checksums match: if all bytes of a tensor were read
/// without an error, they are the bytes that were written. Errors of [`Read`] are [`io::Error`]s
/// with the [`BundleError`] as their source.
#[derive(Debug)]
pub struct TensorReader(Source);

#[derive(Debug)]
enum Source {
    Plain(Box<PlainStream>),
    Joined(Box<Joined>),
}

impl TensorReader {
    /// Reads up to `to.len()` bytes and returns their number; 0 at the end, or if `to` is empty.
    ///
    /// # Errors
    /// If the data is damaged, cut off, or cannot be read.
    pub fn read_chunk(&mut self, to: &mut [u8]) -> Result<usize, BundleError> {
        match &mut self.0 {
            Source::Plain(stream) => stream.read(to),
            Source::Joined(joined) => joined.read(to),
        }
    }
}

impl Read for TensorReader {
    fn read(&mut self, to: &mut [u8]) -> io::Result<usize> {
        self.read_chunk(to).map_err(io::Error::from)
    }
}

impl Bundle {
    /// Returns a stream of the bytes of a tensor of fixed element size. It needs little memory for
    /// tensors of any size.
    ///
    /// # Errors
    /// Every error that can be found without reading the data: an impossible shape or type, a wrong
    /// size, a missing or short file, a tensor of strings or variants, pieces that do not cover the
    /// tensor.
    pub fn reader(&self, entry: &TensorEntry) -> Result<TensorReader, BundleError> {
        Ok(TensorReader(if entry.is_partitioned() {
            Source::Joined(Box::new(Joined::new(self, entry)?))
        } else {
            Source::Plain(Box::new(PlainStream::new(self, entry.clone(), usize::MAX)?))
        }))
    }

    /// Reads a tensor of fixed element size into `to`, whose length must be
    /// [`TensorEntry::byte_len`].
    ///
    /// # Errors
    /// As [`Bundle::reader`], or damaged data; the contents of `to` are then unspecified.
    pub fn read_into(&self, entry: &TensorEntry, to: &mut [u8]) -> Result<(), BundleError> {
        let mut reader = self.reader(entry)?;
        let expected = entry.byte_len().unwrap_or(0);
        if expected != to.len() as u64 {
            let stored = i64::try_from(to.len()).unwrap_or(i64::MAX);
            return Err(BundleError::EntrySize { name: entry.display(), stored, expected });
        }
        let mut rest = to;
        while !rest.is_empty() {
            let count = reader.read_chunk(rest)?;
            if count == 0 {
                return Err(BundleError::SlicesOverlap { name: entry.display() });
            }
            rest = rest.get_mut(count..).unwrap_or_default();
        }
        Ok(())
    }

    /// Returns the bytes of a tensor of fixed element size.
    ///
    /// # Errors
    /// As [`Bundle::read_into`].
    pub fn read(&self, entry: &TensorEntry) -> Result<Vec<u8>, BundleError> {
        // The reader has compared the size with the files, so that an entry cannot request more
        // memory than they justify.
        let mut reader = self.reader(entry)?;
        let len = usize::try_from(entry.byte_len().unwrap_or(0)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; len];
        let mut at = 0;
        while let Some(rest) = bytes.get_mut(at..).filter(|rest| !rest.is_empty()) {
            match reader.read_chunk(rest)? {
                0 => return Err(BundleError::SlicesOverlap { name: entry.display() }),
                count => at += count,
            }
        }
        Ok(bytes)
    }
}
