//! Elements of a storage that do not lie in the order of the tensor: views that are turned, cut or
//! spread.

use std::io::{self, Read};

use crate::files::ReadAt;

/// A tensor whose elements lie within as many bytes is gathered in memory.
const WINDOW_BYTES: u64 = 32 << 20;

/// Bytes of a band of rows, where the first index of a row runs fastest in the storage.
const BAND_BYTES: u64 = 16 << 20;

/// Bytes that are gathered at a time where the last index runs fastest.
const BLOCK_BYTES: u64 = 1 << 20;

/// Elements that are further apart are read one by one.
const NEAR_BYTES: u64 = 4096;

/// A dimension: its extent, and how many elements lie between one index and the next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Dimension {
    pub(super) extent: u64,
    pub(super) stride: u64,
}

/// Where the elements of a tensor lie.
#[derive(Clone, Debug)]
pub(super) struct Layout {
    /// Where the first element is, in bytes from the start of the file.
    pub(super) begin: u64,
    /// Bytes of an element.
    pub(super) element: u64,
    pub(super) dimensions: Vec<Dimension>,
}

impl Layout {
    /// Whether the elements follow each other.
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

    /// Elements from the first to the last one that the tensor has, both included; `None` if they
    /// are beyond counting.
    pub(super) fn span(&self) -> Option<u64> {
        let mut last = 0_u64;
        for Dimension { extent, stride } in &self.dimensions {
            let Some(most) = extent.checked_sub(1) else { return Some(0) };
            last = last.checked_add(most.checked_mul(*stride)?)?;
        }
        last.checked_add(1)
    }

    /// Without dimensions of one index, and with those that follow each other made one.
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

/// Gives out the elements of a tensor in row-major order.
pub(super) struct Strided<S> {
    source: S,
    begin: u64,
    element: u64,
    /// All dimensions but the last ones, which a step goes through.
    outer: Vec<Dimension>,
    /// The dimension of which a step takes as much as fits.
    middle: Dimension,
    /// Dimensions that a step goes through, in bands.
    inner: Vec<Dimension>,
    /// The next index of the outer dimensions, and of the middle one.
    index: Vec<u64>,
    next: u64,
    is_done: bool,
    /// What the tensor's elements lie in, where that is little.
    window: Option<Vec<u8>>,
    /// Bytes of the window.
    span: u64,
    block: Vec<u8>,
    taken: usize,
}

impl<S: ReadAt> Strided<S> {
    /// `None` if its rows are scattered so that none can be gathered in bounded memory.
    pub(super) fn new(source: S, layout: &Layout) -> Option<Self> {
        let mut outer = layout.simplified();
        let is_empty = outer.iter().any(|dimension| dimension.extent == 0);
        let span = layout.span()?.checked_mul(layout.element)?;
        let fastest = (span > WINDOW_BYTES && !is_empty).then(|| fastest(&outer)).flatten();
        let inner = match fastest {
            Some(place) => outer.split_off(place + 1),
            None => Vec::new(),
        };
        let row = inner
            .iter()
            .try_fold(layout.element, |bytes, dimension| bytes.checked_mul(dimension.extent))?;
        let middle = outer.pop()?;
        (row <= BAND_BYTES).then(|| Self {
            source,
            begin: layout.begin,
            element: layout.element,
            index: vec![0; outer.len()],
            outer,
            middle,
            inner,
            next: 0,
            is_done: is_empty,
            window: None,
            span,
            block: Vec::new(),
            taken: 0,
        })
    }

    /// Gathers the next elements.
    fn step(&mut self) -> io::Result<()> {
        if self.window.is_none() && self.span <= WINDOW_BYTES {
            let mut window = vec![0; self.span as usize];
            self.source.read_exact_at(&mut window, self.begin)?;
            self.window = Some(window);
        }
        self.block.clear();
        self.taken = 0;
        if self.inner.is_empty() { self.rows() } else { self.band() }
    }

    /// Where the elements of the outer index begin, in elements.
    fn place(&self) -> u64 {
        self.index.iter().zip(&self.outer).map(|(index, dimension)| index * dimension.stride).sum()
    }

    /// Goes on to the next outer index.
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

    /// Rows, or a part of a long one.
    fn rows(&mut self) -> io::Result<()> {
        let mut block = std::mem::take(&mut self.block);
        while !self.is_done && (block.len() as u64) < BLOCK_BYTES {
            let room = ((BLOCK_BYTES - block.len() as u64) / self.element).max(1);
            let count = room.min(self.middle.extent - self.next);
            let place = self.place() + self.next * self.middle.stride;
            let from = block.len();
            block.resize(from + (count * self.element) as usize, 0);
            let out = block.get_mut(from..).unwrap_or_default();
            self.gather(place, self.middle.stride, out)?;
            self.next += count;
            if self.next == self.middle.extent {
                self.advance();
            }
        }
        self.block = block;
        Ok(())
    }

