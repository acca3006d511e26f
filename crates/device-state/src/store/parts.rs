//! Presents the parts of a merged state as one sequence of bytes.

use std::{
    io,
    ops::Range,
    path::{Path, PathBuf},
    sync::{Arc, mpsc::Receiver},
};

use bytes::Bytes;
use serdes_files::{ReadAt, read_at::read_arriving};

use super::{Part, PartStore, SaveId};
use crate::{
    Error,
    format::{
        checksum,
        role::{MergedRole, PartRecord},
        spread::PiecePlace,
        trailer::TRAILER_BYTES,
    },
    load::read_header,
};

/// Number of parts that stay open; further ones are opened for every read.
const KEPT_OPEN: usize = 128;

/// The parts of a merged state, concatenated in the order of its index.
pub(crate) struct Parts {
    store: Arc<dyn PartStore>,
    directory: String,
    spans: Vec<Span>,
}

/// A part that differs from the merged one.
#[derive(Debug)]
pub(crate) struct Lost {
    pub(crate) part: Part,
    pub(crate) error: Error,
}

impl Lost {
    /// Returns true if its bytes can be compared with their checksums.
    pub(crate) fn is_readable(&self) -> bool {
        matches!(self.error, Error::Corrupt { .. })
    }
}

/// Distribution of a merged state's pieces over its parts.
pub(crate) struct Spread {
    pub(crate) parts: Arc<Parts>,
    /// The place of each piece, in the order of the index.
    pub(crate) places: Vec<PiecePlace>,
}

struct Span {
    base: u64,
    part: Part,
    record: PartRecord,
    open: Option<Box<dyn ReadAt>>,
}

impl Parts {
    /// Opens the parts of a merged state; each must exist and be the one that was merged.
    pub(crate) fn open(store: Arc<dyn PartStore>, merged: &MergedRole) -> Result<Self, Error> {
        let (parts, lost) = Self::open_left(store, merged)?;
        match lost.into_iter().next() {
            Some(lost) => Err(lost.error),
            None => Ok(parts),
        }
    }

    /// Opens the existing parts that this build may read; returns the errors of the others and of
    /// damaged ones.
    pub(crate) fn open_left(
        store: Arc<dyn PartStore>,
        merged: &MergedRole,
    ) -> Result<(Self, Vec<Lost>), Error> {
        let count = u32::try_from(merged.parts.len()).unwrap_or(u32::MAX);
        let mut spans = Vec::with_capacity(merged.parts.len());
        let mut lost = Vec::new();
        for ((number, record), base) in (0..count).zip(&merged.parts).zip(merged.bases()) {
            let part = Part::new(SaveId(merged.save), number, count)?;
            let path = store.place().with_file_name(&merged.directory).join(part.name());
            let source = open_part(&*store, &merged.directory, part);
            let checked = source.and_then(|source| {
                check(&*source, *record, part, &path)?;
                Ok(source)
            });
            let open = match checked {
                // A source with high latency is not an open file of this process.
                Ok(source) => (spans.len() < KEPT_OPEN || source.answers_late()).then_some(source),
                Err(error) => {
                    // A damaged part is opened when it is read.
                    lost.push(Lost { part, error: error.in_file(&path) });
                    None
                }
            };
            spans.push(Span { base, part, record: *record, open });
        }
        Ok((Self { store, directory: merged.directory.clone(), spans }, lost))
    }

