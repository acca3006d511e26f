//! The names of a graph's nodes, as hashes: which were there before.
//!
//! A table of a million names is larger than the caches, so that a look-up is a wait for memory.
//! Nobody needs the answer at once: what is to be done is queued, and a batch first touches all its
//! buckets, which the processor does side by side, and then works. In a large graph another thread
//! does that while the bytes are read on.

use std::{
    sync::mpsc::{Receiver, SyncSender, channel, sync_channel},
    thread::{self, JoinHandle},
};

/// Hashes that lie in one line of the processor's cache, those in use first; a low half of zero
/// marks a free place.
///
/// In halves, because every processor compares four of 32 bits at once: comparing one whole hash
/// after the other costs more for the branches that nobody can predict than for the comparisons.
#[derive(Clone, Copy, Debug, Default)]
#[repr(align(64))]
struct Bucket {
    low: [u32; PLACES],
    high: [u32; PLACES],
}

/// Hashes in a bucket.
const PLACES: usize = 8;

impl Bucket {
    /// The halves of a hash: the lower one is never zero, as its lowest bit is set.
    #[inline]
    fn halves(hash: u64) -> (u32, u32) {
        (hash as u32, (hash >> 32) as u32)
    }

    /// Whether the hash is there, and the first free place if there is one.
    #[inline]
    #[expect(
        clippy::indexing_slicing,
        reason = "over the places of an array: a bound that the compiler drops"
    )]
    fn look(&self, hash: u64) -> (bool, Option<usize>) {
        let (low, high) = Self::halves(hash);
        let (mut same, mut free) = (0_u32, 0_u32);
        // A bit for each place: no branches, and over a fixed number of places, so that no loop is
        // left of it.
        for place in 0..PLACES {
            same |= u32::from((self.low[place] ^ low) | (self.high[place] ^ high) == 0) << place;
            free |= u32::from(self.low[place] == 0) << place;
        }
        (same != 0, (free != 0).then_some(free.trailing_zeros() as usize))
    }

    /// Puts a hash into a free place.
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

const SMALLEST_TABLE: usize = 1024;

/// Hashes that are worked off together.
const BATCH: usize = 128;

/// Hashes that are handed to another thread together.
const HANDED: usize = 16384;

/// Names from which on another thread pays, and how many must have been there to know that so many
/// will be.
const LARGE: u128 = 1 << 16;
const SAMPLE: usize = 1 << 12;

/// Whether the names of a graph are all different, and are there before they are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Findings {
    /// An input names no earlier node: there may be a cycle, or no such node at all.
    pub(super) forward_references: bool,
    /// Two names have one hash, so that they may be the same name.
    pub(super) suspected_duplicates: bool,
}

/// Hashes of names: a hash is in the bucket where it belongs, or where that is full, in the next.
#[derive(Debug)]
struct Table {
    buckets: Vec<Bucket>,
    used: usize,
    /// Length of the file in bytes, and how many were passed, to guess how many names are still to
    /// come.
    size: u64,
    passed: u64,
    findings: Findings,
}

/// Another thread that has the table.
#[derive(Debug)]
struct Worker {
    full: SyncSender<(Vec<u64>, u64)>,
    spent: Receiver<Vec<u64>>,
    thread: JoinHandle<Table>,
}

#[derive(Debug)]
enum Holder {
    Here(Table),
    Elsewhere(Worker),
    /// The other thread is gone: nothing is known.
    Lost,
}

/// The names of one graph.
#[derive(Debug)]
pub(super) struct Names {
    table: Holder,
    /// Hashes to put in (lowest bit set) or to look up (not set), in order.
    queue: Vec<u64>,
    /// Where the last node ended.
    passed: u64,
    /// Whether another thread may be asked for.
    alone: bool,
}

impl Names {
    /// Of a graph in a file of `size` bytes.
    pub(super) fn new(size: u64) -> Self {
        let findings = Findings { forward_references: false, suspected_duplicates: false };
        let table = Table { buckets: Vec::new(), used: 0, size, passed: 0, findings };
        Self {
            table: Holder::Here(table),
            queue: Vec::with_capacity(BATCH),
            passed: 0,
            alone: false,
        }
    }

    /// Says where in the file the names come from.
    #[inline]
    pub(super) fn pass(&mut self, at: u64) {
        self.passed = at;
    }

    /// Puts a hash in, whose lowest bit must be set.
    #[inline]
    pub(super) fn insert(&mut self, hash: u64) {
        self.enqueue(hash);
    }

    /// Asks whether a hash is there by now.
    #[inline]
    pub(super) fn look_up(&mut self, hash: u64) {
        self.enqueue(hash & !1);
    }

    #[inline]
    fn enqueue(&mut self, entry: u64) {
        self.queue.push(entry);
        if self.queue.len() == self.queue.capacity() {
            self.work();
        }
    }

