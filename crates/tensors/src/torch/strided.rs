//! Reads elements of a storage that are not in the tensor's order: transposed, sliced or expanded
//! views.
//!
//! The elements are produced in blocks of rows. The elements of a block are read in the storage's
//! order: nearby ones are read at once, and sorted into the block in memory.

use std::io::{self, Read};

use serdes_files::ReadAt;

/// Maximum size in bytes of a block that is gathered at a time.
const BLOCK_BYTES: u64 = 16 << 20;

/// Maximum size of one read in bytes.
const READ_BYTES: u64 = 4 << 20;

/// Size up to which one read is used, however few elements it has.
const FEW_BYTES: u64 = 64 << 10;

/// Bytes per element up to which one read is used: reading another kilobyte takes no longer than
/// starting another read.
const BYTES_PER_ELEMENT: u64 = 1 << 10;

/// A dimension: its extent, and its stride in elements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Dimension {
    pub(super) extent: u64,
    pub(super) stride: u64,
}

/// Strided layout of a tensor's elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Layout {
    /// Position of the first element, in bytes from the start of the file.
    pub(super) begin: u64,
    /// Bytes of an element.
    pub(super) element: u64,
    pub(super) dimensions: Vec<Dimension>,
}

impl Layout {
    /// Returns true if the elements are contiguous.
    pub(super) fn is_contiguous(&self) -> bool {
        if self.dimensions.iter().any(|dimension| dimension.extent == 0) {
            return true;
        }
        let mut expected = Some(1_u64);
        for Dimension { extent, stride } in self.dimensions.iter().rev() {
            match *extent {
                1 => {}
                extent if expected == Some(*stride) => {
                    expected = stride.checked_mul(extent);
                }
                _ => return false,
            }
        }
        true
    }

    /// Returns the number of elements from the first to the last one of the tensor, inclusive;
    /// `None` on overflow.
    pub(super) fn span(&self) -> Option<u64> {
        let mut last = 0_u64;
        for Dimension { extent, stride } in &self.dimensions {
            let Some(most) = extent.checked_sub(1) else { return Some(0) };
            last = last.checked_add(most.checked_mul(*stride)?)?;
        }
        last.checked_add(1)
    }

    /// Returns the number of bytes of all elements.
    pub(super) fn bytes(&self) -> u64 {
        let extents = self.dimensions.iter().map(|dimension| dimension.extent);
        extents.fold(self.element, u64::saturating_mul)
    }

    /// Removes dimensions of extent 1, and merges contiguous ones.
    fn simplified(&self) -> Vec<Dimension> {
        let mut simple: Vec<Dimension> = Vec::new();
        for dimension in self.dimensions.iter().filter(|dimension| dimension.extent != 1) {
            match simple.last_mut() {
                Some(before)
                    if dimension.stride.checked_mul(dimension.extent) == Some(before.stride)
                        && before.extent.checked_mul(dimension.extent).is_some() =>
                {
                    before.extent *= dimension.extent;
                    before.stride = dimension.stride;
                }
                _ => simple.push(*dimension),
            }
        }
        if simple.is_empty() {
            simple.push(Dimension { extent: 1, stride: 1 });
        }
        simple
    }
}

/// Reader of a tensor's elements in row-major order.
pub(super) struct Strided<S> {
    source: S,
    begin: u64,
    element: u64,
    /// Leading dimensions, of which a block has one index.
    outer: Vec<Dimension>,
    /// The dimension of which a block has as many indices as fit.
    middle: Dimension,
    /// Dimensions of which a block has every index.
    inner: Vec<Dimension>,
    /// Next index of the outer dimensions and the middle one.
    index: Vec<u64>,
    next: u64,
    is_done: bool,
    block: Vec<u8>,
    taken: usize,
}

impl<S: ReadAt> Strided<S> {
    pub(super) fn new(source: S, layout: &Layout) -> Self {
        let mut outer = layout.simplified();
        let is_done = outer.iter().any(|dimension| dimension.extent == 0);
        let (mut inner, mut row) = (Vec::new(), layout.element);
        let mut middle = outer.pop().unwrap_or(Dimension { extent: 1, stride: 1 });
        while let Some(larger) =
            row.checked_mul(middle.extent).filter(|larger| *larger <= BLOCK_BYTES)
            && let Some(next) = outer.pop()
        {
            inner.insert(0, middle);
            (middle, row) = (next, larger);
        }
        Self {
            source,
            begin: layout.begin,
            element: layout.element,
            index: vec![0; outer.len()],
            outer,
            middle,
            inner,
            next: 0,
            is_done,
            block: Vec::new(),
            taken: 0,
        }
    }

