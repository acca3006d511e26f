//! Best fit with coalescing over regions of addresses. The module does not depend on the meaning of
//! the addresses.
//!
//! Free chunks of up to 256 KiB are kept in one list for each size, with a bit for each list, so
//! that the smallest one that fits is found without a search; larger ones are sorted by size and
//! position. Chunks know their neighbours, so freeing joins them immediately.

#![expect(
    clippy::indexing_slicing,
    reason = "numbers of chunks and lists come from this file alone, and a search for them would be \
              most of what an allocation takes; a test compares it with a simple allocator"
)]

use std::collections::BTreeSet;

/// Sizes are multiples of this, in bytes.
pub(super) const GRANULE: u64 = 256;
/// Sizes of this many granules and more are kept sorted instead of in lists.
const LISTS: usize = 1025;
const WORDS: usize = LISTS.div_ceil(64);
/// The largest remainder of a chunk, in bytes, that is left to an allocation in excess of its
/// request; a larger remainder, or one as large as the request, becomes a free chunk.
const LONGEST_WASTE: u64 = 128 << 20;

/// No chunk.
const NONE: u32 = u32::MAX;

/// A part of a region.
#[derive(Clone, Copy, Debug)]
struct Chunk {
    region: u32,
    /// Offset in its region, in bytes.
    offset: u64,
    /// Its size in bytes.
    size: u64,
    /// The neighbours in the region.
    before: u32,
    after: u32,
    /// The neighbours in the list of free chunks of its size, if it is in one.
    list_before: u32,
    list_after: u32,
    in_use: bool,
}

/// An allocated chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Given {
    pub(super) chunk: u32,
    pub(super) region: u32,
    /// Offset in its region, in bytes.
    pub(super) offset: u64,
    /// Size in bytes; at least the requested one.
    pub(super) size: u64,
}

/// The free and used chunks of all regions.
#[derive(Debug)]
pub(super) struct BestFit {
    chunks: Vec<Chunk>,
    /// Unused indices in `chunks`.
    vacant: Vec<u32>,
    /// The first free chunk for each number of granules.
    lists: Box<[u32; LISTS]>,
    /// A bit for each list, set if the list is not empty.
    filled: [u64; WORDS],
    /// Larger free chunks, as size, region, offset, chunk.
    large: BTreeSet<(u64, u32, u64, u32)>,
}

/// Returns the size that is allocated for a request, or `None` if it exceeds the address space.
pub(super) fn rounded(bytes: u64) -> Option<u64> {
    bytes.max(1).checked_next_multiple_of(GRANULE)
}

impl BestFit {
    pub(super) fn new() -> Self {
        Self {
            chunks: Vec::new(),
            vacant: Vec::new(),
            lists: Box::new([NONE; LISTS]),
            filled: [0; WORDS],
            large: BTreeSet::new(),
        }
    }

    /// Adds a region of `bytes` bytes, of which whole granules are used.
    pub(super) fn add_region(&mut self, region: u32, bytes: u64) {
        let size = bytes / GRANULE * GRANULE;
        if size > 0 {
            let chunk = self.new_chunk(region, 0, size, NONE, NONE);
            self.put(chunk);
        }
    }

    /// Takes the smallest free chunk that holds `size` bytes, a multiple of the granule, and splits
    /// off the excess.
    pub(super) fn take(&mut self, size: u64) -> Option<Given> {
        let found = self.smallest(size)?;
        self.unlink(found);
        let chunk = self.chunks[found as usize];
        let rest = chunk.size - size;
        if rest >= size || rest >= LONGEST_WASTE {
            let tail = self.new_chunk(chunk.region, chunk.offset + size, rest, found, chunk.after);
            if chunk.after != NONE {
                self.chunks[chunk.after as usize].before = tail;
            }
            let head = &mut self.chunks[found as usize];
            head.size = size;
            head.after = tail;
            self.put(tail);
        }
        let chunk = &mut self.chunks[found as usize];
        chunk.in_use = true;
        Some(Given { chunk: found, region: chunk.region, offset: chunk.offset, size: chunk.size })
    }