    /// Works off what is queued, or hands it over.
    #[inline(never)]
    fn work(&mut self) {
        match &mut self.table {
            Holder::Here(table) => {
                table.passed = self.passed;
                table.work(&self.queue);
                self.queue.clear();
                if table.used >= SAMPLE && !self.alone && table.expected() >= LARGE {
                    self.hand_over();
                }
            }
            Holder::Elsewhere(worker) => {
                let next = worker.spent.try_recv().unwrap_or_default();
                let full = std::mem::replace(&mut self.queue, next);
                self.queue.reserve_exact(HANDED);
                if worker.full.send((full, self.passed)).is_err() {
                    self.table = Holder::Lost;
                }
            }
            Holder::Lost => self.queue.clear(),
        }
    }

    /// Gives the table to another thread, if there is a processor for it.
    fn hand_over(&mut self) {
        self.alone = true;
        if thread::available_parallelism().map_or(1, usize::from) < 2 {
            return;
        }
        let (full, work) = sync_channel::<(Vec<u64>, u64)>(4);
        let (back, spent) = channel();
        let (give, take) = channel::<Table>();
        let run = move || {
            let Ok(mut table) = take.recv() else { return Table::unknown() };
            for (mut queue, passed) in work {
                table.passed = passed;
                table.work(&queue);
                queue.clear();
                // Where nobody is left to take it, it is freed.
                let _ = back.send(queue);
            }
            table
        };
        let Ok(thread) = thread::Builder::new().name("serdes-names".to_owned()).spawn(run) else {
            return;
        };
        if let Holder::Here(table) = std::mem::replace(&mut self.table, Holder::Lost)
            && give.send(table).is_ok()
        {
            self.queue = Vec::with_capacity(HANDED);
            self.table = Holder::Elsewhere(Worker { full, spent, thread });
        }
    }

    fn finished(mut self) -> Table {
        self.work();
        match self.table {
            Holder::Here(table) => table,
            Holder::Elsewhere(Worker { full, spent: _, thread }) => {
                drop(full);
                thread.join().unwrap_or_else(|_| Table::unknown())
            }
            Holder::Lost => Table::unknown(),
        }
    }

    /// What was found out, once everything was told.
    pub(super) fn finish(self) -> Findings {
        self.finished().findings
    }
}

impl Table {
    /// One of which nothing is known, so that the graph is looked at more closely.
    fn unknown() -> Self {
        let findings = Findings { forward_references: true, suspected_duplicates: true };
        Self { buckets: Vec::new(), used: 0, size: 0, passed: 0, findings }
    }

    /// The bucket where a hash belongs.
    #[inline]
    fn home(&self, hash: u64) -> usize {
        // The high half of the product spreads the hashes evenly over any number of buckets.
        ((u128::from(hash) * self.buckets.len() as u128) >> 64) as usize
    }

    /// Whether a hash is there; put in if it is not and `put` says so.
    #[inline]
    fn find(&mut self, hash: u64, put: bool) -> bool {
        let mut position = self.home(hash);
        // Never are all buckets full; the bound is for the reader.
        for _ in 0..self.buckets.len() {
            let Some(bucket) = self.buckets.get_mut(position) else { return false };
            let (found, free) = bucket.look(hash);
            if found {
                return true;
            }
            if let Some(place) = free {
                if put {
                    bucket.put(hash, place);
                    self.used += 1;
                }
                return false;
            }
            position = if position + 1 == self.buckets.len() { 0 } else { position + 1 };
        }
        false
    }

    fn work(&mut self, queue: &[u64]) {
        for batch in queue.chunks(BATCH) {
            // At seven eighths, hardly a hash is further away than in the next bucket.
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
                self.findings.suspected_duplicates |= put & found;
                self.findings.forward_references |= !put & !found;
            }
        }
    }

    /// How many names the whole graph has if it goes on like this.
    fn expected(&self) -> u128 {
        u128::from(self.size) * self.used as u128 / u128::from(self.passed.max(1))
    }

    /// Makes room: as much as the whole graph needs if it goes on like this, but at most 16 times
    /// what there was.
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

    /// Many hashes put in, each asked for afterwards, then one thing more.
    fn findings(count: u64, then: impl FnOnce(&mut Names)) -> Findings {
        let mut names = Names::new(1000);
        for number in 1..count {
            let hash = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            names.pass(number);
            names.insert(hash);
            names.look_up(hash);
        }
        then(&mut names);
        names.finish()
    }

    #[test]
    fn what_was_put_in_is_found_however_often_the_table_grew_and_whichever_thread_has_it() {
        for count in [0, 1, 100, 5000, 300_000] {
            let found = findings(count, |_| ());
            assert!(!found.suspected_duplicates && !found.forward_references, "{count}");
            let found = findings(count, |names| names.look_up(2));
            assert!(!found.suspected_duplicates && found.forward_references, "{count}");
        }
        for count in [5000, 300_000] {
            let again = 0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(1234) | 1;
            let found = findings(count, |names| names.insert(again));
            assert!(found.suspected_duplicates && !found.forward_references, "{count}");
        }
    }

    #[test]
    fn a_table_takes_little_more_than_its_hashes() {
        let mut names = Names::new(1000);
        for number in 1..5000_u64 {
            names.insert(number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
        }
        assert!(names.finished().buckets.len() * 8 < 4 * 5000);
    }
}
