//! Reads bytes in pieces, so that large arrays do not block others.

use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use serdes::{codec::Status, ifrt::IndexDomain};

use super::{
    Memory, Region,
    element::{STEP, zeroed},
};
use crate::status::status;

/// Result of asking for the next bytes of a stream.
#[derive(Debug)]
pub(crate) enum Next {
    Bytes(Bytes),
    /// No bytes yet, though work was done.
    Working,
    End,
}

/// A source of bytes that come in pieces.
pub(crate) trait Pieces: Send {
    /// Returns the next piece. May wait for the device, for at most one piece.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED; an error of the plug-in.
    fn next(&mut self) -> Result<Next, Status>;
}

/// Reader of a memory from its first byte to its last.
#[derive(Debug)]
pub(crate) struct MemoryReader {
    memory: Arc<Memory>,
    next: u64,
    /// The last two pieces; their memory is reused once no other reference to it is left.
    last: [Bytes; 2],
}

impl MemoryReader {
    pub(crate) fn new(memory: Arc<Memory>) -> Self {
        Self { memory, next: 0, last: Default::default() }
    }
}

impl Pieces for MemoryReader {
    fn next(&mut self) -> Result<Next, Status> {
        let length = self.memory.size().saturating_sub(self.next).min(self.memory.step());
        if length == 0 {
            return Ok(Next::End);
        }
        let [last, before] = &mut self.last;
        std::mem::swap(last, before);
        let used = std::mem::take(last).try_into_mut();
        let mut target = match used.ok().filter(|used| used.len() as u64 == length) {
            Some(used) => used,
            None => BytesMut::from(Bytes::from(zeroed(length)?)),
        };
        self.memory.read_part(self.next, &mut target)?;
        self.next += length;
        *last = target.freeze();
        Ok(Next::Bytes(last.clone()))
    }
}

/// Source of a block.
enum Source {
    Memory(Arc<Memory>),
    Host(Box<dyn Pieces>),
}

/// A block of a source, and its target position.
struct Block {
    source: Source,
    region: Region,
    /// Origin of the block in the source, and in the target.
    from: Vec<i64>,
    to: Vec<i64>,
    shape: Vec<i64>,
}

/// A block whose source is being read, or has been.
struct Open {
    block: Block,
    reading: Reading,
    /// Parts of the block that remain to be copied.
    left: Vec<Part>,
}

/// Progress of reading a source.
enum Reading {
    Memory { bytes: Vec<u8>, filled: usize },
    Pieces(Vec<Bytes>),
    Done(Bytes),
}

/// A part of a block: its origin in the block, and its shape.
struct Part {
    origin: Vec<i64>,
    shape: Vec<i64>,
}

/// Composes blocks of sources into one region on the host.
pub(crate) struct Composition {
    blocks: std::vec::IntoIter<Block>,
    open: Option<Open>,
    target: Region,
    bytes: Vec<u8>,
    /// The complete bytes, from the first piece that is handed out.
    done: Option<Bytes>,
}

impl Composition {
    fn new(target: Region, blocks: Vec<Block>) -> Result<Self, Status> {
        let bytes = zeroed(target.bytes())?;
        Ok(Self { blocks: blocks.into_iter(), open: None, target, bytes, done: None })
    }

    /// Creates the composition of an array from its parts, in the layout of `target`.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED.
    pub(crate) fn whole(
        parts: &[(Arc<Memory>, IndexDomain)],
        item: usize,
        target: Region,
    ) -> Result<Self, Status> {
        let blocks = parts.iter().map(|(memory, domain)| {
            let shape = domain.shape().dims();
            Ok(Block {
                source: Source::Memory(Arc::clone(memory)),
                region: Region::dense(shape, item)?,
                from: vec![0; shape.len()],
                to: domain.origin().elements().to_vec(),
                shape: shape.to_vec(),
            })
        });
        Self::new(target, blocks.collect::<Result<_, Status>>()?)
    }

    /// Creates the composition of a part of an array from the parts that overlap it.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED.
    pub(crate) fn cut(
        parts: &[(Arc<Memory>, IndexDomain)],
        wanted: &IndexDomain,
        item: usize,
    ) -> Result<Self, Status> {
        let blocks = parts.iter().filter_map(|(memory, domain)| {
            let (origin, shape) = overlap(domain, wanted)?;
            let relative = |base: &IndexDomain| {
                origin.iter().zip(base.origin().elements()).map(|(at, base)| at - base).collect()
            };
            let source = Source::Memory(Arc::clone(memory));
            let (from, to) = (relative(domain), relative(wanted));
            let region = Region::dense(domain.shape().dims(), item);
            Some(region.map(|region| Block { source, region, from, to, shape }))
        });
        let target = Region::dense(wanted.shape().dims(), item)?;
        Self::new(target, blocks.collect::<Result<_, _>>()?)
    }

