//! The names of a graph's nodes, as hashes, to detect repeated and undefined names.
//!
//! A table of a million names is larger than the caches, so a look-up waits for memory. No result
//! is needed immediately: look-ups are queued, and a batch first touches all its buckets, which the
//! processor loads in parallel, and is then processed. In a large graph another thread does this
//! while reading continues.

use std::{
    sync::mpsc::{Receiver, SyncSender, channel, sync_channel},
    thread::{self, JoinHandle},
};

use super::edges::{EdgeKind, EdgeKinds, FastSignature, SIGNATURE_BITS};

/// Hashes in one line of the processor's cache, used slots first; a low half of zero marks a free
/// slot.
///
/// Stored in halves, because every processor compares four 32-bit numbers at once: comparing whole
/// hashes one after another spends more time on mispredicted branches than on the comparisons.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Bucket {
    low: [u32; PLACES],
    high: [u32; PLACES],
}

/// Number of hashes in a bucket.
const PLACES: usize = 8;

impl Bucket {
    /// Returns the halves of a hash: the lower one is never zero, as its lowest bit is set.
    #[inline]
    fn halves(hash: u64) -> (u32, u32) {
        (hash as u32, (hash >> 32) as u32)
    }

    /// Returns the slot of a hash that agrees in the bits of `mask`, and the first free slot if
    /// there is one.
    #[inline]
    #[expect(
        clippy::indexing_slicing,
        reason = "over the places of an array: a bound that the compiler drops"
    )]
    fn look(&self, hash: u64, mask: u64) -> (Option<usize>, Option<usize>) {
        let (low, high) = Self::halves(hash);
        let (low_mask, high_mask) = Self::halves(mask);
        let (mut same, mut free) = (0_u32, 0_u32);
        // One bit per slot: no branches, and a fixed number of slots, so that the loop is unrolled.
        for place in 0..PLACES {
            let differs =
                (self.low[place] ^ low) & low_mask | (self.high[place] ^ high) & high_mask;
            same |= u32::from(differs == 0) << place;
            free |= u32::from(self.low[place] == 0) << place;
        }
        let first = |bits: u32| (bits != 0).then_some(bits.trailing_zeros() as usize);
        (first(same), first(free))
    }

    /// Returns the hash in a slot.
    #[inline]
    fn at(&self, place: usize) -> u64 {
        let half = |halves: &[u32; PLACES]| u64::from(halves.get(place).copied().unwrap_or(0));
        half(&self.high) << 32 | half(&self.low)
    }

    /// Stores a hash in a free slot.
    #[inline]
    fn put(&mut self, hash: u64, place: usize) {
        if let (Some(low), Some(high)) = (self.low.get_mut(place), self.high.get_mut(place)) {
            (*low, *high) = Self::halves(hash);
        }
    }

    fn hashes(&self) -> impl Iterator<Item = u64> {
        let halves = self.low.into_iter().zip(self.high);
        halves
            .filter(|(low, _)| *low != 0)
            .map(|(low, high)| u64::from(high) << 32 | u64::from(low))
    }
}

/// The position of the node signature number in a hash, if node signatures are kept.
const SIGNATURE_AT: u32 = 1;
const SIGNATURE_MASK: u64 = ((1 << SIGNATURE_BITS) - 1) << SIGNATURE_AT;

/// Returns a hash with the number of a node signature in it.
#[inline]
pub(super) fn with_signature(hash: u64, signature: FastSignature) -> u64 {
    hash & !SIGNATURE_MASK | u64::from(signature) << SIGNATURE_AT
}

/// Returns the number of the node signature that is in a hash.
#[inline]
pub(super) fn signature_of(hash: u64) -> FastSignature {
    ((hash & SIGNATURE_MASK) >> SIGNATURE_AT) as FastSignature
}

/// Returns true if two hashes that hold node signatures belong to one name.
#[inline]
pub(super) fn is_same_name(hash: u64, other: u64) -> bool {
    (hash ^ other) & !SIGNATURE_MASK == 0
}

const SMALLEST_TABLE: usize = 1024;

/// Number of hashes that are processed together.
const BATCH: usize = 128;

/// Number of hashes that are passed to another thread together.
const HANDED: usize = 16384;

/// Number of names from which another thread pays off, and number of names required for an estimate
/// of the total.
const LARGE: u128 = 1 << 16;
const SAMPLE: usize = 1 << 12;

/// The result of the name table: duplicate names, and uses before definitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NameFlags {
    /// An input does not name an earlier node: there may be a cycle, or the node may not exist.
    pub(super) forward_references: bool,
    /// Two names have one hash, so they may be equal.
    pub(super) suspected_duplicates: bool,
}