    /// Frees a chunk and joins it with free neighbours. Returns its size in bytes.
    pub(super) fn give_back(&mut self, given: u32) -> u64 {
        let mut chunk = given;
        let size = self.chunks[chunk as usize].size;
        self.chunks[chunk as usize].in_use = false;
        let after = self.chunks[chunk as usize].after;
        if after != NONE && !self.chunks[after as usize].in_use {
            self.unlink(after);
            self.join(chunk, after);
        }
        let before = self.chunks[chunk as usize].before;
        if before != NONE && !self.chunks[before as usize].in_use {
            self.unlink(before);
            self.join(before, chunk);
            chunk = before;
        }
        self.put(chunk);
        size
    }

    /// Returns the size of the largest free chunk, in bytes.
    pub(super) fn largest_free(&self) -> u64 {
        if let Some((size, ..)) = self.large.last() {
            return *size;
        }
        let word = self.filled.iter().rposition(|&word| word != 0);
        word.map_or(0, |word| {
            (word as u64 * 64 + 63 - u64::from(self.filled[word].leading_zeros())) * GRANULE
        })
    }

    /// Removes the regions that are completely free.
    pub(super) fn remove_free_regions(&mut self) -> Vec<u32> {
        let whole: Vec<u32> = (0..self.chunks.len() as u32)
            .filter(|&index| {
                let chunk = &self.chunks[index as usize];
                chunk.size > 0 && !chunk.in_use && chunk.before == NONE && chunk.after == NONE
            })
            .collect();
        whole
            .into_iter()
            .map(|index| {
                self.unlink(index);
                self.vacate(index);
                self.chunks[index as usize].region
            })
            .collect()
    }

    fn new_chunk(&mut self, region: u32, offset: u64, size: u64, before: u32, after: u32) -> u32 {
        let chunk = Chunk {
            region,
            offset,
            size,
            before,
            after,
            list_before: NONE,
            list_after: NONE,
            in_use: false,
        };
        if let Some(index) = self.vacant.pop() {
            self.chunks[index as usize] = chunk;
            index
        } else {
            self.chunks.push(chunk);
            self.chunks.len() as u32 - 1
        }
    }

    fn vacate(&mut self, index: u32) {
        self.chunks[index as usize].size = 0;
        self.vacant.push(index);
    }

    /// Joins two free neighbours that are in no list.
    fn join(&mut self, left: u32, right: u32) {
        let Chunk { size, after, .. } = self.chunks[right as usize];
        self.chunks[left as usize].size += size;
        self.chunks[left as usize].after = after;
        if after != NONE {
            self.chunks[after as usize].before = left;
        }
        self.vacate(right);
    }

    /// Returns the list for a size, if it has one.
    fn list(size: u64) -> Option<usize> {
        let granules = (size / GRANULE) as usize;
        (granules < LISTS).then_some(granules)
    }

    /// Inserts a free chunk into its list.
    fn put(&mut self, index: u32) {
        let chunk = self.chunks[index as usize];
        let Some(list) = Self::list(chunk.size) else {
            self.large.insert((chunk.size, chunk.region, chunk.offset, index));
            return;
        };
        let first = std::mem::replace(&mut self.lists[list], index);
        if first != NONE {
            self.chunks[first as usize].list_before = index;
        }
        let chunk = &mut self.chunks[index as usize];
        chunk.list_before = NONE;
        chunk.list_after = first;
        self.filled[list / 64] |= 1 << (list % 64);
    }

    /// Removes a free chunk from its list.
    fn unlink(&mut self, index: u32) {
        let chunk = self.chunks[index as usize];
        let Some(list) = Self::list(chunk.size) else {
            self.large.remove(&(chunk.size, chunk.region, chunk.offset, index));
            return;
        };
        if chunk.list_after != NONE {
            self.chunks[chunk.list_after as usize].list_before = chunk.list_before;
        }
        if chunk.list_before == NONE {
            self.lists[list] = chunk.list_after;
            if chunk.list_after == NONE {
                self.filled[list / 64] &= !(1 << (list % 64));
            }
        } else {
            self.chunks[chunk.list_before as usize].list_after = chunk.list_after;
        }
    }

