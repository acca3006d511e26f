//! A stretch of a file as a reader.

use std::io::{self, Read};

use serdes_files::{Ahead, ReadAt};

/// Bytes from which on a stretch of a source that answers late is asked for ahead; the surroundings
/// of a shorter one come with it.
const AHEAD_FROM: u64 = 1 << 20;

/// Reads from `position` to `end` of a source that others read at the same time.
pub(super) struct Section<S> {
    source: S,
    position: u64,
    end: u64,
    ahead: Option<Ahead<'static>>,
}

impl<S: ReadAt> Section<S> {
    pub(super) fn new(source: S, position: u64, end: u64) -> Self {
        let is_long = end.saturating_sub(position) >= AHEAD_FROM;
        let ahead =
            (is_long && source.answers_late()).then(|| Ahead::new(std::iter::once(position..end)));
        Self { source, position, end, ahead }
    }
}

impl<S: ReadAt> Read for Section<S> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.end.saturating_sub(self.position).min(out.len() as u64) as usize;
        let Some(out) = out.get_mut(..count).filter(|out| !out.is_empty()) else { return Ok(0) };
        let count = match &mut self.ahead {
            Some(ahead) => ahead.read(&self.source, out, self.position).map(|()| count)?,
            None => self.source.read_at(out, self.position)?,
        };
        // The file was long enough when it was opened.
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.position += count as u64;
        Ok(count)
    }
}
