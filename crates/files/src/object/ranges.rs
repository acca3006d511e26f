//! Combines small reads of a source with high latency into few requests.
//!
//! A reader of a format reads a few bytes here and there, and a request costs as much as some
//! hundred kilobytes. So a small read fetches its surroundings as well, and each read that follows
//! closely on another fetches more; large reads and reads that were begun early are not extended.
//! The cache holds no more than [`KEPT`] ranges of [`MOST`] bytes.

use std::{
    collections::VecDeque,
    io,
    ops::Range,
    sync::{
        Mutex, PoisonError,
        mpsc::{Receiver, sync_channel},
    },
};

use bytes::Bytes;

use crate::{ReadAt, Stamp};

/// Size of the first range at a new position, in bytes.
const FIRST: u64 = 64 << 10;
/// Largest range for consecutive reads, in bytes; larger reads are requested as they are.
const MOST: u64 = 1 << 20;
/// Largest gap between two reads that count as consecutive, in bytes: formats put such gaps between
/// the data of two tensors.
const NEAR: u64 = 4 << 10;
/// Maximum number of cached ranges.
const KEPT: usize = 8;

/// A source with a cache of its latest ranges.
pub struct RangeCache<S> {
    source: S,
    size: u64,
    /// Cached ranges, the most recently used last.
    kept: Mutex<VecDeque<Kept>>,
}

#[derive(Clone)]
struct Kept {
    start: u64,
    bytes: Bytes,
    /// Size of the next range in bytes.
    next: u64,
}

impl Kept {
    fn end(&self) -> u64 {
        self.start.saturating_add(self.bytes.len() as u64)
    }

    /// Returns true if a read at `offset` continues where this range ended.
    fn is_before(&self, offset: u64) -> bool {
        offset.checked_sub(self.end()).is_some_and(|gap| gap <= NEAR)
    }

    /// Returns the bytes of a range if it is cached completely.
    fn all_of(&self, range: &Range<u64>) -> Option<Bytes> {
        let begin = usize::try_from(range.start.checked_sub(self.start)?).ok()?;
        let end = usize::try_from(range.end.checked_sub(self.start)?).ok()?;
        (begin <= end && end <= self.bytes.len()).then(|| self.bytes.slice(begin..end))
    }

    /// Copies the cached bytes from `offset`; returns `None` if there are none.
    fn copy(&self, buffer: &mut [u8], offset: u64) -> Option<usize> {
        let begin = usize::try_from(offset.checked_sub(self.start)?).ok()?;
        let bytes = self.bytes.get(begin..).filter(|bytes| !bytes.is_empty())?;
        let count = bytes.len().min(buffer.len());
        buffer.get_mut(..count)?.copy_from_slice(bytes.get(..count)?);
        Some(count)
    }
}

impl<S: ReadAt> RangeCache<S> {
    /// Wraps a source whose small reads are to be combined.
    ///
    /// # Errors
    /// If the source does not report its size.
    pub fn new(source: S) -> io::Result<Self> {
        let size = source.size()?;
        Ok(Self { source, size, kept: Mutex::default() })
    }

    /// Copies cached bytes, or returns the range to read for them.
    fn copy(&self, buffer: &mut [u8], offset: u64) -> Result<usize, Range<u64>> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut follows = None;
        for at in (0..kept.len()).rev() {
            let Some(one) = kept.get(at) else { continue };
            if let Some(count) = one.copy(buffer, offset) {
                if let Some(used) = kept.remove(at) {
                    kept.push_back(used);
                }
                return Ok(count);
            }
            if one.is_before(offset) {
                follows = Some(one.next);
            }
        }
        let length = follows.unwrap_or(FIRST).max(buffer.len() as u64);
        let end = offset.saturating_add(length).min(self.size);
        // Formats end with their index: near the end, the bytes before are fetched too.
        let start = if end == self.size && follows.is_none() {
            offset.min(self.size.saturating_sub(length))
        } else {
            offset
        };
        Err(start..end)
    }
}

impl<S: ReadAt> ReadAt for RangeCache<S> {
    fn size(&self) -> io::Result<u64> {
        Ok(self.size)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        if buffer.is_empty() || offset >= self.size {
            return Ok(0);
        }
        let range = match self.copy(buffer, offset) {
            Ok(count) => return Ok(count),
            Err(range) => range,
        };
        if buffer.len() as u64 >= MOST {
            return self.source.read_at(buffer, offset);
        }
        let length = range.end - range.start;
        let mut bytes = vec![0; usize::try_from(length).unwrap_or(usize::MAX)];
        self.source.read_exact_at(&mut bytes, range.start)?;
        let next = (length * 2).min(MOST);
        let one = Kept { start: range.start, bytes: bytes.into(), next };
        let count = one.copy(buffer, offset).unwrap_or_default();
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() == KEPT {
            kept.pop_front();
        }
        kept.push_back(one);
        Ok(count)
    }

