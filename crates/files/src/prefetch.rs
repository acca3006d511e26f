//! Reads ahead from sources with high latency, such as object storage.
//!
//! The caller announces the extents that it will read, in order; the prefetcher requests exactly
//! these in large blocks, up to [`MOST_BLOCKS`] at a time. Sources that answer at once are read on
//! demand, as without it.

use std::{
    collections::VecDeque,
    io,
    iter::{Fuse, Peekable},
    ops::Range,
    sync::mpsc::Receiver,
};

use bytes::Bytes;

use crate::ReadAt;

/// Maximum size of one request in bytes: its transfer takes long compared with a request's latency.
const BLOCK_BYTES: u64 = 4 << 20;
/// Maximum number of concurrent requests: stores answer them in parallel, each over its own
/// connection, and a single connection uses a small part of a network's bandwidth.
const MOST_BLOCKS: usize = 32;
/// Maximum of bytes that are read ahead by a single reader.
const AHEAD_BYTES: u64 = MOST_BLOCKS as u64 * BLOCK_BYTES;
/// Minimum size of a request in bytes, even with very many readers: about a chunk.
const LEAST_BYTES: u64 = 1 << 20;
/// Largest gap between two extents that is read along with them, in bytes: a separate request costs
/// more.
const GAP_BYTES: u64 = 64 << 10;
/// Minimum size in bytes of an extent that is not short. A short extent alone is not read ahead:
/// the source may have it cached, or fetch the bytes after it, which a caller that reads tensors
/// one by one needs next.
const SHORT_BYTES: u64 = LEAST_BYTES;

type ReadExtents<'a> = Peekable<Fuse<Box<dyn Iterator<Item = Range<u64>> + Send + 'a>>>;

/// Read-ahead over announced extents of a source.
pub struct Prefetch<'a> {
    extents: ReadExtents<'a>,
    /// Remaining bytes of an extent that is longer than a block.
    rest: Option<Range<u64>>,
    blocks: VecDeque<Block>,
    most_bytes: u64,
}

struct Block {
    range: Range<u64>,
    state: State,
}

enum State {
    Coming(Receiver<io::Result<Bytes>>),
    Here(Bytes),
}

impl<'a> Prefetch<'a> {
    /// Creates a prefetcher that is the only reader of the source.
    pub fn new(extents: impl Iterator<Item = Range<u64>> + Send + 'a) -> Self {
        Self::one_of(1, extents)
    }

    /// Creates one of `count` prefetchers that share the memory.
    pub fn one_of(count: usize, extents: impl Iterator<Item = Range<u64>> + Send + 'a) -> Self {
        let extents: Box<dyn Iterator<Item = Range<u64>> + Send + 'a> = Box::new(extents);
        Self {
            extents: extents.fuse().peekable(),
            rest: None,
            blocks: VecDeque::new(),
            most_bytes: (AHEAD_BYTES / count.max(1) as u64).max(LEAST_BYTES),
        }
    }

    /// Fills `buffer` from `offset` of the source. Bytes outside the extents are read directly.
    ///
    /// # Errors
    /// The error of the source if it cannot read one of these bytes.
    #[expect(clippy::indexing_slicing, reason = "`count` is the smaller of both lengths")]
    pub fn read(
        &mut self,
        source: &dyn ReadAt,
        mut buffer: &mut [u8],
        mut offset: u64,
    ) -> io::Result<()> {
        let all = offset..offset.saturating_add(buffer.len() as u64);
        if !source.answers_late() || self.is_short_rest(&all) {
            return source.read_exact_at(buffer, offset);
        }
        while !buffer.is_empty() {
            self.fill(source);
            let Some(at) = self.blocks.iter().position(|block| block.range.contains(&offset))
            else {
                return source.read_exact_at(buffer, offset);
            };
            // Runs are read in order, so no later run needs the blocks before.
            self.blocks.drain(..at);
            let Some(block) = self.blocks.front_mut() else { continue };
            let bytes = match &mut block.state {
                State::Here(bytes) => bytes,
                State::Coming(answer) => {
                    let bytes = answer.recv().unwrap_or_else(|_| {
                        Err(io::Error::other("a read that was begun ended without an answer"))
                    })?;
                    let end = block.range.start.saturating_add(bytes.len() as u64);
                    block.state = State::Here(bytes);
                    // A source of several files returns only the bytes in one of them.
                    let rest = end..block.range.end;
                    if !rest.is_empty() && end > block.range.start {
                        block.range.end = end;
                        if let Some(answer) = source.begin_read(rest.clone()) {
                            let state = State::Coming(answer);
                            self.blocks.insert(1, Block { range: rest, state });
                        }
                    }
                    continue;
                }
            };
            let from = usize::try_from(offset - block.range.start).unwrap_or(usize::MAX);
            let here = bytes.get(from..).unwrap_or_default();
            let count = here.len().min(buffer.len());
            if count == 0 {
                // The answer was shorter than requested.
                return source.read_exact_at(buffer, offset);
            }
            let (now, later) = buffer.split_at_mut(count);
            now.copy_from_slice(&here[..count]);
            buffer = later;
            offset += count as u64;
            if offset == block.range.end {
                self.blocks.pop_front();
            }
        }
        self.fill(source);
        Ok(())
    }