    /// Gathers the next block.
    fn step(&mut self) -> io::Result<()> {
        let row = self.inner.iter().map(|dimension| dimension.extent).product::<u64>();
        let count = (BLOCK_BYTES / (row * self.element).max(1)).max(1);
        let count = count.min(self.middle.extent - self.next);
        let outer = self.index.iter().zip(&self.outer);
        let first = outer.map(|(index, dimension)| index * dimension.stride).sum::<u64>()
            + self.next * self.middle.stride;
        let mut sides = vec![Side { extent: count, stride: self.middle.stride, step: row }];
        let mut step = row;
        for Dimension { extent, stride } in &self.inner {
            step /= extent;
            sides.push(Side { extent: *extent, stride: *stride, step });
        }
        self.taken = 0;
        self.block.clear();
        self.block.resize((count * row * self.element) as usize, 0);
        Gather {
            source: &self.source,
            begin: self.begin,
            element: self.element,
            out: &mut self.block,
            near: Vec::new(),
        }
        .fill(&mut sides, first, 0)?;
        self.next += count;
        if self.next == self.middle.extent {
            self.advance();
        }
        Ok(())
    }

    /// Advances to the next outer index.
    fn advance(&mut self) {
        self.next = 0;
        for (index, dimension) in self.index.iter_mut().zip(&self.outer).rev() {
            *index += 1;
            if *index < dimension.extent {
                return;
            }
            *index = 0;
        }
        self.is_done = true;
    }
}

impl<S: ReadAt> Read for Strided<S> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.taken == self.block.len() {
            if self.is_done {
                return Ok(0);
            }
            self.step()?;
        }
        let count = self.block.get(self.taken..).unwrap_or_default().read(out)?;
        self.taken += count;
        Ok(count)
    }
}

/// A side of a box of elements: its extent, and its strides in elements in the storage and in the
/// block.
#[derive(Clone, Copy)]
struct Side {
    extent: u64,
    stride: u64,
    step: u64,
}

impl Side {
    /// Returns the distance in the storage from the first index to the last.
    const fn reach(&self) -> u64 {
        self.extent.saturating_sub(1).saturating_mul(self.stride)
    }
}

/// Copies elements from the storage into a block.
struct Gather<'a, S> {
    source: &'a S,
    begin: u64,
    element: u64,
    out: &'a mut [u8],
    /// Bytes of the last read.
    near: Vec<u8>,
}