    fn begin_read(&self, range: Range<u64>) -> Option<Receiver<io::Result<Bytes>>> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let here = kept.iter().find_map(|one| one.all_of(&range));
        drop(kept);
        let Some(bytes) = here else { return self.source.begin_read(range) };
        let (send, answer) = sync_channel(1);
        // The channel has room for the only answer.
        let _ = send.send(Ok(bytes));
        Some(answer)
    }

    fn answers_late(&self) -> bool {
        self.source.answers_late()
    }

    fn stamp(&self) -> Option<Stamp> {
        self.source.stamp()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::tests::noise;

    /// A source that counts the reads and the bytes read.
    struct Counted {
        bytes: Vec<u8>,
        reads: AtomicU64,
        read: AtomicU64,
    }

    impl ReadAt for &Counted {
        fn size(&self) -> io::Result<u64> {
            self.bytes.size()
        }

        fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
            self.reads.fetch_add(1, Ordering::Relaxed);
            let count = self.bytes.read_at(buffer, offset)?;
            self.read.fetch_add(count as u64, Ordering::Relaxed);
            Ok(count)
        }
    }

    fn counted(size: usize) -> Counted {
        Counted { bytes: noise(size, 7), reads: AtomicU64::new(0), read: AtomicU64::new(0) }
    }

    #[test]
    fn small_reads_one_behind_the_other_are_few_requests() {
        let source = counted((8 << 20) + 77);
        let cache = RangeCache::new(&source).unwrap();
        let mut back = vec![0; source.bytes.len()];
        for (step, part) in back.chunks_mut(1000).enumerate() {
            cache.read_exact_at(part, step as u64 * 1000).unwrap();
        }
        assert!(back == source.bytes);
        let reads = source.reads.load(Ordering::Relaxed);
        assert!(reads <= 15, "{reads} requests");
        assert_eq!(source.read.load(Ordering::Relaxed), source.bytes.len() as u64);
    }

    #[test]
    fn a_few_bytes_at_both_ends_are_two_requests_of_a_little() {
        let source = counted(8 << 20);
        let cache = RangeCache::new(&source).unwrap();
        let size = source.bytes.len() as u64;
        for (offset, length) in [(0, 8), (8, 500), (size - 48, 48), (size - 5000, 4000)] {
            let mut part = vec![0; length];
            cache.read_exact_at(&mut part, offset).unwrap();
            assert_eq!(part, source.bytes[offset as usize..][..length]);
        }
        assert_eq!(source.reads.load(Ordering::Relaxed), 2);
        assert_eq!(source.read.load(Ordering::Relaxed), 2 * FIRST);
    }

    #[test]
    fn small_reads_with_little_between_them_are_few_requests() {
        let source = counted(8 << 20);
        let cache = RangeCache::new(&source).unwrap();
        for offset in (0..8 << 20).step_by(200_000 + 3000) {
            let mut part = vec![0; 200_000.min((8 << 20) - offset)];
            cache.read_exact_at(&mut part, offset as u64).unwrap();
            assert!(part == source.bytes[offset..][..part.len()]);
        }
        let reads = source.reads.load(Ordering::Relaxed);
        assert!(reads <= 13, "{reads} requests");
        assert!(source.read.load(Ordering::Relaxed) <= source.bytes.len() as u64);
    }

    #[test]
    fn cached_ranges_are_not_requested_again() {
        let source = counted(8 << 20);
        let cache = RangeCache::new(&source).unwrap();
        cache.read_exact_at(&mut [0; 10], 5000).unwrap();
        let answer = cache.begin_read(5000..5000 + FIRST).unwrap().recv().unwrap().unwrap();
        assert!(answer == source.bytes[5000..][..FIRST as usize]);
        assert_eq!(source.reads.load(Ordering::Relaxed), 1);
        // The source, which does not read ahead, is asked for the rest.
        assert!(cache.begin_read(5000..5001 + FIRST).is_none());
        assert!(cache.begin_read(4999..5001).is_none());
    }

    #[test]
    fn a_large_read_is_one_request_and_is_not_kept() {
        let source = counted(8 << 20);
        let cache = RangeCache::new(&source).unwrap();
        let mut part = vec![0; 4 << 20];
        cache.read_exact_at(&mut part, 1000).unwrap();
        assert!(part == source.bytes[1000..][..4 << 20]);
        assert_eq!(source.reads.load(Ordering::Relaxed), 1);
        assert!(cache.kept.lock().unwrap().is_empty());
    }

    #[test]
    fn a_source_that_ends_early_is_an_error_and_its_end_is_no_bytes() {
        struct Short;
        impl ReadAt for Short {
            fn size(&self) -> io::Result<u64> {
                Ok(100)
            }
            fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
                b"short".as_slice().read_at(buffer, offset)
            }
        }
        let cache = RangeCache::new(Short).unwrap();
        let error = cache.read_at(&mut [0; 10], 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
        assert_eq!(cache.read_at(&mut [0; 10], 100).unwrap(), 0);
    }
}