    /// Starts reads while there is room for them.
    fn fill(&mut self, source: &dyn ReadAt) {
        let mut bytes: u64 =
            self.blocks.iter().map(|block| block.range.end - block.range.start).sum();
        while self.blocks.len() < MOST_BLOCKS && (bytes < self.most_bytes || self.blocks.is_empty())
        {
            let available = (self.most_bytes - bytes.min(self.most_bytes)).max(1);
            let Some(range) = self.next_block(available) else { return };
            bytes += range.end - range.start;
            // Without an early answer, the block is read when it is needed.
            if let Some(answer) = source.begin_read(range.clone()) {
                self.blocks.push_back(Block { range, state: State::Coming(answer) });
            }
        }
    }

    /// Returns true if these bytes are short and the last of the extents.
    fn is_short_rest(&mut self, bytes: &Range<u64>) -> bool {
        let is_short = bytes.end.saturating_sub(bytes.start) < SHORT_BYTES;
        if !is_short || self.rest.is_some() || !self.blocks.is_empty() {
            return false;
        }
        let Some(first) = self.extents.next_if_eq(bytes) else { return false };
        if self.extents.peek().is_some() {
            self.rest = Some(first);
            return false;
        }
        true
    }

    /// Returns the next extents that lie close together and fit in one block.
    fn next_block(&mut self, available: u64) -> Option<Range<u64>> {
        // Use blocks of one size: do not start a small block because there is little room.
        let longest = (self.most_bytes / MOST_BLOCKS as u64).clamp(LEAST_BYTES, BLOCK_BYTES);
        if available < longest && !self.blocks.is_empty() {
            return None;
        }
        let mut block = match self.rest.take() {
            Some(rest) => rest,
            None => self.extents.find(|extent| !extent.is_empty())?,
        };
        let limit = block.start.saturating_add(longest);
        while block.end < limit {
            let fits = |next: &Range<u64>| {
                next.is_empty()
                    || (next.start >= block.end
                        && next.start - block.end <= GAP_BYTES
                        && next.end <= limit)
            };
            match self.extents.next_if(fits) {
                Some(next) => block.end = block.end.max(next.end),
                None => break,
            }
        }
        if block.end > limit {
            self.rest = Some(limit..block.end);
            block.end = limit;
        }
        Some(block)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
        mpsc::{SyncSender, sync_channel},
    };

    use super::*;

    /// A source that records the requested ranges, and counts early reads.
    struct Late {
        bytes: Vec<u8>,
        asked: Mutex<Vec<Range<u64>>>,
        begun: AtomicUsize,
    }

    impl Late {
        fn new(bytes: usize) -> Self {
            Self {
                bytes: (0..bytes).map(|n| ((n * 31) >> 3) as u8).collect(),
                asked: Mutex::default(),
                begun: AtomicUsize::new(0),
            }
        }

        fn asked(self) -> Vec<Range<u64>> {
            self.asked.into_inner().unwrap()
        }
    }

    impl ReadAt for Late {
        fn size(&self) -> io::Result<u64> {
            self.bytes.size()
        }

        fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
            self.asked.lock().unwrap().push(offset..offset + buffer.len() as u64);
            self.bytes.read_at(buffer, offset)
        }

        fn begin_read(&self, range: Range<u64>) -> Option<Receiver<io::Result<Bytes>>> {
            self.begun.fetch_add(1, Ordering::Relaxed);
            self.asked.lock().unwrap().push(range.clone());
            let (send, answer) = sync_channel(1);
            let bytes = &self.bytes[range.start as usize..range.end as usize];
            send.send(Ok(Bytes::copy_from_slice(bytes))).unwrap();
            Some(answer)
        }

