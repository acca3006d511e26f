//! Reads tensors, and parts of them, into memory of this process.
//!
//! Unlike device memory, memory of this process can be written at any position, so that nothing is
//! collected on the way: whole pieces are read directly to their positions, several at a time, and
//! a part of an array costs the chunks that it crosses. Does not depend on the owner of the memory.

mod runs;

use std::{
    collections::BTreeMap,
    num::NonZero,
    ops::Range,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, available_parallelism},
};

use serdes::ifrt::IndexDomain;
use serdes_files::{Phase, Prefetch, ProgressMonitor};

use self::runs::{Run, Runs};
use super::{
    Reader, Tensor,
    assemble::{element_bytes, pieces_of},
    open_state::OpenState,
};
use crate::{
    Error,
    format::{checksum, index::PieceEntry},
    shards::Block,
};

/// Bytes that are read at once, unless a chunk is longer: they are summed while they are in the
/// processor's caches.
const STEP_BYTES: u64 = 1 << 20;
/// Bytes of a whole piece that one thread reads before it takes the next.
const SPAN_BYTES: u64 = 8 << 20;
/// Bytes of a window of a piece of which little is wanted, if chunks are smaller or not verified.
const WINDOW_BYTES: u64 = 64 << 10;

/// Choice between comparing bytes with their checksums and trusting them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Verification {
    /// Verifies every chunk of which something is read, before the work ends.
    #[default]
    Checksums,
    /// Verifies no chunk: damaged bytes are returned as they are.
    Skipped,
}

/// Memory of this process into which a tensor, or a part of one, is read.
#[derive(Debug)]
pub struct HostTarget<'a> {
    tensor: &'a Tensor,
    block: Block,
    bytes: &'a mut [u8],
}

impl<'a> HostTarget<'a> {
    /// Creates a target for all of `tensor`, in `bytes`: row-major, little endian, elements
    /// narrower than a byte in a byte each. The memory must have the tensor's length.
    pub fn new(tensor: &'a Tensor, bytes: &'a mut [u8]) -> Self {
        Self { tensor, block: Block::whole(tensor.spec().shape()), bytes }
    }

    /// Creates a target for the part `domain` of `tensor`, in `bytes` of the part's length.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the part is not inside the tensor.
    pub fn part(
        tensor: &'a Tensor,
        domain: &IndexDomain,
        bytes: &'a mut [u8],
    ) -> Result<Self, Error> {
        let block = Block::of_domain(domain, tensor.spec().shape()).map_err(Error::invalid)?;
        Ok(Self { tensor, block, bytes })
    }
}

impl Reader {
    /// Reads tensors of this state, or parts of them, into memory of this process; returns the
    /// number of data bytes that were read.
    ///
    /// For a part, the chunks that it crosses are read, or, without verification, little more than
    /// its own bytes. After an error the contents of the memory are unspecified.
    ///
    /// ```
    /// use serdes_device_state::{HostTarget, Reader, Verification, Versions, ProgressMonitor, Writer};
    /// use serdes::ifrt::{
    ///     ArraySpec, DType, DeviceId, Index, IndexDomain, Shape, SingleDeviceSharding,
    /// };
    ///
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("a.sds");
    /// let spec =
    ///     ArraySpec::new(DType::U8, Shape::new([2, 3])?, SingleDeviceSharding::new(DeviceId(0)));
    /// let mut state = Writer::create(&path, Versions::week_4_old())?;
    /// state.add_bytes("w", &spec, &[1, 2, 3, 4, 5, 6])?;
    /// state.finish()?;
    ///
    /// let reader = Reader::open(&path)?;
    /// let tensor = reader.tensor("w")?;
    /// // The last two columns.
    /// let columns = IndexDomain::new(Index::new([0, 1]), Shape::new([2, 2])?)?;
    /// let (mut whole, mut part) = ([0; 6], [0; 4]);
    /// let targets = vec![
    ///     HostTarget::new(&tensor, &mut whole),
    ///     HostTarget::part(&tensor, &columns, &mut part)?,
    /// ];
    /// reader.read_into(targets, Verification::Checksums, &ProgressMonitor::new())?;
    /// assert_eq!((whole, part), ([1, 2, 3, 4, 5, 6], [2, 3, 5, 6]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::SizeMismatch`] if a memory has another length than its contents;
    /// [`Error::Unsupported`] for strings, which [`Tensor::strings`] returns; [`Error::Invalid`] if
    /// a tensor belongs to another reader; [`Error::Corrupt`] if the bytes are damaged; or if they
    /// cannot be read, or the work was cancelled.
    pub fn read_into(
        &self,
        targets: Vec<HostTarget<'_>>,
        verification: Verification,
        monitor: &ProgressMonitor,
    ) -> Result<u64, Error> {
        let total = targets.iter().map(|target| target.bytes.len() as u64).sum();
        monitor.begin(Phase::Restore, total);
        let work = Work::new(self, verification, monitor);
        let (mut jobs, mut parts) = (Vec::new(), Vec::new());
        for target in targets {
            work.add_jobs(target, &mut jobs, &mut parts)?;
        }
        work.add_scatters(&parts, &mut jobs);
        jobs.sort_by_key(Job::begin);
        work.run(jobs, total)?;
        Ok(work.bytes_read.into_inner())
    }

