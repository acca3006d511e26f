//! Tensors, and parts of them, into memory of this process.
//!
//! Memory of this process can be written at any place, so that nothing is collected on the way, as
//! for devices: whole pieces are read straight to where they belong, several at a time, and a part
//! of an array costs the chunks that it crosses. This must never know who owns the memory.

use std::{
    num::NonZero,
    ops::Range,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    thread::{self, available_parallelism},
};

use smallvec::SmallVec;

use super::{
    Reader, Tensor,
    ahead::Ahead,
    assemble::{element_bytes, pieces_of},
    open_state::OpenState,
};
use crate::{
    device_state::{
        Error,
        format::{checksum, index::PieceEntry},
        shards::Block,
    },
    files::{Phase, Watch},
    ifrt::IndexDomain,
};

/// Bytes that are read at once, unless a chunk is longer: they are summed while they are in the
/// processor's caches.
const STEP_BYTES: u64 = 1 << 20;
/// Bytes of a whole piece that one thread reads before it takes the next.
const SPAN_BYTES: u64 = 8 << 20;
/// Bytes of a window of a piece of which little is wanted, where chunks are smaller or do not
/// count.
const WINDOW_BYTES: u64 = 64 << 10;

/// Choice between comparing bytes with their checksums and trusting them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Verification {
    /// Every chunk of which something is read, before the work ends.
    #[default]
    Checksums,
    /// No chunk: bytes that were damaged are taken as they are.
    Skipped,
}

/// Memory of this process that a tensor, or a part of one, is read into.
#[derive(Debug)]
pub struct HostTarget<'a> {
    tensor: &'a Tensor,
    block: Block,
    bytes: &'a mut [u8],
}

impl<'a> HostTarget<'a> {
    /// All of `tensor` into `bytes`: row-major, little endian, elements narrower than a byte in a
    /// byte each. The memory is as long as the tensor.
    pub fn new(tensor: &'a Tensor, bytes: &'a mut [u8]) -> Self {
        Self { tensor, block: Block::whole(tensor.spec().shape()), bytes }
    }

    /// The part `domain` of `tensor` into `bytes`, which are as long as that part.
    ///
    /// # Errors
    /// [`Error::Invalid`] if the part does not lie in the tensor.
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
    /// Reads tensors of this state, or parts of them, into memory of this process; answers how many
    /// bytes of data were read for it.
    ///
    /// Of a part, the chunks that it crosses are read, or where nothing is verified, little more
    /// than its own bytes. After an error the memory holds anything.
    ///
    /// ```
    /// use serdes::device_state::{HostTarget, Reader, Verification, Versions, Watch, Writer};
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
    /// reader.read_into(targets, Verification::Checksums, &Watch::new())?;
    /// assert_eq!((whole, part), ([1, 2, 3, 4, 5, 6], [2, 3, 5, 6]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::SizeMismatch`] if memory is not as long as what goes into it;
    /// [`Error::Unsupported`] for strings, which [`Tensor::strings`] gives; [`Error::Invalid`] if a
    /// tensor is of another reader; [`Error::Corrupt`] if the bytes are damaged; or if they cannot
    /// be read, or the work was stopped.
    pub fn read_into(
        &self,
        targets: Vec<HostTarget<'_>>,
        verification: Verification,
        watch: &Watch,
    ) -> Result<u64, Error> {
        let total = targets.iter().map(|target| target.bytes.len() as u64).sum();
        watch.begin(Phase::Restore, total);
        let work = Work::new(self, verification, watch);
        let mut jobs = Vec::new();
        for target in targets {
            work.add_jobs(target, &mut jobs)?;
        }
        jobs.sort_by_key(Job::begin);
        work.run(jobs, total)?;
        Ok(work.bytes_read.into_inner())
    }

    /// The elements of a tensor of strings of this state, as [`Tensor::strings`] gives them, but as
    /// [`read_into`](Self::read_into) reads: whether they are verified is up to the caller, and the
    /// work can be stopped.
    ///
    /// ```
    /// use serdes::device_state::{Reader, Verification, Versions, Watch, Writer};
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
    /// let found = reader.read_strings(&names, Verification::Skipped, &Watch::new())?;
    /// assert_eq!(found, [&b"a"[..], b"bcd"]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Tensor::strings`]; [`Error::Invalid`] if the tensor is of another reader; or if the
    /// work was stopped.
    pub fn read_strings(
        &self,
        tensor: &Tensor,
        verification: Verification,
        watch: &Watch,
    ) -> Result<Vec<Vec<u8>>, Error> {
        tensor.check_strings()?;
        let work = Work::new(self, verification, watch);
        work.check_own(tensor)?;
        let Some((_, piece)) = tensor.pieces().next().filter(|_| tensor.is_whole()) else {
            return tensor.strings();
        };
        watch.begin(Phase::Restore, piece.data_bytes);
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

/// Work of one thread at a time.
enum Job<'a> {
    /// Bytes of one piece, whole chunks or up to its end, to where they belong.
    Span { name: &'a str, piece: PieceEntry, first: u64, bytes: &'a mut [u8] },
    /// A part of an array out of whatever pieces hold some of it.
    Gather { name: &'a str, sources: Vec<GatherSource>, bytes: &'a mut [u8] },
}

/// A piece that holds some of a part.
struct GatherSource {
    piece: PieceEntry,
    runs: Runs,
}

impl Job<'_> {
    /// Offset of its first byte in the state.
    fn begin(&self) -> u64 {
        match self {
            Self::Span { piece, first, .. } => piece.data_offset.saturating_add(*first),
            Self::Gather { sources, .. } => {
                sources.iter().map(|source| source.piece.data_offset).min().unwrap_or(0)
            }
        }
    }
}