    /// Creates the composition of a part of bytes in the layout of `region`.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED.
    pub(crate) fn part(
        source: Box<dyn Pieces>,
        region: Region,
        wanted: &IndexDomain,
        item: usize,
    ) -> Result<Self, Status> {
        let shape = wanted.shape().dims().to_vec();
        let (from, to) = (wanted.origin().elements().to_vec(), vec![0; shape.len()]);
        let target = Region::dense(&shape, item)?;
        let source = Source::Host(source);
        Self::new(target, vec![Block { source, region, from, to, shape }])
    }

    /// Returns the total size in bytes.
    pub(crate) const fn size(&self) -> u64 {
        self.target.bytes()
    }

    /// Does a piece of the work; returns the bytes when it is complete.
    ///
    /// # Errors
    /// INTERNAL if a source is smaller than its region; the errors of the sources.
    pub(crate) fn step(&mut self) -> Result<Option<Vec<u8>>, Status> {
        if self.open.is_none() {
            let Some(block) = self.blocks.next() else {
                return Ok(Some(std::mem::take(&mut self.bytes)));
            };
            self.open = Some(Open::new(block)?);
        }
        if let Some(open) = &mut self.open
            && open.step(&self.target, &mut self.bytes)?
        {
            self.open = None;
        }
        Ok(None)
    }

    /// Returns all bytes at once, without letting others run.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub(crate) fn finish(mut self) -> Result<Vec<u8>, Status> {
        loop {
            if let Some(bytes) = self.step()? {
                return Ok(bytes);
            }
        }
    }
}

impl Pieces for Composition {
    fn next(&mut self) -> Result<Next, Status> {
        match &mut self.done {
            None => {
                self.done = self.step()?.map(Bytes::from);
                Ok(Next::Working)
            }
            Some(rest) if rest.is_empty() => Ok(Next::End),
            Some(rest) => Ok(Next::Bytes(rest.split_to(rest.len().min(STEP)))),
        }
    }
}

impl Open {
    fn new(block: Block) -> Result<Self, Status> {
        let reading = match &block.source {
            Source::Memory(memory) => Reading::Memory { bytes: zeroed(memory.size())?, filled: 0 },
            Source::Host(_) => Reading::Pieces(Vec::new()),
        };
        let left = vec![Part { origin: vec![0; block.shape.len()], shape: block.shape.clone() }];
        Ok(Self { block, reading, left })
    }

    /// Reads a piece of the source, or copies a piece of the block; returns true after the last
    /// one.
    fn step(&mut self, target: &Region, bytes: &mut [u8]) -> Result<bool, Status> {
        let Reading::Done(source) = &self.reading else { return self.read().map(|()| false) };
        let source = source.clone();
        let Some(Part { origin, shape }) = self.next_part() else { return Ok(true) };
        let at = |base: &[i64]| -> Vec<i64> {
            base.iter().zip(&origin).map(|(base, at)| base + at).collect()
        };
        let (from, to) = (at(&self.block.from), at(&self.block.to));
        self.block.region.copy_block(&source, &from, target, bytes, &to, &shape)?;
        Ok(false)
    }

    fn read(&mut self) -> Result<(), Status> {
        match (&mut self.block.source, &mut self.reading) {
            (Source::Memory(memory), Reading::Memory { bytes, filled }) => {
                let rest = bytes.get_mut(*filled..).unwrap_or_default();
                let step = usize::try_from(memory.step()).unwrap_or(usize::MAX);
                let length = rest.len().min(step);
                let (piece, rest) = rest.split_at_mut(length);
                if !piece.is_empty() {
                    memory.read_part(*filled as u64, piece)?;
                }
                *filled += length;
                if rest.is_empty() {
                    self.reading = Reading::Done(std::mem::take(bytes).into());
                }
            }
            (Source::Host(source), Reading::Pieces(pieces)) => match source.next()? {
                Next::Bytes(piece) => pieces.push(piece),
                Next::Working => {}
                Next::End => self.reading = Reading::Done(joined(std::mem::take(pieces))?),
            },
            _ => return Err(status!(Internal, "a source is read as what it is not")),
        }
        Ok(())
    }

    /// Returns the next part of the block, at most one piece large.
    fn next_part(&mut self) -> Option<Part> {
        loop {
            let mut part = self.left.pop()?;
            let size = Region::dense(&part.shape, self.block.region.item());
            if size.is_ok_and(|part| part.bytes() <= STEP as u64) {
                return Some(part);
            }
            // Cut along the first dimension longer than 1, so that copies stay in long runs.
            let longer = part.shape.iter_mut().enumerate().find(|(_, length)| **length > 1);
            let Some((along, length)) = longer else { return Some(part) };
            let (first, second) = (*length / 2, *length - *length / 2);
            *length = second;
            let mut before = Part { origin: part.origin.clone(), shape: part.shape.clone() };
            if let (Some(begin), Some(length)) =
                (part.origin.get_mut(along), before.shape.get_mut(along))
            {
                *begin += first;
                *length = first;
            }
            self.left.push(part);
            self.left.push(before);
        }
    }
}