    /// Returns the elements of a tensor of strings of this state, like [`Tensor::strings`], with
    /// the options of [`read_into`](Self::read_into): verification is up to the caller, and the
    /// work can be cancelled.
    ///
    /// ```
    /// use serdes_device_state::{Reader, Verification, Versions, ProgressMonitor, Writer};
    /// use serdes::ifrt::{ArraySpec, DType, DeviceId, Shape, SingleDeviceSharding};
    ///
    /// # let directory = tempfile::tempdir()?;
    /// # let path = directory.path().join("a.sds");
    /// let device = SingleDeviceSharding::new(DeviceId(0));
    /// let spec = ArraySpec::new(DType::String, Shape::new([2])?, device);
    /// let mut state = Writer::create(&path, Versions::current())?;
    /// state.add_strings("names", &spec, &["a", "bcd"])?;
    /// state.finish()?;
    ///
    /// let reader = Reader::open(&path)?;
    /// let names = reader.tensor("names")?;
    /// let found = reader.read_strings(&names, Verification::Skipped, &ProgressMonitor::new())?;
    /// assert_eq!(found, [&b"a"[..], b"bcd"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::strings`]; [`Error::Invalid`] if the tensor belongs to another reader; or if
    /// the work was cancelled.
    pub fn read_strings(
        &self,
        tensor: &Tensor,
        verification: Verification,
        monitor: &ProgressMonitor,
    ) -> Result<Vec<Vec<u8>>, Error> {
        tensor.check_strings()?;
        let work = Work::new(self, verification, monitor);
        work.check_own(tensor)?;
        let Some((_, piece)) = tensor.pieces().next().filter(|_| tensor.is_whole()) else {
            return tensor.strings();
        };
        monitor.begin(Phase::Restore, piece.data_bytes);
        let mut data = Vec::new();
        let bytes = usize::try_from(piece.data_bytes).ok();
        bytes
            .filter(|bytes| data.try_reserve_exact(*bytes).is_ok())
            .ok_or(Error::TooLarge { what: "data", found: piece.data_bytes })
            .map(|bytes| data.resize(bytes, 0))?;
        let jobs = work.spans(tensor.name(), piece, &mut data).collect();
        work.run(jobs, piece.data_bytes)?;
        tensor.strings_in(&data)
    }
}

/// A job for one thread.
enum Job<'a, 'm> {
    /// Reads bytes of one piece, whole chunks or up to its end, to their position.
    Span { name: &'m str, piece: PieceEntry, first: u64, bytes: &'m mut [u8] },
    /// Copies windows of one piece to all parts of arrays that need them: each is read once.
    Scatter { name: &'m str, piece: PieceEntry, wants: Vec<Want<'a, 'm>> },
}

/// A part of an array, which threads fill from all pieces that intersect it.
struct Part<'m> {
    name: &'m str,
    sources: Vec<(PieceEntry, Runs)>,
    bytes: Mutex<&'m mut [u8]>,
}

/// Runs of a piece that a part needs, and the memory of the part.
struct Want<'a, 'm> {
    runs: Runs,
    bytes: &'a Mutex<&'m mut [u8]>,
}