/// State that the threads share.
struct Work<'a> {
    state: &'a OpenState,
    verification: Verification,
    watch: &'a Watch,
    bytes_read: AtomicU64,
    /// A thread failed: the others need not go on.
    stop: AtomicBool,
}

impl<'a> Work<'a> {
    fn new(reader: &'a Reader, verification: Verification, watch: &'a Watch) -> Self {
        Self {
            state: &reader.state,
            verification,
            watch,
            bytes_read: AtomicU64::new(0),
            stop: AtomicBool::new(false),
        }
    }
}

impl Work<'_> {
    /// Fails for a tensor of another reader.
    fn check_own(&self, tensor: &Tensor) -> Result<(), Error> {
        if std::ptr::eq(self.state, &*tensor.state) {
            return Ok(());
        }
        Err(Error::invalid(format!("{:?} is a tensor of another reader", tensor.name())))
    }

    /// A whole piece into `bytes`, some whole chunks at a time.
    fn spans<'a>(
        &self,
        name: &'a str,
        piece: PieceEntry,
        bytes: &'a mut [u8],
    ) -> impl Iterator<Item = Job<'a>> {
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

    /// Cuts a target into jobs.
    fn add_jobs<'a>(&self, target: HostTarget<'a>, jobs: &mut Vec<Job<'a>>) -> Result<(), Error> {
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
        let sources = pieces.into_iter().zip(&blocks).filter_map(|((_, piece), held)| {
            Some(GatherSource { piece, runs: Runs::between(held, &block, element)? })
        });
        jobs.push(Job::Gather { name, sources: sources.collect(), bytes });
        Ok(())
    }

    /// Does the jobs, several at a time where that is worth the threads.
    fn run(&self, jobs: Vec<Job<'_>>, total: u64) -> Result<(), Error> {
        if self.state.source.answers_late() {
            // Asked for ahead, front to back.
            let ranges: Vec<_> = jobs.iter().flat_map(|job| self.ranges(job)).collect();
            let mut ahead = Ahead::new(ranges.into_iter());
            return jobs.into_iter().try_for_each(|job| self.perform(job, &mut ahead));
        }
        let worth = usize::try_from(total / SPAN_BYTES).unwrap_or(usize::MAX);
        let threads = available_parallelism().map_or(1, NonZero::get).min(jobs.len()).min(worth);
        let jobs = Mutex::new(jobs.into_iter());
        let take = || jobs.lock().unwrap_or_else(PoisonError::into_inner).next();
        let each = || {
            let mut ahead = Ahead::new(std::iter::empty());
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

    fn perform(&self, job: Job<'_>, ahead: &mut Ahead<'_>) -> Result<(), Error> {
        match job {
            Job::Span { name, piece, first, bytes } => {
                self.fill(name, &piece, first, bytes, ahead)?;
                Ok(self.watch.check()?)
            }
            Job::Gather { name, sources, bytes } => {
                for source in sources {
                    self.gather(name, source, bytes, ahead)?;
                }
                Ok(self.watch.check()?)
            }
        }
    }

    /// Reads bytes of a piece from its byte `first` on. Where they are verified they begin with a
    /// chunk and are whole chunks, or end with the piece.
    fn fill(
        &self,
        name: &str,
        piece: &PieceEntry,
        first: u64,
        bytes: &mut [u8],
        ahead: &mut Ahead<'_>,
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
            self.watch.advance(bytes.len() as u64)?;
        }
        Ok(())
    }

    /// Brings what a piece has of a part to where it belongs.
    fn gather(
        &self,
        name: &str,
        source: GatherSource,
        bytes: &mut [u8],
        ahead: &mut Ahead<'_>,
    ) -> Result<(), Error> {
        let GatherSource { piece, runs } = source;
        let window = self.window();
        let outside = || Error::shards(name, "a part of it lies outside of it".to_owned());
        let mut held: (Option<u64>, Vec<u8>) = (None, Vec::new());
        for Run { mut from, mut to, bytes: mut left } in runs {
            while left > 0 {
                let number = from / window;
                let begin = number * window;
                let whole = whole_windows(&piece, window, from, left);
                let target = usize::try_from(to).ok().and_then(|to| bytes.get_mut(to..));
                let target = target.ok_or_else(outside)?;
                let now = if whole > 0 {
                    let target = target.get_mut(..whole as usize).ok_or_else(outside)?;
                    self.fill(name, &piece, from, target, ahead)?;
                    whole
                } else {
                    if held.0 != Some(number) {
                        let length = piece.data_bytes.saturating_sub(begin).min(window);
                        held.1.resize(usize::try_from(length).map_err(|_| outside())?, 0);
                        self.fill(name, &piece, begin, &mut held.1, ahead)?;
                        held.0 = Some(number);
                    }
                    let rest = held.1.get((from - begin) as usize..).ok_or_else(outside)?;
                    let now = left.min(rest.len() as u64);
                    let both = rest.get(..now as usize).zip(target.get_mut(..now as usize));
                    let (rest, target) = both.filter(|_| now > 0).ok_or_else(outside)?;
                    target.copy_from_slice(rest);
                    now
                };
                (from, to, left) = (from + now, to + now, left - now);
            }
        }
        Ok(())
    }

    /// Bytes of a window: whole chunks, where those are verified.
    fn window(&self) -> u64 {
        match self.verification {
            Verification::Checksums => u64::from(self.state.header.chunk_bytes).max(WINDOW_BYTES),
            Verification::Skipped => WINDOW_BYTES,
        }
    }

    /// Byte ranges that a job reads, in its order.
    fn ranges(&self, job: &Job<'_>) -> Vec<Range<u64>> {
        let range = |piece: &PieceEntry, first: u64, bytes: u64| {
            let begin = piece.data_offset.saturating_add(first);
            begin..begin.saturating_add(bytes)
        };
        let sources = match job {
            Job::Span { piece, first, bytes, .. } => {
                return vec![range(piece, *first, bytes.len() as u64)];
            }
            Job::Gather { sources, .. } => sources,
        };
        let window = self.window();
        let mut ranges: Vec<Range<u64>> = Vec::new();
        for GatherSource { piece, runs } in sources {
            for run in runs.clone() {
                let first = run.from / window * window;
                let end = (run.from + run.bytes).div_ceil(window).saturating_mul(window);
                let bytes = end.min(piece.data_bytes).saturating_sub(first);
                let next = range(piece, first, bytes);
                match ranges.last_mut() {
                    Some(last) if (last.start..=last.end).contains(&next.start) => {
                        last.end = last.end.max(next.end);
                    }
                    _ => ranges.push(next),
                }
            }
        }
        ranges
    }
}

