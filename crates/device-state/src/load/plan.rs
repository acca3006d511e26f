//! Plans of loads: the ranges to read from a state, their order, and their target memories.
//!
//! A plan is a sequence of runs: contiguous bytes of one piece, with their targets. For whole
//! arrays there is one run per piece. The extents that are read follow from the runs: windows of
//! whole chunks, each once; small neighbours are read together with the bytes between them.

use std::ops::Range;

use super::open_state::OpenState;
use crate::{
    Error,
    format::index::PieceEntry,
    pump::{BUFFER_BYTES, STREAMED_FROM},
    shards::{Block, CellIterator},
};

/// Size of a window in bytes for a piece of which shards need a part, if chunks are smaller.
pub(super) const WINDOW_BYTES: u64 = 64 << 10;

/// A piece that is read.
#[derive(Clone, Copy)]
pub(super) struct Source<'a> {
    pub(super) number: u32,
    pub(super) piece: PieceEntry,
    /// Name of its array.
    pub(super) name: &'a str,
}

/// A run: `bytes` bytes of a piece, after its last run, for each of these targets.
pub(super) struct Run<'a> {
    /// Position of the piece; `None` if no piece has the bytes.
    pub(super) source: Option<usize>,
    pub(super) targets: &'a [u32],
    pub(super) bytes: u64,
}

/// An extent of the file that is read at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct ReadExtent {
    pub(super) offset: u64,
    pub(super) bytes: usize,
    /// Positions of the pieces with data in it: a part of one, or all of several.
    pub(super) sources: Range<usize>,
}

impl ReadExtent {
    /// Returns the byte range in the file.
    pub(super) const fn range(&self) -> Range<u64> {
        self.offset..self.offset.saturating_add(self.bytes as u64)
    }

    /// Returns true if the extent contains this byte of this piece.
    pub(super) fn has(&self, source: usize, offset: u64) -> bool {
        self.sources.contains(&source) && self.range().contains(&offset)
    }
}

/// The pieces to read, and the order of their runs.
pub(super) struct Plan<'a> {
    pub(super) sources: Vec<Source<'a>>,
    /// Size of the windows in which pieces are read, in bytes: whole chunks.
    window: u64,
    walk: Walk<'a>,
}

/// Order of the runs.
enum Walk<'a> {
    /// Each piece completely, to the target with the same position.
    Each {
        /// True if consecutive pieces of the index are adjacent in the file.
        neighbours: bool,
    },
    /// An array in row-major order, with different cuts of pieces and targets.
    Cut { name: &'a str, element: u64, whole: Block, pieces: Vec<Block>, targets: Vec<Block> },
}

impl<'a> Plan<'a> {
    /// Creates a plan that reads every piece to a memory of its own, in order.
    pub(super) fn each(state: &OpenState, sources: Vec<Source<'a>>) -> Self {
        let window = u64::from(state.header.chunk_bytes).max(BUFFER_BYTES as u64);
        // A salvaged or merged index does not record adjacency.
        let neighbours = !state.salvaged && state.merged.is_none();
        Self { sources, window, walk: Walk::Each { neighbours } }
    }

    /// Creates a plan that splits the array `name` of extent `whole`, stored in the blocks
    /// `pieces`, into `targets`.
    pub(super) fn cut(
        state: &OpenState,
        name: &'a str,
        element: u64,
        (sources, pieces): (Vec<Source<'a>>, Vec<Block>),
        whole: Block,
        targets: Vec<Block>,
    ) -> Self {
        let window = u64::from(state.header.chunk_bytes).max(WINDOW_BYTES);
        Self { sources, window, walk: Walk::Cut { name, element, whole, pieces, targets } }
    }

    /// Returns the maximum number of windows that are held at a time.
    pub(super) fn most_held(&self) -> usize {
        match self.walk {
            Walk::Each { .. } => 1,
            // A row may cross all pieces.
            Walk::Cut { .. } => self.sources.len(),
        }
    }

    /// Returns the runs from the beginning.
    pub(super) fn runs(&self) -> Result<Runs, Error> {
        Ok(match &self.walk {
            Walk::Each { .. } => {
                let lengths = self.sources.iter().map(|source| source.piece.data_bytes);
                Runs::Each { lengths: lengths.collect(), next: 0, target: [0] }
            }
            Walk::Cut { name, element, whole, pieces, targets } => {
                let cells = CellIterator::new(whole, pieces, targets)
                    .map_err(|reason| Error::Unsupported { name: (*name).to_owned(), reason })?;
                Runs::Cut { cells, element: *element }
            }
        })
    }

    /// Returns the extents to read, in the order of the runs.
    pub(super) fn extents(&self) -> Result<ReadExtents<'_, 'a>, Error> {
        let passed = vec![Passed::default(); self.sources.len()];
        let windows = Windows { plan: self, runs: self.runs()?, passed, source: 0, numbers: 0..0 };
        Ok(ReadExtents { windows, next: None })
    }

    /// Returns an upper bound of the extents' lengths in bytes.
    pub(super) fn longest_extent(&self) -> usize {
        let longest = self.sources.iter().map(|source| source.piece.data_bytes).max();
        let longest = longest.unwrap_or(0).min(self.window);
        let joined = self.sources.len() > 1 && self.joins();
        usize::try_from(longest).unwrap_or(usize::MAX).max(if joined { BUFFER_BYTES } else { 0 })
    }

    /// Returns the name of the load, for messages without a piece.
    pub(super) fn name(&self) -> &'a str {
        match &self.walk {
            Walk::Each { .. } => self.sources.first().map_or("", |source| source.name),
            Walk::Cut { name, .. } => name,
        }
    }

