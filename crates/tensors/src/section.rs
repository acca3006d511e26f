//! A stretch of a file as a reader.

use std::{
    io::{self, Read},
    ops::Range,
    sync::{Mutex, PoisonError},
};

use serdes_files::{Prefetch, ReadAt};

/// Bytes from which on a stretch of a source that answers late is asked for ahead; the surroundings
/// of a shorter one come with it.
const AHEAD_FROM: u64 = 1 << 20;

/// Ranges of a source that its reader has announced, in their order, so that those that lie
/// together come together, and further ones are on their way meanwhile.
#[derive(Default)]
pub(super) struct Announced(Mutex<Option<Prefetch<'static>>>);

impl Announced {
    /// Announces the ranges that will be read, in this order; none is read before the first is.
    pub(super) fn announce(&self, source: &dyn ReadAt, stretches: Vec<Range<u64>>) {
        let ahead = (source.answers_late() && stretches.len() > 1)
            .then(|| Prefetch::new(stretches.into_iter()));
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = ahead;
    }

    fn is_any(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    fn read(&self, source: &dyn ReadAt, out: &mut [u8], position: u64) -> io::Result<()> {
        match self.0.lock().unwrap_or_else(PoisonError::into_inner).as_mut() {
            Some(ahead) => ahead.read(source, out, position),
            None => source.read_exact_at(out, position),
        }
    }
}

/// Reads from `position` to `end` of a source that others read at the same time.
pub(super) struct Section<'a, S> {
    source: S,
    position: u64,
    end: u64,
    early: Early<'a>,
}

/// Reads that are begun before their bytes are needed.
enum Early<'a> {
    None,
    /// Reads of this section alone.
    Own(Prefetch<'static>),
    /// Reads of all ranges that were announced.
    Announced(&'a Announced),
}

impl<S: ReadAt> Section<'static, S> {
    pub(super) fn new(source: S, position: u64, end: u64) -> Self {
        let is_long = end.saturating_sub(position) >= AHEAD_FROM;
        let early = match is_long && source.answers_late() {
            true => Early::Own(Prefetch::new(std::iter::once(position..end))),
            false => Early::None,
        };
        Self { source, position, end, early }
    }
}

impl<'a, S: ReadAt> Section<'a, S> {
    /// Returns a section that may be one of the announced.
    pub(super) fn among(announced: &'a Announced, source: S, position: u64, end: u64) -> Self {
        match announced.is_any() {
            true => Self { source, position, end, early: Early::Announced(announced) },
            false => Section::new(source, position, end),
        }
    }
}

impl<S: ReadAt> Read for Section<'_, S> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let count = self.end.saturating_sub(self.position).min(out.len() as u64) as usize;
        let Some(out) = out.get_mut(..count).filter(|out| !out.is_empty()) else { return Ok(0) };
        let count = match &mut self.early {
            Early::None => self.source.read_at(out, self.position)?,
            Early::Own(ahead) => ahead.read(&self.source, out, self.position).map(|()| count)?,
            Early::Announced(all) => all.read(&self.source, out, self.position).map(|()| count)?,
        };
        // The file was long enough when it was opened.
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.position += count as u64;
        Ok(count)
    }
}