/// Bytes of whole windows, or up to the end of the piece, with which a run of `left` bytes begins.
fn whole_windows(piece: &PieceEntry, window: u64, from: u64, left: u64) -> u64 {
    match (from % window, from + left == piece.data_bytes) {
        (0, true) => left,
        (0, false) => left / window * window,
        _ => 0,
    }
}

/// Bytes that are contiguous both in a piece and in the wanted part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Run {
    from: u64,
    to: u64,
    bytes: u64,
}

/// Runs of a part within a piece, in the order of the piece.
#[derive(Clone, Debug)]
struct Runs {
    /// Extent, stride in the piece and stride in the part, in bytes, of each dimension that is
    /// stepped through.
    outer: SmallVec<[Dimension; 4]>,
    position: SmallVec<[u64; 4]>,
    next: Option<Run>,
}

#[derive(Clone, Copy, Debug)]
struct Dimension {
    extent: u64,
    from: u64,
    to: u64,
}

impl Runs {
    /// Runs that piece and part have in common; `None` if they do not intersect.
    fn between(piece: &Block, part: &Block, element: u64) -> Option<Self> {
        let mut stride = Dimension { extent: 1, from: element, to: element };
        let mut run = Run { from: 0, to: 0, bytes: element };
        let mut outer: SmallVec<[Dimension; 4]> = SmallVec::new();
        let mut joined = true;
        for (&(has, held), &(wants, wanted)) in piece.dims.iter().zip(&part.dims).rev() {
            let begin = has.max(wants);
            let end = has.saturating_add(held).min(wants.saturating_add(wanted));
            let extent = end.checked_sub(begin).filter(|extent| *extent > 0)?;
            run.from = run.from.checked_add((begin - has).checked_mul(stride.from)?)?;
            run.to = run.to.checked_add((begin - wants).checked_mul(stride.to)?)?;
            if joined {
                run.bytes = run.bytes.checked_mul(extent)?;
            } else {
                outer.push(Dimension { extent, ..stride });
            }
            // What is left of a row has a gap behind it.
            joined &= extent == held && extent == wanted;
            stride.from = stride.from.checked_mul(held)?;
            stride.to = stride.to.checked_mul(wanted)?;
        }
        outer.reverse();
        let position = SmallVec::from_elem(0, outer.len());
        Some(Self { outer, position, next: Some(run) })
    }
}

impl Iterator for Runs {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let run = self.next?;
        let mut next = run;
        self.next = None;
        for (dimension, position) in self.outer.iter().zip(&mut self.position).rev() {
            *position += 1;
            if *position < dimension.extent {
                next.from += dimension.from;
                next.to += dimension.to;
                self.next = Some(next);
                break;
            }
            *position = 0;
            next.from -= (dimension.extent - 1) * dimension.from;
            next.to -= (dimension.extent - 1) * dimension.to;
        }
        Some(run)
    }
}

#[cfg(test)]
mod tests;