/// A table of hashes of names: a hash is in the bucket that it selects, or, if that is full, in the
/// next.
#[derive(Debug)]
struct Table {
    buckets: Vec<Bucket>,
    used: usize,
    /// Length of the file in bytes, and the number of bytes read, for estimating the number of
    /// names still to come.
    size: u64,
    passed: u64,
    flags: NameFlags,
    /// The bits of a hash that are not the number of a node signature.
    mask: u64,
    edges: EdgeKinds,
}

/// A batch of work for the other thread.
#[derive(Debug, Default)]
struct Work {
    /// Hashes to insert (lowest bit set) or to look up (lowest bit clear), in order.
    queue: Vec<u64>,
    /// For each look-up, the edge that it resolves; empty unless node signatures are kept.
    edges: Vec<EdgeKind>,
    /// The end of the last node in the file.
    passed: u64,
}

/// Another thread that owns the table.
#[derive(Debug)]
struct Worker {
    full: SyncSender<Work>,
    spent: Receiver<Work>,
    thread: JoinHandle<Table>,
}

#[derive(Debug)]
enum Holder {
    Here(Table),
    Elsewhere(Worker),
    /// The other thread has ended: nothing is known.
    Gone,
}

/// The names of one graph.
#[derive(Debug)]
pub(super) struct Names {
    table: Holder,
    work: Work,
    keeps_signatures: bool,
    /// True if no other thread may be started.
    alone: bool,
}

impl Names {
    /// Creates a table for a graph in a file of `size` bytes; `keeps_signatures` if nodes have node
    /// signatures.
    pub(super) fn new(size: u64, keeps_signatures: bool) -> Self {
        let flags = NameFlags { forward_references: false, suspected_duplicates: false };
        let mask = if keeps_signatures { !SIGNATURE_MASK } else { u64::MAX };
        let table = Table { size, flags, mask, ..Table::empty() };
        let work = Work { queue: Vec::with_capacity(BATCH), ..Work::default() };
        Self { table: Holder::Here(table), work, keeps_signatures, alone: false }
    }

    /// Sets the position in the file up to which names were read.
    #[inline]
    pub(super) fn pass(&mut self, at: u64) {
        self.work.passed = at;
    }

    /// Inserts a hash, whose lowest bit must be set.
    #[inline]
    pub(super) fn insert(&mut self, hash: u64) {
        self.enqueue(hash);
    }

    /// Looks up a hash, for an edge from the node of that name.
    #[inline]
    pub(super) fn look_up(&mut self, hash: u64, edge: EdgeKind) {
        if self.keeps_signatures {
            self.work.edges.push(edge);
        }
        self.enqueue(hash & !1);
    }

    #[inline]
    fn enqueue(&mut self, entry: u64) {
        self.work.queue.push(entry);
        if self.work.queue.len() == self.work.queue.capacity() {
            self.work_off();
        }
    }

    /// Processes the queue, or passes it to the other thread.
    #[inline(never)]
    fn work_off(&mut self) {
        match &mut self.table {
            Holder::Here(table) => {
                table.work_off(&self.work);
                self.work.clear();
                if table.used >= SAMPLE && !self.alone && table.expected() >= LARGE {
                    self.hand_over();
                }
            }
            Holder::Elsewhere(worker) => {
                let next = worker.spent.try_recv().unwrap_or_default();
                let full = std::mem::replace(&mut self.work, next);
                self.work.queue.reserve_exact(HANDED);
                if worker.full.send(full).is_err() {
                    self.table = Holder::Gone;
                }
            }
            Holder::Gone => self.work.clear(),
        }
    }

    /// Moves the table to another thread, if a processor is available.
    fn hand_over(&mut self) {
        self.alone = true;
        if thread::available_parallelism().map_or(1, usize::from) < 2 {
            return;
        }
        let (full, work) = sync_channel::<Work>(4);
        let (back, spent) = channel();
        let (give, take) = channel::<Table>();
        let run = move || {
            let Ok(mut table) = take.recv() else { return Table::unknown() };
            for mut part in work {
                table.work_off(&part);
                part.clear();
                // If the other end is closed, the part is freed.
                let _ = back.send(part);
            }
            table
        };
        let Ok(thread) = thread::Builder::new().name("serdes-names".to_owned()).spawn(run) else {
            return;
        };
        if let Holder::Here(table) = std::mem::replace(&mut self.table, Holder::Gone)
            && give.send(table).is_ok()
        {
            self.work.queue = Vec::with_capacity(HANDED);
            self.table = Holder::Elsewhere(Worker { full, spent, thread });
        }
    }

    fn finished(mut self) -> Table {
        self.work_off();
        match self.table {
            Holder::Here(table) => table,
            Holder::Elsewhere(Worker { full, spent: _, thread }) => {
                drop(full);
                thread.join().unwrap_or_else(|_| Table::unknown())
            }
            Holder::Gone => Table::unknown(),
        }
    }

    /// Returns the flags and the kinds of the resolved edges.
    pub(super) fn finish(self) -> (NameFlags, EdgeKinds) {
        let Table { flags, edges, .. } = self.finished();
        (flags, edges)
    }
}