    /// A band of rows, each inner index for all rows of it at a time.
    fn band(&mut self) -> io::Result<()> {
        let columns: u64 = self.inner.iter().map(|dimension| dimension.extent).product();
        let row_bytes = columns * self.element;
        let count = (BAND_BYTES / row_bytes.max(1)).clamp(1, self.middle.extent - self.next);
        let mut block = std::mem::take(&mut self.block);
        block.resize((count * row_bytes) as usize, 0);
        let mut column = vec![0; (count * self.element) as usize];
        let (element, row_bytes) = (self.element as usize, row_bytes as usize);
        let first = self.place() + self.next * self.middle.stride;
        let mut index = vec![0_u64; self.inner.len()];
        for number in 0..columns as usize {
            let inner = index.iter().zip(&self.inner);
            let place = first + inner.map(|(index, inner)| index * inner.stride).sum::<u64>();
            self.gather(place, self.middle.stride, &mut column)?;
            let begin = number * element;
            for (from, row) in column.chunks_exact(element).zip(block.chunks_exact_mut(row_bytes)) {
                if let Some(to) = row.get_mut(begin..begin + element) {
                    to.copy_from_slice(from);
                }
            }
            for (index, inner) in index.iter_mut().zip(&self.inner).rev() {
                *index += 1;
                if *index < inner.extent {
                    break;
                }
                *index = 0;
            }
        }
        self.block = block;
        self.next += count;
        if self.next == self.middle.extent {
            self.advance();
        }
        Ok(())
    }

    /// Reads elements, the first of which is at a place in the storage, `stride` apart.
    fn gather(&self, place: u64, stride: u64, out: &mut [u8]) -> io::Result<()> {
        let element = self.element as usize;
        if stride == 1 || out.len() <= element {
            return self.fetch(place, out);
        }
        if stride == 0 {
            let (first, rest) = out.split_at_mut(element);
            self.fetch(place, first)?;
            rest.chunks_exact_mut(element).for_each(|to| to.copy_from_slice(first));
            return Ok(());
        }
        let apart = stride.saturating_mul(self.element);
        if apart > NEAR_BYTES && self.window.is_none() {
            for (number, to) in out.chunks_exact_mut(element).enumerate() {
                self.fetch(place + number as u64 * stride, to)?;
            }
            return Ok(());
        }
        let apart = apart as usize;
        let together = (BLOCK_BYTES as usize / apart).max(1);
        let mut near = Vec::new();
        for (number, part) in out.chunks_mut(together * element).enumerate() {
            let count = part.len() / element;
            near.resize((count - 1) * apart + element, 0);
            self.fetch(place + (number * together) as u64 * stride, &mut near)?;
            for (to, from) in part.chunks_exact_mut(element).zip(near.chunks(apart)) {
                if let Some(from) = from.get(..element) {
                    to.copy_from_slice(from);
                }
            }
        }
        Ok(())
    }

    /// Reads bytes from a place in the storage, in elements.
    fn fetch(&self, place: u64, out: &mut [u8]) -> io::Result<()> {
        let at = place * self.element;
        match &self.window {
            Some(window) => window.read_exact_at(out, at),
            None => self.source.read_exact_at(out, self.begin + at),
        }
    }
}

/// The dimension whose indices are nearest to each other, if it is not the last one anyhow.
fn fastest(dimensions: &[Dimension]) -> Option<usize> {
    let moving = dimensions.iter().enumerate().filter(|(_, dimension)| dimension.stride > 0);
    // Of several the last one.
    let place = moving.rev().min_by_key(|(_, dimension)| dimension.stride)?.0;
    let behind = dimensions.get(place + 1..)?;
    behind.iter().any(|dimension| dimension.stride > 0).then_some(place)
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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// The elements of a tensor over a storage of two-byte numbers that count from 0.
    fn read(dimensions: &[(u64, u64)], step: usize) -> Vec<u16> {
        let dimensions = dimensions.iter().map(|&(extent, stride)| Dimension { extent, stride });
        let layout = Layout { begin: 6, element: 2, dimensions: dimensions.collect() };
        let numbers = layout.span().unwrap().max(1);
        let storage: Vec<u8> =
            [7; 6].into_iter().chain((0..numbers).flat_map(|n| (n as u16).to_le_bytes())).collect();
        let mut strided = Strided::new(storage, &layout).unwrap();
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
    fn what_is_contiguous_is_seen() {
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

    /// A storage that is too long to be gathered at once, each byte the number of its kilobyte.
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

    fn first_bytes(dimensions: &[(u64, u64)], count: u64) -> Option<Vec<u8>> {
        let dimensions = dimensions.iter().map(|&(extent, stride)| Dimension { extent, stride });
        let layout = Layout { begin: 0, element: 1, dimensions: dimensions.collect() };
        let source = Long(layout.span().unwrap());
        let mut bytes = Vec::new();
        Strided::new(source, &layout)?.take(count).read_to_end(&mut bytes).unwrap();
        Some(bytes)
    }

    #[test]
    fn what_is_too_long_for_memory_is_read_in_bands_and_rows() {
        // Turned: rows of 64 elements that lie 1 MiB apart.
        let turned = first_bytes(&[(1 << 20, 1), (64, 1 << 20)], 1 << 17).unwrap();
        let wanted = |at: u64| ((((at % 64) << 20) | (at / 64)) / 1024) as u8;
        assert!((0..1 << 17).all(|at| turned[at as usize] == wanted(at)));
        // Cut: every second kilobyte of each row.
        let cut = first_bytes(&[(1 << 16, 2048), (1024, 1)], 1 << 14).unwrap();
        assert!((0..1 << 14_u64).all(|at| u64::from(cut[at as usize]) == at / 1024 * 2 % 256));
        // Scattered: every element far from the next.
        let far = first_bytes(&[(1 << 10, 1 << 16)], 100).unwrap();
        assert!((0..100_u64).all(|at| u64::from(far[at as usize]) == at * 64 % 256));
        assert_eq!(first_bytes(&[(2, 1), (1 << 25, 2)], 1), None);
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
