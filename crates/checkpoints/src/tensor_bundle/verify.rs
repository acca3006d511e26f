//! Verification of a whole bundle, without its data and with it.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, AtomicUsize, Ordering},
};

use serdes_files::{Crc32c, Phase, ProgressMonitor, combine};
use serdes_graph_format::data_type::{DataType, describe};

use super::{
    Bundle,
    data::{StoredBytes, check_crc, read_failed},
    entry::TensorEntry,
    error::BundleError,
    reader::Listing,
};

/// Size of the parts in which large tensors are shared between threads, in bytes.
const SEGMENT: u64 = 8 << 20;
/// Bytes that a thread reads at a time; they stay in the processor's cache for the checksum.
const STEP: usize = 128 << 10;
/// Number of small tensors that a thread takes at a time.
const BATCH: usize = 64;

/// The types whose pieces TensorFlow 2.21 joins.
pub(super) const JOINED_BY_TENSORFLOW: [DataType; 17] = [
    DataType::Float32,
    DataType::Float64,
    DataType::Int32,
    DataType::Uint8,
    DataType::Int16,
    DataType::Int8,
    DataType::Complex64,
    DataType::Complex128,
    DataType::Int64,
    DataType::Bool,
    DataType::Qint32,
    DataType::Quint8,
    DataType::Qint8,
    DataType::Bfloat16,
    DataType::Int4,
    DataType::Uint4,
    DataType::Float4E2m1fn,
];

/// Options of the verification of a checkpoint.
#[derive(Clone, Copy, Default)]
pub struct VerifyOptions<'a> {
    /// True if every byte of every tensor is read and compared with its checksum.
    pub(crate) verify_data: bool,
    /// Number of threads that read data; 0 for as many as the machine has.
    threads: usize,
    monitor: Option<&'a ProgressMonitor>,
}

impl std::fmt::Debug for VerifyOptions<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { verify_data, threads, .. } = self;
        f.debug_struct("VerifyOptions")
            .field("verify_data", verify_data)
            .field("threads", threads)
            .finish_non_exhaustive()
    }
}

impl<'a> VerifyOptions<'a> {
    /// Sets whether the data is read and compared with its checksums.
    #[must_use]
    pub fn with_data(self, verify_data: bool) -> Self {
        Self { verify_data, ..self }
    }

    /// Sets the number of threads; 0 for as many as the machine has.
    #[must_use]
    pub fn with_threads(self, threads: usize) -> Self {
        Self { threads, ..self }
    }

    /// Sets a monitor, which is told the number of bytes read and may stop reading: the report is
    /// then incomplete.
    #[must_use]
    pub fn with_monitor(self, monitor: &'a ProgressMonitor) -> Self {
        Self { monitor: Some(monitor), ..self }
    }

    /// Returns true if reading was stopped.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.monitor.is_some_and(ProgressMonitor::is_cancelled)
    }

    /// Reports the number of bytes that will be read.
    fn begin(&self, bytes: u64) {
        if let Some(monitor) = self.monitor {
            monitor.begin(Phase::Verify, bytes);
        }
    }

    /// Reports bytes that were read. The caller asks [`is_cancelled`](Self::is_cancelled) if
    /// reading is to stop.
    pub(crate) fn advance(&self, bytes: u64) {
        if let Some(monitor) = self.monitor {
            monitor.advance(bytes).unwrap_or_default();
        }
    }
}

/// The result of verifying a bundle that can be opened.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct BundleReport {
    /// The tensors, in the order of the index.
    pub tensors: Vec<TensorEntry>,
    /// Defects that keep no tensor from being restored, and, if the data was not verified, defects
    /// that would.
    pub warnings: Vec<BundleError>,
    /// Tensors that cannot be restored; empty unless the data was verified.
    pub errors: Vec<BundleError>,
    /// Number of bytes that were read and whose checksums match.
    pub verified_bytes: u64,
}

/// A unit with one checksum: a tensor or a piece of one.
struct Stored {
    entry: TensorEntry,
    place: StoredBytes,
    /// Checksums of the segments, filled in as they are computed.
    segments: Vec<AtomicU64>,
}

impl Stored {
    /// Returns the number of its bytes that are read.
    fn read_bytes(&self) -> u64 {
        self.place.size.min(self.place.shard.len)
    }
}