    /// Returns the size of all parts together in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.spans.last().map_or(0, |last| last.base + last.record.trailer.file_bytes)
    }

    /// Verifies the bytes of the `chosen` parts outside of pieces; returns the damaged parts with
    /// their errors. An error that is no `damage` ends the work.
    pub(crate) fn verify(
        &self,
        chosen: impl Fn(Part) -> bool,
        damage: impl Fn(&Error) -> bool,
    ) -> Result<Vec<Lost>, Error> {
        let mut damaged = Vec::new();
        for span in self.spans.iter().filter(|span| chosen(span.part)) {
            match self.verify_part(span) {
                Ok(()) => {}
                Err(error) if damage(&error) => {
                    let error = error.in_file(&self.path_of(span.part));
                    damaged.push(Lost { part: span.part, error });
                }
                Err(error) => return Err(error),
            }
        }
        Ok(damaged)
    }

    fn verify_part(&self, span: &Span) -> Result<(), Error> {
        let io = |error| Error::io("read", &self.path_of(span.part), error);
        let trailer = span.record.trailer;
        let header = read_arriving(self, span.base, span.record.header_bytes).map_err(io)?;
        let (body, stored) = header.split_last_chunk::<4>().unwrap_or((&[], &[0; 4]));
        let (stored, computed) = (u32::from_le_bytes(*stored), checksum(body));
        if stored != computed || stored != trailer.header_checksum {
            let what = format!("header of part {}", span.part.number());
            return Err(Error::checksum(&what, trailer.header_checksum, computed));
        }
        let index = span.base.saturating_add(trailer.index_offset);
        let index = read_arriving(self, index, trailer.index_bytes).map_err(io)?;
        let computed = checksum(&index);
        if computed != trailer.index_checksum {
            let what = format!("index of part {}", span.part.number());
            return Err(Error::checksum(&what, trailer.index_checksum, computed));
        }
        Ok(())
    }

    /// Returns the number of parts.
    pub(crate) fn count(&self) -> u32 {
        u32::try_from(self.spans.len()).unwrap_or(u32::MAX)
    }

    /// Returns the part with a byte of the merged state, and the offset there.
    fn span_at(&self, offset: u64) -> Option<(&Span, u64)> {
        let behind = self.spans.partition_point(|span| span.base <= offset);
        let span = behind.checked_sub(1).and_then(|at| self.spans.get(at))?;
        Some((span, offset - span.base))
    }

    /// Returns the path of the part with a byte of the merged state.
    pub(crate) fn path_at(&self, offset: u64) -> Option<PathBuf> {
        self.span_at(offset).map(|(span, _)| self.path_of(span.part))
    }

    fn path_of(&self, part: Part) -> PathBuf {
        self.store.place().with_file_name(&self.directory).join(part.name())
    }
}

fn open_part(store: &dyn PartStore, directory: &str, part: Part) -> Result<Box<dyn ReadAt>, Error> {
    store.open_part(directory, part).map_err(|error| match error {
        Error::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => {
            Error::MissingPart {
                part: format!("part {} of {}", part.number(), part.count()),
                place: store.place().with_file_name(directory).join(part.name()),
            }
        }
        error => error,
    })
}

/// Checks that a file is the merged part, by its length and its end.
fn check(source: &dyn ReadAt, record: PartRecord, part: Part, place: &Path) -> Result<(), Error> {
    let io = |error| Error::io("read", place, error);
    let what = format!("part {} of {}", part.number(), part.count());
    let (found, expected) = (source.size().map_err(io)?, record.trailer.file_bytes);
    let newer = || match read_header(source, place, found) {
        Err(
            error @ (Error::TooNew { .. }
            | Error::TooNewFeature { .. }
            | Error::BadConsumer { .. }
            | Error::Io { .. }),
        ) => Err(error),
        // Damage is detected below.
        Ok(_) | Err(_) => Ok(()),
    };
    if found != expected {
        newer()?;
        return Err(Error::corrupt(
            &what,
            format!("{found} bytes"),
            format!("{expected} bytes; it was cut, appended to, or is of another save"),
        ));
    }
    let mut trailer = [0; TRAILER_BYTES];
    source.read_exact_at(&mut trailer, expected - TRAILER_BYTES as u64).map_err(io)?;
    if trailer != record.trailer.encode() {
        newer()?;
        return Err(Error::corrupt(
            &what,
            "another end".to_owned(),
            "the end that was merged; it is damaged, or of another save".to_owned(),
        ));
    }
    Ok(())
}

impl ReadAt for Parts {
    fn size(&self) -> io::Result<u64> {
        Ok(self.bytes())
    }

    #[expect(clippy::indexing_slicing, reason = "`length` is at most that of the buffer")]
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let Some((span, offset)) = self.span_at(offset) else { return Ok(0) };
        let left = span.record.trailer.file_bytes.saturating_sub(offset);
        let length = buffer.len().min(usize::try_from(left).unwrap_or(usize::MAX));
        let buffer = &mut buffer[..length];
        match &span.open {
            Some(source) => source.read_at(buffer, offset),
            None => self
                .store
                .open_part(&self.directory, span.part)
                .map_err(io::Error::other)?
                .read_at(buffer, offset),
        }
    }

    fn begin_read(&self, range: Range<u64>) -> Option<Receiver<io::Result<Bytes>>> {
        let (span, offset) = self.span_at(range.start)?;
        let length = range.end.checked_sub(range.start)?;
        // Bytes of the next part take another read.
        let end = offset.checked_add(length)?.min(span.record.trailer.file_bytes);
        span.open.as_ref()?.begin_read(offset..end)
    }

    fn answers_late(&self) -> bool {
        self.spans.iter().filter_map(|span| span.open.as_ref()).any(ReadAt::answers_late)
    }
}