impl Work {
    fn clear(&mut self) {
        self.queue.clear();
        self.edges.clear();
    }
}

impl Table {
    /// Creates a result that sends the graph to the slow path.
    fn unknown() -> Self {
        let flags = NameFlags { forward_references: true, suspected_duplicates: true };
        Self { flags, ..Self::empty() }
    }

    fn empty() -> Self {
        Self {
            buckets: Vec::new(),
            used: 0,
            size: 0,
            passed: 0,
            flags: NameFlags { forward_references: false, suspected_duplicates: false },
            mask: u64::MAX,
            edges: EdgeKinds::default(),
        }
    }

    /// Returns the bucket that a hash selects.
    #[inline]
    fn home(&self, hash: u64) -> usize {
        // The high half of the product spreads the hashes evenly over any number of buckets.
        ((u128::from(hash & self.mask) * self.buckets.len() as u128) >> 64) as usize
    }

    /// Returns the stored hash of a name; inserts it if it is missing and `put` is true.
    #[inline]
    fn find(&mut self, hash: u64, put: bool) -> Option<u64> {
        let mut position = self.home(hash);
        // Some buckets always have room; the bound only makes the termination obvious.
        for _ in 0..self.buckets.len() {
            let bucket = self.buckets.get_mut(position)?;
            let (found, free) = bucket.look(hash, self.mask);
            if let Some(place) = found {
                return Some(bucket.at(place));
            }
            if let Some(place) = free {
                if put {
                    bucket.put(hash, place);
                    self.used += 1;
                }
                return None;
            }
            position = if position + 1 == self.buckets.len() { 0 } else { position + 1 };
        }
        None
    }

    fn work_off(&mut self, work: &Work) {
        self.passed = work.passed;
        let mut edges = work.edges.iter();
        for batch in work.queue.chunks(BATCH) {
            // At seven eighths, almost every hash is at most one bucket away.
            while self.used + batch.len() > self.buckets.len() * 7 {
                self.grow();
            }
            let touched = batch.iter().fold(0, |touched, entry| {
                let bucket = self.buckets.get(self.home(*entry | 1));
                touched | bucket.map_or(0, |Bucket { low: [first, ..], .. }| *first)
            });
            std::hint::black_box(touched);
            for entry in batch {
                let hash = entry | 1;
                let put = *entry == hash;
                let found = self.find(hash, put);
                self.flags.suspected_duplicates |= put & found.is_some();
                self.flags.forward_references |= !put & found.is_none();
                if !put && let (Some(edge), Some(found)) = (edges.next(), found) {
                    self.edges.add(edge.out_of(signature_of(found)));
                }
            }
        }
    }

    /// Estimates the number of names of the whole graph from the part read so far.
    fn expected(&self) -> u128 {
        u128::from(self.size) * self.used as u128 / u128::from(self.passed.max(1))
    }

    /// Enlarges the table for the estimated number of names, but at most 16 times.
    fn grow(&mut self) {
        let expected = self.expected();
        let expected = usize::try_from((expected + expected / 3) / 8).unwrap_or(usize::MAX);
        let buckets = self.buckets.len();
        let buckets = expected
            .clamp((buckets + buckets / 2).max(SMALLEST_TABLE), (buckets * 16).max(SMALLEST_TABLE));
        let old = std::mem::replace(&mut self.buckets, vec![Bucket::default(); buckets]);
        self.used = 0;
        for hash in old.iter().flat_map(Bucket::hashes) {
            self.find(hash, true);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Adds many hashes, looks each of them up, and then runs `then`.
    fn flags(count: u64, then: impl FnOnce(&mut Names)) -> NameFlags {
        let mut names = Names::new(1000, false);
        for number in 1..count {
            let hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            names.pass(number);
            names.insert(hash);
            names.look_up(hash, EdgeKind::CONTROL);
        }
        then(&mut names);
        names.finish().0
    }

    #[test]
    fn what_was_put_in_is_found_however_often_the_table_grew_and_whichever_thread_has_it() {
        for count in [0, 1, 100, 5000, 300_000] {
            let found = flags(count, |_| ());
            assert!(!found.suspected_duplicates && !found.forward_references, "{count}");
            let found = flags(count, |names| names.look_up(2, EdgeKind::CONTROL));
            assert!(!found.suspected_duplicates && found.forward_references, "{count}");
        }
        for count in [5000, 300_000] {
            let again = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(1234) | 1;
            let found = flags(count, |names| names.insert(again));
            assert!(found.suspected_duplicates && !found.forward_references, "{count}");
        }
    }

    #[test]
    fn a_table_takes_little_more_than_its_hashes() {
        let mut names = Names::new(1000, false);
        for number in 1..5000_u64 {
            names.insert(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        }
        assert!(names.finished().buckets.len() * 8 < 4 * 5000);
    }
}