    /// Returns the smallest free chunk of at least `size` bytes.
    fn smallest(&self, size: u64) -> Option<u32> {
        if let Some(list) = Self::list(size) {
            let (word, bit) = (list / 64, list % 64);
            let here = self.filled[word] & (u64::MAX << bit);
            let rest = self.filled[word + 1..].iter().position(|&bits| bits != 0);
            if here != 0 {
                return Some(self.lists[word * 64 + here.trailing_zeros() as usize]);
            }
            if let Some(further) = rest {
                let word = word + 1 + further;
                return Some(self.lists[word * 64 + self.filled[word].trailing_zeros() as usize]);
            }
        }
        self.large.range((size, 0, 0, 0)..).next().map(|found| found.3)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    impl BestFit {
        /// Returns the chunks of a region from its beginning: offset, size, in use.
        fn walk(&self, region: u32) -> Vec<(u64, u64, bool)> {
            let mut chunks: Vec<_> = self
                .chunks
                .iter()
                .filter(|chunk| chunk.size > 0 && chunk.region == region)
                .map(|chunk| (chunk.offset, chunk.size, chunk.in_use))
                .collect();
            chunks.sort_unstable();
            chunks
        }
    }

    #[test]
    fn the_smallest_chunk_that_fits_is_taken() {
        let mut fit = BestFit::new();
        for (region, size) in [(0, 4096), (1, 1024), (2, 1 << 20), (3, 2048)] {
            fit.add_region(region, size);
        }
        assert_eq!(fit.take(768).unwrap().region, 1);
        assert_eq!(fit.take(1280).unwrap().region, 3);
        assert_eq!(fit.take(1280).unwrap().region, 0);
        assert_eq!(fit.take(300 << 10).unwrap().region, 2);
        assert_eq!(fit.largest_free(), (1 << 20) - (300 << 10));
    }

    #[test]
    fn rest_of_a_chunk_is_split_off_only_if_long() {
        let mut fit = BestFit::new();
        fit.add_region(0, 1024);
        // 1024 is less than twice 768, so the chunk is not split.
        assert_eq!(fit.take(768).unwrap().size, 1024);
        let mut fit = BestFit::new();
        fit.add_region(0, 1024);
        assert_eq!(fit.take(512).unwrap().size, 512);
        assert_eq!(fit.walk(0), [(0, 512, true), (512, 512, false)]);
    }

    #[test]
    fn freed_neighbours_become_one() {
        let mut fit = BestFit::new();
        fit.add_region(0, 4096);
        let given: Vec<_> = (0..4).map(|_| fit.take(512).unwrap()).collect();
        fit.give_back(given[0].chunk);
        fit.give_back(given[2].chunk);
        fit.give_back(given[1].chunk);
        assert_eq!(fit.walk(0), [(0, 1536, false), (1536, 512, true), (2048, 2048, false)]);
        assert!(fit.remove_free_regions().is_empty());
        fit.give_back(given[3].chunk);
        assert_eq!(fit.walk(0), [(0, 4096, false)]);
        assert_eq!(fit.remove_free_regions(), [0]);
        assert!(fit.take(256).is_none());
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn chunks_never_overlap_and_everything_comes_back(
            steps in prop::collection::vec((1u64..600_000, any::<u16>(), any::<bool>()), 1..200)
        ) {
            let mut fit = BestFit::new();
            let regions = [1u64 << 22, 3 << 20, 100_000];
            for (region, size) in regions.iter().enumerate() {
                fit.add_region(region as u32, *size);
            }
            let mut live: Vec<Given> = Vec::new();
            for (bytes, choice, free) in steps {
                if free && !live.is_empty() {
                    let given = live.swap_remove(usize::from(choice) % live.len());
                    fit.give_back(given.chunk);
                } else if let Some(given) = fit.take(rounded(bytes).unwrap()) {
                    prop_assert!(given.size >= bytes);
                    live.push(given);
                }
                for (region, size) in regions.iter().enumerate() {
                    let mut end = 0;
                    let mut was_free = false;
                    for (offset, length, in_use) in fit.walk(region as u32) {
                        prop_assert_eq!(offset, end);
                        prop_assert!(in_use || !was_free, "two free neighbours");
                        was_free = !in_use;
                        end = offset + length;
                    }
                    prop_assert_eq!(end, size / GRANULE * GRANULE);
                }
            }
            for given in live {
                fit.give_back(given.chunk);
            }
            prop_assert_eq!(fit.remove_free_regions().len(), regions.len());
        }
    }
}
