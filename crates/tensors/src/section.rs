//! Reader of a range of a file.

use std::{
    io::{self, Read},
    ops::Range,
    sync::{Mutex, PoisonError},
};

use serdes_files::{Prefetch, ReadAt};

/// Minimum size in bytes of a range that is read ahead from a source with high latency; shorter
/// ranges are fetched with their surroundings.
const AHEAD_FROM: u64 = 1 << 20;

/// Announced ranges of a source, in order, so that adjacent ones are read together and later ones
/// are read ahead.
#[derive(Default)]
pub(super) struct Announced(Mutex<Option<Prefetch<'static>>>);

impl Announced {
    /// Announces the ranges that will be read, in order; reading starts with the first.
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

/// Reader from `position` to `end` of a source that others read concurrently.
pub(super) struct Section<'a, S> {
    source: S,
    position: u64,
    end: u64,
    early: Early<'a>,
}

/// Reads that start before their bytes are needed.
enum Early<'a> {
    None,
    /// Reads of this section only.
    Own(Prefetch<'static>),
    /// Reads of all announced ranges.
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
    /// Creates a section that may be one of the announced ranges.
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
        // The file was shortened after it was opened.
        if count == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.position += count as u64;
        Ok(count)
    }
}