    /// Returns true if there is enough data to start a second thread.
    pub(super) fn is_long(&self) -> bool {
        let bytes = self.sources.iter().map(|source| source.piece.data_bytes);
        bytes.fold(0, u64::saturating_add) > 2 * self.window
    }

    const fn joins(&self) -> bool {
        matches!(self.walk, Walk::Each { neighbours: true })
    }

    /// Returns true if empty pieces are also read, to verify header and footer.
    pub(super) const fn reads_empty_pieces(&self) -> bool {
        matches!(self.walk, Walk::Each { .. })
    }

    /// Returns the union of `first` and `next`, if they are small neighbours and short enough
    /// together.
    fn join(&self, first: &ReadExtent, next: &ReadExtent) -> Option<ReadExtent> {
        let small = |source: &Source<'_>| source.piece.data_bytes < STREAMED_FROM;
        let before = self.sources.get(first.sources.end.checked_sub(1)?)?;
        let source = self.sources.get(next.sources.start)?;
        let neighbours = before.number.checked_add(1) == Some(source.number);
        let bytes = usize::try_from(next.range().end.checked_sub(first.offset)?).ok()?;
        let fits = small(before) && small(source) && neighbours && bytes <= BUFFER_BYTES;
        let sources = first.sources.start..next.sources.end;
        (self.joins() && fits).then_some(ReadExtent { offset: first.offset, bytes, sources })
    }
}

/// The runs of a plan, one after the other.
pub(super) enum Runs {
    Each { lengths: Vec<u64>, next: usize, target: [u32; 1] },
    Cut { cells: CellIterator, element: u64 },
}

impl Runs {
    /// Returns the next run; `None` at the end.
    pub(super) fn next(&mut self) -> Option<Run<'_>> {
        match self {
            Self::Each { lengths, next, target } => {
                let source = *next;
                let bytes = *lengths.get(source)?;
                *next += 1;
                *target = [u32::try_from(source).ok()?];
                Some(Run { source: Some(source), targets: target, bytes })
            }
            Self::Cut { cells, element } => {
                let run = cells.next()?;
                Some(Run {
                    source: run.source.map(|source| source as usize),
                    targets: run.targets,
                    bytes: run.elements.saturating_mul(*element),
                })
            }
        }
    }
}

/// Progress of a walk within a piece.
#[derive(Clone, Copy, Default)]
struct Passed {
    bytes: u64,
    /// The window that was returned last.
    window: Option<u64>,
}

/// Iterator over the needed windows, each once.
struct Windows<'p, 'a> {
    plan: &'p Plan<'a>,
    runs: Runs,
    passed: Vec<Passed>,
    /// Rest of the last run.
    source: usize,
    numbers: Range<u64>,
}

impl Windows<'_, '_> {
    /// Processes the next run; returns `None` at the end, or if a run belongs to no piece.
    fn step(&mut self) -> Option<()> {
        let run = self.runs.next()?;
        let source = run.source?;
        let passed = self.passed.get_mut(source)?;
        let begin = passed.bytes;
        passed.bytes = begin.saturating_add(run.bytes);
        let window = self.plan.window;
        self.source = source;
        self.numbers = match run.bytes {
            _ if run.targets.is_empty() => 0..0,
            0 if self.plan.reads_empty_pieces() => 0..1,
            _ => begin / window..passed.bytes.div_ceil(window),
        };
        Some(())
    }

    fn extent(&self, number: u64) -> Option<ReadExtent> {
        let source = self.plan.sources.get(self.source)?;
        let begin = number.saturating_mul(self.plan.window);
        let bytes = source.piece.data_bytes.saturating_sub(begin).min(self.plan.window);
        Some(ReadExtent {
            offset: source.piece.data_offset.saturating_add(begin),
            bytes: usize::try_from(bytes).ok()?,
            sources: self.source..self.source + 1,
        })
    }
}

impl Iterator for Windows<'_, '_> {
    type Item = ReadExtent;

    fn next(&mut self) -> Option<ReadExtent> {
        loop {
            for number in &mut self.numbers {
                let passed = self.passed.get_mut(self.source)?;
                if passed.window.replace(number) != Some(number) {
                    return self.extent(number);
                }
            }
            self.step()?;
        }
    }
}

/// Iterator over the extents to read, in order.
pub(super) struct ReadExtents<'p, 'a> {
    windows: Windows<'p, 'a>,
    next: Option<ReadExtent>,
}

impl Iterator for ReadExtents<'_, '_> {
    type Item = ReadExtent;

    fn next(&mut self) -> Option<ReadExtent> {
        let mut extent = self.next.take().or_else(|| self.windows.next())?;
        let plan = self.windows.plan;
        for next in self.windows.by_ref() {
            match plan.join(&extent, &next) {
                Some(joined) => extent = joined,
                None => {
                    self.next = Some(next);
                    break;
                }
            }
        }
        Some(extent)
    }
}