impl Bundle {
    /// Checks the table, the header, and the entry and location of every tensor; with
    /// [`VerifyOptions::with_data`], also every byte of every tensor, in parallel. The versions are
    /// not checked here.
    #[must_use]
    pub fn verify(&self, options: &VerifyOptions<'_>) -> BundleReport {
        let mut report =
            BundleReport { warnings: self.header_defects(), ..BundleReport::default() };
        let path = super::files::index_path(self.prefix());
        let mut blocks = self.table().verify_blocks();
        // Lost data blocks are reported again when the tensors are listed.
        blocks.retain(|defect| !matches!(defect, crate::table::TableDefect::Block(_)));
        report.warnings.extend(
            blocks
                .into_iter()
                .map(|defect| BundleError::TableDefect { path: path.clone(), defect }),
        );
        let Listing { mut tensors, defects } = self.tensors();
        // If the header's key occurs again, TensorFlow lists it as a name, but finds the header
        // under it: there is no such tensor.
        tensors.retain(|tensor| !tensor.key.is_empty());
        let (lost, harmless): (Vec<_>, Vec<_>) = defects.into_iter().partition(is_loss);
        report.warnings.extend(harmless);
        let mut errors = lost;
        let mut cursor = self.table().cursor();
        let mut stored = Vec::new();
        for tensor in &tensors {
            // Looked up by name, as in a restore: an index out of order lists tensors that a search
            // does not find.
            let examined = self
                .find(&mut cursor, &tensor.key)
                .and_then(|entry| self.examine(&entry, &mut stored));
            errors.extend(examined.err());
            let joins = tensor
                .data_type()
                .is_none_or(|data_type| JOINED_BY_TENSORFLOW.contains(&data_type));
            if tensor.raw.slices.len() > 1 && !joins {
                let (name, found, pieces) =
                    (tensor.display(), describe(tensor.raw.dtype), tensor.raw.slices.len());
                report.warnings.push(BundleError::NotJoined { name, found, pieces });
            }
        }
        if options.verify_data {
            self.verify_data(stored, options, &mut report, &mut errors);
            report.errors = errors;
        } else {
            report.warnings.extend(errors);
        }
        report.tensors = tensors;
        report
    }

    /// Checks an entry without its data, and records the location of the data.
    fn examine(&self, entry: &TensorEntry, stored: &mut Vec<Stored>) -> Result<(), BundleError> {
        let mut note = |entry: TensorEntry| {
            let place = self.place(&entry)?;
            let fixed = place.data_type.element_size().is_some();
            let segments = if fixed { place.size.div_ceil(SEGMENT).max(1) } else { 0 };
            stored.push(Stored {
                entry,
                place,
                segments: (0..segments).map(|_| AtomicU64::new(0)).collect(),
            });
            Ok(())
        };
        if !entry.is_partitioned() {
            return note(entry.clone());
        }
        entry.checked_type()?;
        self.covering_pieces(entry)?.into_iter().try_for_each(|piece| note(piece.entry))
    }

    fn verify_data(
        &self,
        mut stored: Vec<Stored>,
        options: &VerifyOptions<'_>,
        report: &mut BundleReport,
        errors: &mut Vec<BundleError>,
    ) {
        errors.extend(cut_off_overlapping(&mut stored));
        options.begin(stored.iter().map(Stored::read_bytes).sum());
        // Sorted by file and offset, so that the disk reads forward.
        stored.sort_by_key(|part| (part.entry.raw.shard, part.place.offset));

        let verification = Verification::new(&stored, options);
        let threads = verification.threads;
        let work = || verification.work(self);
        std::thread::scope(|scope| {
            for _ in 1..threads {
                // If no thread can be started, this thread does the work.
                let _ = std::thread::Builder::new().spawn_scoped(scope, work);
            }
            work();
        });
        if options.is_cancelled() {
            return;
        }
        report.verified_bytes = verification.read.load(Ordering::Relaxed);
        errors.extend(verification.errors());
    }

    /// Reads a segment of a tensor, or a whole tensor of strings, and returns the number of bytes.
    fn verify_unit(
        &self,
        stored: &Stored,
        segment: usize,
        buffer: &mut Vec<u8>,
    ) -> Result<u64, BundleError> {
        let Stored { entry, place, segments } = stored;
        match place.data_type {
            DataType::String => self.for_each_string(entry, |_| ())?,
            DataType::Variant => self.for_each_variant(entry, |_| ())?,
            _ => {
                let start = (segment as u64).saturating_mul(SEGMENT);
                let len = place.size.saturating_sub(start).min(SEGMENT);
                let (mut crc, mut at) = (Crc32c::new(), 0);
                while at < len {
                    let count = usize::try_from(len - at).unwrap_or(STEP).min(STEP);
                    buffer.resize(STEP.min(buffer.len().max(count)), 0);
                    let chunk = buffer.get_mut(..count).unwrap_or_default();
                    let offset = place.offset.saturating_add(start).saturating_add(at);
                    let read = place.shard.source.read_exact_at(chunk, offset);
                    read.map_err(|source| read_failed(&place.shard, entry, source))?;
                    crc.update(chunk);
                    at += count as u64;
                }
                if let Some(slot) = segments.get(segment) {
                    slot.store(crc.value().into(), Ordering::Relaxed);
                }
                return Ok(len);
            }
        }
        Ok(stored.read_bytes())
    }
}