/// Joins all pieces.
fn joined(mut pieces: Vec<Bytes>) -> Result<Bytes, Status> {
    if pieces.len() == 1 {
        return Ok(pieces.swap_remove(0));
    }
    let length = pieces.iter().map(Bytes::len).sum();
    let mut whole = Vec::new();
    whole
        .try_reserve_exact(length)
        .map_err(|_| status!(ResourceExhausted, "the host has no {length} bytes left"))?;
    pieces.iter().for_each(|piece| whole.extend_from_slice(piece));
    Ok(whole.into())
}

/// Returns the origin and shape of the intersection of two parts; `None` if it is empty.
pub(crate) fn overlap(one: &IndexDomain, other: &IndexDomain) -> Option<(Vec<i64>, Vec<i64>)> {
    let ends = |domain: &IndexDomain| -> Vec<(i64, i64)> {
        let lengths = domain.origin().elements().iter().zip(domain.shape().dims());
        lengths.map(|(origin, length)| (*origin, origin.saturating_add(*length))).collect()
    };
    let mut origin = Vec::new();
    let mut shape = Vec::new();
    for ((start, end), (other_start, other_end)) in ends(one).into_iter().zip(ends(other)) {
        let (start, end) = (start.max(other_start), end.min(other_end));
        if start >= end {
            return None;
        }
        origin.push(start);
        shape.push(end - start);
    }
    Some((origin, shape))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use serdes::ifrt::{Index, Shape};

    /// Bytes in pieces of the given sizes, with pauses between.
    struct Given {
        bytes: Bytes,
        piece: usize,
        pause: bool,
    }

    impl Pieces for Given {
        fn next(&mut self) -> Result<Next, Status> {
            self.pause = !self.pause;
            if self.pause {
                return Ok(Next::Working);
            }
            let length = self.bytes.len().min(self.piece);
            Ok(match length {
                0 => Next::End,
                length => Next::Bytes(self.bytes.split_to(length)),
            })
        }
    }

    fn given(bytes: &[u8], piece: usize) -> Box<dyn Pieces> {
        Box::new(Given { bytes: Bytes::copy_from_slice(bytes), piece, pause: false })
    }

    #[test]
    fn a_large_part_is_copied_in_pieces_that_cover_it_once() {
        // Rows of 2 MiB and one of 9 MiB: cut along the first dimension, and within a row.
        for dims in [[9, 2 << 20], [1, 9 << 20], [3, 5 << 20]] {
            let size: i64 = dims.iter().product();
            let bytes: Vec<u8> = (0..size).map(|at| (at % 251) as u8).collect();
            let region = Region::dense(&dims, 1).unwrap();
            let wanted = IndexDomain::whole(Shape::new(dims).unwrap());
            let source = given(&bytes, 1 << 20);
            let mut composition = Composition::part(source, region, &wanted, 1).unwrap();
            let mut steps = 0;
            let found = loop {
                steps += 1;
                if let Some(found) = composition.step().unwrap() {
                    break found;
                }
            };
            assert!(found == bytes);
            // At least one step per piece of 4 MiB.
            assert!(steps as i64 > size / STEP as i64, "{steps}");
        }
    }

    proptest! {
        #[test]
        fn a_part_is_what_it_was_in_the_whole(
            rows in 1_i64..7, columns in 1_i64..7, seed in any::<u64>(), piece in 1_usize..20,
        ) {
            let bytes: Vec<u8> = (0..rows * columns * 2).map(|at| at as u8).collect();
            let (top, left) = ((seed % rows as u64) as i64, (seed / 7 % columns as u64) as i64);
            let shape = Shape::new([rows - top, columns - left]).unwrap();
            let wanted = IndexDomain::new(Index::new([top, left]), shape).unwrap();
            let region = Region::dense(&[rows, columns], 2).unwrap();
            let found = Composition::part(given(&bytes, piece), region, &wanted, 2).unwrap();
            prop_assert_eq!(found.size(), ((rows - top) * (columns - left) * 2) as u64);
            let mut expected = Vec::new();
            for row in top..rows {
                let begin = ((row * columns + left) * 2) as usize;
                let end = ((row + 1) * columns * 2) as usize;
                expected.extend_from_slice(&bytes[begin..end]);
            }
            prop_assert_eq!(found.finish().unwrap(), expected);
        }
    }
}