        fn answers_late(&self) -> bool {
            true
        }
    }

    type Waiting = (SyncSender<io::Result<Bytes>>, Range<u64>);

    /// A source that gives no answer before the permitted number of requests is in progress.
    #[derive(Default)]
    struct HeldBack {
        waiting: Mutex<Vec<Waiting>>,
        most: AtomicUsize,
    }

    impl ReadAt for HeldBack {
        fn size(&self) -> io::Result<u64> {
            Ok(u64::MAX)
        }

        fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
            Err(io::ErrorKind::TimedOut.into())
        }

        fn begin_read(&self, range: Range<u64>) -> Option<Receiver<io::Result<Bytes>>> {
            let (send, answer) = sync_channel(1);
            let mut waiting = self.waiting.lock().unwrap();
            waiting.push((send, range));
            self.most.fetch_max(waiting.len(), Ordering::Relaxed);
            if waiting.len() == MOST_BLOCKS {
                for (send, range) in waiting.drain(..) {
                    let bytes = vec![range.start as u8; (range.end - range.start) as usize];
                    send.send(Ok(bytes.into())).unwrap();
                }
            }
            Some(answer)
        }

        fn answers_late(&self) -> bool {
            true
        }
    }

    #[test]
    fn as_many_requests_as_there_may_be_are_under_way() {
        // Large ranges, and small ranges that are not adjacent.
        for (bytes, apart) in [(BLOCK_BYTES, BLOCK_BYTES), (100, 1 << 20)] {
            let extents: Vec<_> = (0..2 * MOST_BLOCKS as u64)
                .map(|number| number * apart..number * apart + bytes)
                .collect();
            let source = HeldBack::default();
            let mut ahead = Prefetch::new(extents.clone().into_iter());
            let mut buffer = vec![0; bytes as usize];
            for extent in extents {
                ahead.read(&source, &mut buffer, extent.start).unwrap();
                assert_eq!(buffer[0], extent.start as u8);
            }
            assert_eq!(source.most.into_inner(), MOST_BLOCKS);
        }
    }

    fn expect(ahead: &mut Prefetch<'_>, source: &Late, range: Range<u64>) {
        let mut buffer = vec![0; (range.end - range.start) as usize];
        ahead.read(source, &mut buffer, range.start).unwrap();
        assert!(buffer == source.bytes[range.start as usize..range.end as usize], "{range:?}");
    }

    #[test]
    fn long_extent_comes_in_blocks_and_no_byte_comes_twice() {
        let bytes = 3 * BLOCK_BYTES + 500;
        let source = Late::new(bytes as usize + 1000);
        let mut ahead = Prefetch::new(std::iter::once(10..bytes));
        let mut offset = 10;
        while offset < bytes {
            let end = (offset + 700_001).min(bytes);
            expect(&mut ahead, &source, offset..end);
            let under_way: u64 = ahead.blocks.iter().map(|b| b.range.end - b.range.start).sum();
            assert!(under_way <= AHEAD_BYTES);
            offset = end;
        }
        let asked = source.asked();
        assert_eq!(asked.len(), 4);
        assert_eq!(asked[0], 10..10 + BLOCK_BYTES);
        assert_eq!(asked[3].end, bytes);
        assert!(asked.windows(2).all(|pair| pair[0].end == pair[1].start));
    }

    #[test]
    fn ranges_near_each_other_are_read_together() {
        let source = Late::new(400_000);
        let extents = [
            0..100,
            100..100,
            164..300,
            50_000..60_000,
            59_000..61_000,
            61_001 + GAP_BYTES..200_000,
            70..80,
        ];
        let mut ahead = Prefetch::new(extents.clone().into_iter());
        for extent in extents {
            expect(&mut ahead, &source, extent);
        }
        let far = 61_001 + GAP_BYTES..200_000;
        assert_eq!(source.asked(), [0..60_000, 59_000..61_000, far, 70..80]);
    }

    #[test]
    fn short_extent_is_read_by_itself_only_if_it_is_alone() {
        let source = Late::new(4 << 20);
        let mut alone = Prefetch::new(std::iter::once(100..200));
        expect(&mut alone, &source, 100..200);
        assert!(alone.blocks.is_empty());
        // The read was not begun early: the source was asked for the bytes when they were needed.
        assert_eq!(source.begun.load(Ordering::Relaxed), 0);
        // Several ranges that are not adjacent are requested concurrently.
        let far = 2 << 20;
        let mut two = Prefetch::new([100..200, far..far + 100].into_iter());
        expect(&mut two, &source, 100..200);
        expect(&mut two, &source, far..far + 100);
        // A range that is read in steps is fetched in one request.
        let mut steps = Prefetch::new(std::iter::once(1000..3000));
        expect(&mut steps, &source, 1000..2000);
        expect(&mut steps, &source, 2000..3000);
        assert_eq!(source.begun.load(Ordering::Relaxed), 3);
        assert_eq!(source.asked(), [100..200, 100..200, far..far + 100, 1000..3000]);
    }

    #[test]
    fn range_that_was_not_announced_is_read_by_itself() {
        let source = Late::new(1000);
        let mut ahead = Prefetch::new([100..200, 300..400].into_iter());
        expect(&mut ahead, &source, 100..150);
        expect(&mut ahead, &source, 700..800);
        expect(&mut ahead, &source, 150..200);
        expect(&mut ahead, &source, 350..450);
        assert_eq!(source.asked(), [100..400, 700..800, 400..450]);
    }

    #[test]
    fn an_error_is_that_of_the_read_that_needs_the_bytes() {
        struct Broken;
        impl ReadAt for Broken {
            fn size(&self) -> io::Result<u64> {
                Ok(100)
            }
            fn read_at(&self, _: &mut [u8], _: u64) -> io::Result<usize> {
                Err(io::ErrorKind::TimedOut.into())
            }
            fn begin_read(&self, _: Range<u64>) -> Option<Receiver<io::Result<Bytes>>> {
                let (send, answer) = sync_channel(1);
                send.send(Err(io::ErrorKind::ConnectionReset.into())).unwrap();
                Some(answer)
            }
            fn answers_late(&self) -> bool {
                true
            }
        }
        let mut ahead = Prefetch::new([0..50, 60..70].into_iter());
        let error = ahead.read(&Broken, &mut [0; 10], 0).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionReset);
    }
}