impl<S: ReadAt> Gather<'_, S> {
    /// Fills a box in the block; `from` and `to` are its first elements in the storage and in the
    /// block.
    fn fill(&mut self, sides: &mut [Side], from: u64, to: u64) -> io::Result<()> {
        let span = sides.iter().map(Side::reach).sum::<u64>().saturating_add(1);
        let span = span.saturating_mul(self.element);
        // Repeated elements along a side need no further reads.
        let read = sides.iter().filter(|side| side.stride > 0).map(|side| side.extent);
        let wanted = read.product::<u64>().saturating_mul(BYTES_PER_ELEMENT);
        let longest = sides.iter().copied().enumerate().max_by_key(|(_, side)| side.reach());
        let Some((at, whole)) = longest.filter(|(_, longest)| longest.reach() > 0) else {
            return self.copy(sides, span, from, to);
        };
        if span <= READ_BYTES.min(wanted.max(FEW_BYTES)) {
            return self.copy(sides, span, from, to);
        }
        let half = whole.extent / 2;
        let set = |sides: &mut [Side], extent| {
            if let Some(side) = sides.get_mut(at) {
                side.extent = extent;
            }
        };
        set(sides, half);
        self.fill(sides, from, to)?;
        set(sides, whole.extent - half);
        self.fill(sides, from + half * whole.stride, to + half * whole.step)?;
        set(sides, whole.extent);
        Ok(())
    }

    /// Reads the range of a box, and sorts it into the block.
    fn copy(&mut self, sides: &[Side], span: u64, from: u64, to: u64) -> io::Result<()> {
        self.near.resize(span as usize, 0);
        self.source.read_exact_at(&mut self.near, self.begin + from * self.element)?;
        match self.element {
            1 => self.sort::<1>(sides, to),
            2 => self.sort::<2>(sides, to),
            4 => self.sort::<4>(sides, to),
            8 => self.sort::<8>(sides, to),
            16 => self.sort::<16>(sides, to),
            _ => return Err(io::ErrorKind::Unsupported.into()),
        }
        Ok(())
    }

    /// Sorts elements of `N` bytes into the block, the longest side at a time.
    fn sort<const N: usize>(&mut self, sides: &[Side], to: u64) {
        let (near, _) = self.near.as_chunks::<N>();
        let (out, _) = self.out.as_chunks_mut::<N>();
        let longest = sides.iter().enumerate().max_by_key(|(_, side)| side.extent);
        let Some((place, line)) = longest else { return };
        let mut index = vec![0_u64; sides.len()];
        loop {
            let at = index.iter().zip(sides);
            let (from, to) = at.fold((0, to), |(from, to), (index, side)| {
                (from + index * side.stride, to + index * side.step)
            });
            let from = near.get(from as usize..).unwrap_or_default();
            let to = out.get_mut(to as usize..).unwrap_or_default();
            let (stride, step) = (line.stride as usize, line.step as usize);
            match (stride, step) {
                (0, _) => {
                    let one = from.first().copied().unwrap_or([0; N]);
                    let places = to.iter_mut().step_by(step.max(1));
                    places.take(line.extent as usize).for_each(|to| *to = one);
                }
                (1, 1) => {
                    let count = line.extent as usize;
                    if let (Some(from), Some(to)) = (from.get(..count), to.get_mut(..count)) {
                        to.copy_from_slice(from);
                    }
                }
                _ => {
                    let places = to.iter_mut().step_by(step.max(1)).take(line.extent as usize);
                    places.zip(from.iter().step_by(stride)).for_each(|(to, from)| *to = *from);
                }
            }
            let others = index.iter_mut().zip(sides).enumerate().rev();
            let mut is_done = true;
            for (_, (index, side)) in others.filter(|(side, _)| *side != place) {
                *index += 1;
                if *index < side.extent {
                    is_done = false;
                    break;
                }
                *index = 0;
            }
            if is_done {
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Returns the elements of a tensor over a storage of two-byte numbers that count from 0.
    fn read(dimensions: &[(u64, u64)], step: usize) -> Vec<u16> {
        let dimensions = dimensions.iter().map(|&(extent, stride)| Dimension { extent, stride });
        let layout = Layout { begin: 6, element: 2, dimensions: dimensions.collect() };
        let numbers = layout.span().unwrap().max(1);
        let storage: Vec<u8> =
            [7; 6].into_iter().chain((0..numbers).flat_map(|n| (n as u16).to_le_bytes())).collect();
        let mut strided = Strided::new(storage, &layout);
        let mut bytes = Vec::new();
        let mut part = vec![0; step];
        loop {
            match strided.read(&mut part).unwrap() {
                0 => break,
                count => bytes.extend(&part[..count]),
            }
        }
        bytes.as_chunks().0.iter().map(|word| u16::from_le_bytes(*word)).collect()
    }

    fn expected(dimensions: &[(u64, u64)]) -> Vec<u16> {
        match dimensions.split_first() {
            None => vec![0],
            Some(((extent, stride), rest)) => (0..*extent)
                .flat_map(|index| {
                    expected(rest).into_iter().map(move |inner| inner + (index * stride) as u16)
                })
                .collect(),
        }
    }

    #[test]
    fn turned_cut_and_spread_views_come_in_row_major_order() {
        assert_eq!(read(&[(3, 1), (2, 3)], 5), [0, 3, 1, 4, 2, 5]);
        assert_eq!(read(&[(2, 4), (2, 2)], 3), [0, 2, 4, 6]);
        assert_eq!(read(&[(2, 0), (3, 1)], 100), [0, 1, 2, 0, 1, 2]);
        assert_eq!(read(&[], 1), [0]);
        assert_eq!(read(&[(0, 5), (3, 1)], 1), [0_u16; 0]);
    }

    #[test]
    fn contiguous_tensors_are_recognised() {
        let is = |dimensions: &[(u64, u64)]| {
            let dimensions =
                dimensions.iter().map(|&(extent, stride)| Dimension { extent, stride });
            Layout { begin: 0, element: 4, dimensions: dimensions.collect() }.is_contiguous()
        };
        assert!(is(&[]) && is(&[(3, 2), (2, 1)]) && is(&[(1, 99), (2, 1), (1, 7)]));
        assert!(is(&[(0, 0), (9, 9)]));
        assert!(!is(&[(3, 1), (2, 3)]) && !is(&[(2, 0)]) && !is(&[(2, 4), (3, 1)]));
    }

    #[test]
    fn a_span_beyond_counting_is_none() {
        let layout = |extent, stride| Layout {
            begin: 0,
            element: 1,
            dimensions: vec![Dimension { extent, stride }; 2],
        };
        assert_eq!(layout(u64::MAX, u64::MAX).span(), None);
        assert_eq!(layout(0, u64::MAX).span(), Some(0));
    }

    /// A storage that is too long to be gathered at once; each byte is the number of its kilobyte.
    struct Long(u64);

    impl ReadAt for Long {
        fn size(&self) -> io::Result<u64> {
            Ok(self.0)
        }

        fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
            for (number, byte) in buffer.iter_mut().enumerate() {
                *byte = ((offset + number as u64) / 1024) as u8;
            }
            Ok(buffer.len())
        }
    }

    fn first_bytes(dimensions: &[(u64, u64)], count: u64) -> Vec<u8> {
        let dimensions = dimensions.iter().map(|&(extent, stride)| Dimension { extent, stride });
        let layout = Layout { begin: 0, element: 1, dimensions: dimensions.collect() };
        let source = Long(layout.span().unwrap());
        let mut bytes = Vec::new();
        Strided::new(source, &layout).take(count).read_to_end(&mut bytes).unwrap();
        bytes
    }

    #[test]
    fn strided_tensor_beyond_memory_is_read_in_bands_and_rows() {
        // Transposed: rows of 64 elements that lie 1 MiB apart.
        let turned = first_bytes(&[(1 << 20, 1), (64, 1 << 20)], 1 << 17);
        let wanted = |at: u64| ((((at % 64) << 20) | (at / 64)) / 1024) as u8;
        assert!((0..1 << 17).all(|at| turned[at as usize] == wanted(at)));
        // Sliced: every second kilobyte of each row.
        let cut = first_bytes(&[(1 << 16, 2048), (1024, 1)], 1 << 14);
        assert!((0..1 << 14_u64).all(|at| u64::from(cut[at as usize]) == at / 1024 * 2 % 256));
        // Scattered: every element far from the next.
        let far = first_bytes(&[(1 << 10, 1 << 16)], 100);
        assert!((0..100_u64).all(|at| u64::from(far[at as usize]) == at * 64 % 256));
        // Rows that are longer than a block, with scattered elements.
        let long = first_bytes(&[(2, 1), (1 << 25, 2)], 1 << 13);
        assert!((0..1 << 13_u64).all(|at| u64::from(long[at as usize]) == at * 2 / 1024 % 256));
    }

    /// A storage that counts its reads and their bytes.
    struct Counted<'a>(Vec<u8>, &'a std::sync::Mutex<(u64, u64)>);

    impl ReadAt for Counted<'_> {
        fn size(&self) -> io::Result<u64> {
            Ok(self.0.len() as u64)
        }

        fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
            let mut counted = self.1.lock().unwrap();
            *counted = (counted.0 + 1, counted.1 + buffer.len() as u64);
            self.0.read_at(buffer, offset)
        }
    }

    #[test]
    fn strided_reads_blocks_and_not_elements() {
        let layout = Layout {
            begin: 0,
            element: 1,
            dimensions: [(4, 1), (1024, 11_000), (3000, 3)]
                .map(|(extent, stride)| Dimension { extent, stride })
                .to_vec(),
        };
        let storage: Vec<u8> = (0..layout.span().unwrap()).map(|at| (at % 251) as u8).collect();
        let counted = std::sync::Mutex::default();
        let mut bytes = Vec::new();
        let size = storage.len() as u64;
        Strided::new(Counted(storage, &counted), &layout).read_to_end(&mut bytes).unwrap();
        for (index, at) in [(0, 0), (1, 3), (3000, 11_000), (1024 * 3000 * 3 + 5, 3 + 15)] {
            assert_eq!(u64::from(bytes[index]), at % 251, "{index}");
        }
        let (reads, read) = *counted.lock().unwrap();
        assert!(reads < 100 && read < 5 * size, "{reads} reads of {read} bytes of {size}");
    }

    proptest! {
        #[test]
        fn any_view_is_read_as_its_strides_say(
            dimensions in prop::collection::vec((0_u64..5, 0_u64..9), 0..4),
            step in 1_usize..40,
        ) {
            prop_assert_eq!(read(&dimensions, step), expected(&dimensions));
        }
    }
}