/// Cuts the list where its parts exceed what their files could hold without overlaps, since a small
/// file could then take very long; returns the error in this case.
fn cut_off_overlapping(stored: &mut Vec<Stored>) -> Option<BundleError> {
    let mut shards: Vec<(i32, u64)> =
        stored.iter().map(|part| (part.entry.raw.shard, part.place.shard.len)).collect();
    shards.sort_unstable();
    shards.dedup();
    let len = shards.iter().fold(0u64, |sum, (_, len)| sum.saturating_add(*len));
    let limit = len.saturating_mul(4).saturating_add(64 << 20);
    let mut bytes = 0u64;
    let reached = stored.iter().position(|part| {
        bytes = bytes.saturating_add(part.read_bytes());
        bytes > limit
    })?;
    stored.truncate(reached);
    Some(BundleError::Overlapping { bytes, len })
}

/// The state that the reading threads share.
struct Verification<'a> {
    stored: &'a [Stored],
    options: &'a VerifyOptions<'a>,
    threads: usize,
    /// Part and segment, in reading order.
    units: Vec<(usize, usize)>,
    /// Number of units that a thread takes at a time.
    batch: usize,
    /// The first unit that no thread has taken.
    next: AtomicUsize,
    /// The errors, each with the index of its part.
    found: Mutex<Vec<(usize, BundleError)>>,
    /// Number of bytes that were read.
    read: AtomicU64,
}

impl<'a> Verification<'a> {
    fn new(stored: &'a [Stored], options: &'a VerifyOptions<'a>) -> Self {
        let mut units = Vec::new();
        for (part, stored) in stored.iter().enumerate() {
            units.extend((0..stored.segments.len().max(1)).map(|segment| (part, segment)));
        }
        let threads = match options.threads {
            0 => std::thread::available_parallelism().map_or(1, usize::from),
            threads => threads,
        };
        let batch = (units.len() / (threads * 8).max(1)).clamp(1, BATCH);
        Self {
            stored,
            options,
            threads: threads.clamp(1, 64).min(units.len().div_ceil(batch).max(1)),
            units,
            batch,
            next: AtomicUsize::new(0),
            found: Mutex::default(),
            read: AtomicU64::new(0),
        }
    }

    /// Reads units that no other thread has taken, until none is left.
    fn work(&self, bundle: &Bundle) {
        let mut buffer = Vec::new();
        loop {
            let start = self.next.fetch_add(self.batch, Ordering::Relaxed);
            let end = self.units.len().min(start.saturating_add(self.batch));
            let mine = self.units.get(start..end).unwrap_or_default();
            if mine.is_empty() || !self.read(bundle, mine, &mut buffer) {
                return;
            }
        }
    }

    /// Reads these units; returns false if reading is to stop.
    fn read(&self, bundle: &Bundle, units: &[(usize, usize)], buffer: &mut Vec<u8>) -> bool {
        let mut bytes = 0;
        for (part, segment) in units {
            if self.options.is_cancelled() {
                return false;
            }
            let Some(stored) = self.stored.get(*part) else { continue };
            match bundle.verify_unit(stored, *segment, buffer) {
                Ok(count) => bytes += count,
                Err(error) => {
                    self.found.lock().unwrap_or_else(PoisonError::into_inner).push((*part, error))
                }
            }
            if bytes >= SEGMENT {
                self.count_read(std::mem::take(&mut bytes));
            }
        }
        self.count_read(bytes);
        true
    }

    /// Adds `bytes` to the total, and to the progress that the caller sees.
    fn count_read(&self, bytes: u64) {
        self.read.fetch_add(bytes, Ordering::Relaxed);
        self.options.advance(bytes);
    }

    /// Returns the errors, one per part, in the order of the files.
    fn errors(self) -> impl Iterator<Item = BundleError> {
        let mut found = self.found.into_inner().unwrap_or_else(PoisonError::into_inner);
        found.sort_by_key(|(part, _)| *part);
        found.dedup_by_key(|(part, _)| *part);
        let mut failed = found.iter().map(|(part, _)| *part).peekable();
        let mut mismatches = Vec::new();
        for (part, stored) in self.stored.iter().enumerate() {
            if failed.next_if_eq(&part).is_some() {
                continue;
            }
            mismatches.extend(compare(stored).err().map(|error| (part, error)));
        }
        found.extend(mismatches);
        found.sort_by_key(|(part, _)| *part);
        found.into_iter().map(|(_, error)| error)
    }
}

/// Joins the checksums of the segments and compares the result with the index.
fn compare(stored: &Stored) -> Result<(), BundleError> {
    let Stored { entry, place, segments } = stored;
    if segments.is_empty() {
        return Ok(());
    }
    let mut crc = 0;
    let mut left = place.size;
    for (i, segment) in segments.iter().enumerate() {
        let len = left.min(SEGMENT);
        // The slots hold 32-bit checksums.
        let part = segment.load(Ordering::Relaxed) as u32;
        crc = if i == 0 { part } else { combine(crc, part, len) };
        left -= len;
    }
    check_crc(entry, crc)
}

/// Returns true if a defect of a listing keeps tensors from being restored.
fn is_loss(defect: &BundleError) -> bool {
    use crate::table::TableDefect;
    match defect {
        BundleError::Entry { .. } | BundleError::TooManyNames { .. } => true,
        BundleError::TableDefect { defect, .. } => matches!(defect, TableDefect::Block(_)),
        _ => false,
    }
}
