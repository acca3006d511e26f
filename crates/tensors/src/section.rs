//! A stretch of a file as a reader.

use std::io::{self, Read};

use serdes_files::ReadAt;

/// Reads from `position` to `end` of a source that others read at the same time.
pub(super) struct Section<S> {
    source: S,
    position: u64,
    end: u64,
}

impl<S: ReadAt> Section<S> {
    pub(super) fn new(source: S, position: u64, end: u64) -> Self {
        Self { source, position, end }
    }
}

impl<S: ReadAt> Read for Section<S> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.end.saturating_sub(self.position).min(out.len() as u64) as usize;
        let Some(out) = out.get_mut(..count).filter(|out| !out.is_empty()) else { return Ok(0) };
        match self.source.read_at(out, self.position)? {
            // The file was long enough when it was opened.
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            count => {
                self.position += count as u64;
                Ok(count)
            }
        }
    }
}