impl Want<'_, '_> {
    /// Copies the bytes of the part in `held`, which begins at byte `begin` of the piece; `next` is
    /// the next run, or the rest of it.
    fn copy(&mut self, next: &mut Option<Run>, begin: u64, held: &[u8]) -> Option<()> {
        let end = begin.saturating_add(held.len() as u64);
        let mut bytes = self.bytes.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some(run) = next.filter(|run| run.from < end) {
            let now = run.bytes.min(end - run.from);
            let from = usize::try_from(run.from.checked_sub(begin)?).ok()?;
            let (to, count) = (usize::try_from(run.to).ok()?, usize::try_from(now).ok()?);
            let source = held.get(from..)?.get(..count)?;
            bytes.get_mut(to..)?.get_mut(..count)?.copy_from_slice(source);
            let left = Run { from: run.from + now, to: run.to + now, bytes: run.bytes - now };
            *next = if left.bytes > 0 { Some(left) } else { self.runs.next() };
        }
        Some(())
    }
}

impl Job<'_, '_> {
    /// Returns the offset of its first byte in the state.
    fn begin(&self) -> u64 {
        match self {
            Self::Span { piece, first, .. } => piece.data_offset.saturating_add(*first),
            Self::Scatter { piece, wants, .. } => {
                let first = wants.iter().map(|want| want.runs.span().start).min();
                piece.data_offset.saturating_add(first.unwrap_or(0))
            }
        }
    }
}

/// State shared by the threads.
struct Work<'a> {
    state: &'a OpenState,
    verification: Verification,
    monitor: &'a ProgressMonitor,
    bytes_read: AtomicU64,
    /// True if a thread failed: the others stop.
    stop: AtomicBool,
}

impl<'a> Work<'a> {
    fn new(reader: &'a Reader, verification: Verification, monitor: &'a ProgressMonitor) -> Self {
        Self {
            state: &reader.state,
            verification,
            monitor,
            bytes_read: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        }
    }
}

impl Work<'_> {
    /// Returns an error for a tensor of another reader.
    fn check_own(&self, tensor: &Tensor) -> Result<(), Error> {
        if std::ptr::eq(self.state, &*tensor.state) {
            return Ok(());
        }
        Err(Error::invalid(format!("{:?} is a tensor of another reader", tensor.name())))
    }

    /// Splits a whole piece and its memory into jobs of some whole chunks each.
    fn spans<'a, 'm: 'a>(
        &self,
        name: &'m str,
        piece: PieceEntry,
        bytes: &'m mut [u8],
    ) -> impl Iterator<Item = Job<'a, 'm>> + use<'a, 'm> {
        // Whole chunks: both are powers of two.
        let span = SPAN_BYTES.max(u64::from(self.state.header.chunk_bytes));
        let spans = bytes.chunks_mut(usize::try_from(span).unwrap_or(usize::MAX));
        spans.zip(0_u64..).map(move |(bytes, number)| Job::Span {
            name,
            piece,
            first: number.saturating_mul(span),
            bytes,
        })
    }

    /// Splits a target that is one piece into jobs; other targets become parts.
    fn add_jobs<'a, 'm: 'a>(
        &self,
        target: HostTarget<'m>,
        jobs: &mut Vec<Job<'a, 'm>>,
        parts: &mut Vec<Part<'m>>,
    ) -> Result<(), Error> {
        let HostTarget { tensor, block, bytes } = target;
        let name = tensor.name();
        self.check_own(tensor)?;
        let element = element_bytes(tensor)?;
        tensor.check_complete()?;
        let expected = block.elements().and_then(|elements| elements.checked_mul(element));
        if expected != Some(bytes.len() as u64) {
            return Err(Error::SizeMismatch {
                name: name.to_owned(),
                found: bytes.len() as u64,
                expected: expected.unwrap_or(u64::MAX),
            });
        }
        let (pieces, blocks) = pieces_of(tensor)?;
        if let ([(_, piece)], [whole]) = (&pieces[..], &blocks[..])
            && *whole == block
        {
            jobs.extend(self.spans(name, *piece, bytes));
            return Ok(());
        }
        let sources = pieces
            .into_iter()
            .zip(&blocks)
            .filter_map(|((_, piece), held)| Some((piece, Runs::between(held, &block, element)?)));
        parts.push(Part { name, sources: sources.collect(), bytes: Mutex::new(bytes) });
        Ok(())
    }

    /// Adds a job for each piece that parts need, and several if they need different extents of it.
    fn add_scatters<'a, 'm>(&self, parts: &'a [Part<'m>], jobs: &mut Vec<Job<'a, 'm>>) {
        let mut pieces: BTreeMap<u64, (&'m str, PieceEntry, Vec<Want<'a, 'm>>)> = BTreeMap::new();
        for Part { name, sources, bytes } in parts {
            for (piece, runs) in sources {
                let found = pieces.entry(piece.data_offset);
                let (_, _, wants) = found.or_insert_with(|| (*name, *piece, Vec::new()));
                wants.push(Want { runs: runs.clone(), bytes });
            }
        }
        let window = self.window();
        for (name, piece, mut wants) in pieces.into_values() {
            wants.sort_by_key(|want| want.runs.span().start);
            // First and last window of the previous job.
            let mut before: Option<(u64, u64)> = None;
            for want in wants {
                let span = want.runs.span();
                let (first, last) = (span.start / window, span.end.saturating_sub(1) / window);
                // A window that is only shared at the ends of two jobs is read twice, by two
                // threads.
                let joined = before.filter(|(begin, end)| first < *end || first == *begin);
                let shares = joined.is_some();
                before = Some(joined.map_or((first, last), |(begin, end)| (begin, end.max(last))));
                match jobs.last_mut() {
                    Some(Job::Scatter { piece: last, wants, .. })
                        if shares && last.data_offset == piece.data_offset =>
                    {
                        wants.push(want);
                    }
                    _ => jobs.push(Job::Scatter { name, piece, wants: vec![want] }),
                }
            }
        }
    }

    /// Executes the jobs, several at a time if that is worth the threads.
    fn run(&self, jobs: Vec<Job<'_, '_>>, total: u64) -> Result<(), Error> {
        if self.state.source.answers_late() {
            // Announce the reads in order.
            let ranges: Vec<_> = jobs.iter().flat_map(|job| self.ranges(job)).collect();
            let mut ahead = Prefetch::new(ranges.into_iter());
            return jobs.into_iter().try_for_each(|job| self.perform(job, &mut ahead));
        }
        let worth = usize::try_from(total / SPAN_BYTES).unwrap_or(usize::MAX);
        let threads = available_parallelism().map_or(1, NonZero::get).min(jobs.len()).min(worth);
        let jobs = Mutex::new(jobs.into_iter());
        let take = || jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
        let each = || {
            let mut ahead = Prefetch::new(std::iter::empty());
            while let Some(job) = take().filter(|_| !self.stop.load(Ordering::Relaxed)) {
                let done = self.perform(job, &mut ahead);
                if done.is_err() {
                    self.stop.store(true, Ordering::Relaxed);
                    return done;
                }
            }
            Ok(())
        };
        thread::scope(|scope| {
            let others: Vec<_> = (1..threads).map(|_| scope.spawn(each)).collect();
            let panicked = |_| Err(Error::invalid("a reading thread panicked".to_owned()));
            let first = each();
            let others = others.into_iter().map(|other| other.join().unwrap_or_else(panicked));
            others.fold(first, |found, other| found.and(other))
        })
    }

    fn perform(&self, job: Job<'_, '_>, ahead: &mut Prefetch<'_>) -> Result<(), Error> {
        match job {
            Job::Span { name, piece, first, bytes } => {
                self.fill(name, &piece, first, bytes, ahead)?;
                Ok(self.monitor.check()?)
            }
            Job::Scatter { name, piece, wants } => {
                self.scatter(name, &piece, wants, ahead)?;
                Ok(self.monitor.check()?)
            }
        }
    }

    /// Reads bytes of a piece from its byte `first`. Verified bytes must begin with a chunk and
    /// consist of whole chunks, or end with the piece.
    fn fill(
        &self,
        name: &str,
        piece: &PieceEntry,
        first: u64,
        bytes: &mut [u8],
        ahead: &mut Prefetch<'_>,
    ) -> Result<(), Error> {
        let chunk_bytes = self.state.header.chunk_bytes;
        let step = STEP_BYTES.max(u64::from(chunk_bytes));
        let steps = bytes.chunks_mut(usize::try_from(step).unwrap_or(usize::MAX));
        for (bytes, number) in steps.zip(0_u64..) {
            let first = first.saturating_add(number.saturating_mul(step));
            let read =
                ahead.read(&*self.state.source, bytes, piece.data_offset.saturating_add(first));
            read.map_err(|error| Error::io("read", &self.state.path, error))?;
            self.bytes_read.fetch_add(bytes.len() as u64, Ordering::Relaxed);
            if self.verification == Verification::Checksums {
                let numbers = first / u64::from(chunk_bytes)..;
                for (number, chunk) in numbers.zip(bytes.chunks(chunk_bytes as usize)) {
                    self.state.compare_chunk(name, piece, number, checksum(chunk))?;
                }
            }
            self.monitor.advance(bytes.len() as u64)?;
        }
        Ok(())
    }

    /// Copies the bytes of parts in a piece to their positions, one window after the other.
    fn scatter(
        &self,
        name: &str,
        piece: &PieceEntry,
        wants: Vec<Want<'_, '_>>,
        ahead: &mut Prefetch<'_>,
    ) -> Result<(), Error> {
        let window = self.window();
        let outside = || Error::shards(name, "a part of it lies outside of it".to_owned());
        let mut wants: Vec<_> = wants
            .into_iter()
            .map(|mut want| {
                let next = want.runs.next();
                (want, next)
            })
            .collect();
        let mut held = Vec::new();
        loop {
            let next = wants.iter().filter_map(|(_, next)| Some(next.as_ref()?.from)).min();
            let Some(from) = next else { return Ok(()) };
            // Read directly to the position, if one part needs all bytes.
            if let [(want, next)] = &mut wants[..]
                && let Some(run) = next
            {
                let whole = whole_windows(piece, window, run.from, run.bytes);
                if whole > 0 {
                    let mut bytes = want.bytes.lock().unwrap_or_else(PoisonError::into_inner);
                    let target = usize::try_from(run.to).ok().and_then(|to| bytes.get_mut(to..));
                    let target = target.and_then(|target| target.get_mut(..whole as usize));
                    self.fill(name, piece, run.from, target.ok_or_else(outside)?, ahead)?;
                    run.from += whole;
                    run.to += whole;
                    run.bytes -= whole;
                    if run.bytes == 0 {
                        *next = want.runs.next();
                    }
                    continue;
                }
            }
            let begin = from / window * window;
            let length = piece.data_bytes.saturating_sub(begin).min(window);
            held.resize(usize::try_from(length).map_err(|_| outside())?, 0);
            if from - begin >= length {
                return Err(outside());
            }
            self.fill(name, piece, begin, &mut held, ahead)?;
            for (want, next) in &mut wants {
                want.copy(next, begin, &held).ok_or_else(outside)?;
            }
        }
    }

    /// Returns the size of a window in bytes: whole chunks, if they are verified.
    fn window(&self) -> u64 {
        match self.verification {
            Verification::Checksums => u64::from(self.state.header.chunk_bytes).max(WINDOW_BYTES),
            Verification::Skipped => WINDOW_BYTES,
        }
    }

    /// Returns the byte ranges that a job reads, in order.
    fn ranges(&self, job: &Job<'_, '_>) -> Vec<Range<u64>> {
        let range = |piece: &PieceEntry, first: u64, bytes: u64| {
            let begin = piece.data_offset.saturating_add(first);
            begin..begin.saturating_add(bytes)
        };
        let (piece, wants) = match job {
            Job::Span { piece, first, bytes, .. } => {
                return vec![range(piece, *first, bytes.len() as u64)];
            }
            Job::Scatter { piece, wants, .. } => (piece, wants),
        };
        let window = self.window();
        let mut each = Vec::new();
        for want in wants {
            let mut own = Vec::new();
            for run in want.runs.clone() {
                let first = run.from / window * window;
                let end = (run.from + run.bytes).div_ceil(window).saturating_mul(window);
                let bytes = end.min(piece.data_bytes).saturating_sub(first);
                join(&mut own, range(piece, first, bytes));
            }
            each.append(&mut own);
        }
        each.sort_unstable_by_key(|range| range.start);
        let mut ranges = Vec::new();
        each.into_iter().for_each(|next| join(&mut ranges, next));
        ranges
    }
}

/// Appends a range, merging it with an adjacent one.
fn join(ranges: &mut Vec<Range<u64>>, next: Range<u64>) {
    match ranges.last_mut() {
        Some(last) if (last.start..=last.end).contains(&next.start) => {
            last.end = last.end.max(next.end);
        }
        _ => ranges.push(next),
    }
}

/// Returns the number of bytes of whole windows, or up to the end of the piece, at the beginning of
/// a run of `left` bytes.
fn whole_windows(piece: &PieceEntry, window: u64, from: u64, left: u64) -> u64 {
    match (from % window, from + left == piece.data_bytes) {
        (0, true) => left,
        (0, false) => left / window * window,
        _ => 0,
    }
}

#[cfg(test)]
mod tests;
