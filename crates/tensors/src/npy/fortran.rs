//! Converts column-major elements to row-major order.

use std::io::{self, Read};

use serdes_files::ReadAt;

/// Bytes of rows that are gathered at a time.
const BAND_BYTES: u64 = 16 << 20;

/// Reader that converts column-major elements of `source` to row-major ones, a band of rows at a
/// time.
pub(super) struct RowMajor<S> {
    source: S,
    offset: u64,
    element: u64,
    /// Extent of the first dimension: contiguous elements in the file.
    rows: u64,
    /// Extents of the other dimensions.
    rest: Vec<u64>,
    next_row: u64,
    band: Vec<u8>,
    position: usize,
}

impl<S: ReadAt> RowMajor<S> {
    /// Creates a reader; `None` if one row is too long for bounded memory.
    pub(super) fn new(source: S, offset: u64, element: u64, dims: &[i64]) -> Option<Self> {
        let (first, rest) = dims.split_first()?;
        let rest: Vec<u64> = rest.iter().map(|extent| *extent as u64).collect();
        let row = rest.iter().try_fold(element, |bytes, extent| bytes.checked_mul(*extent))?;
        let rows = if row == 0 { 0 } else { *first as u64 };
        (row <= BAND_BYTES).then_some(Self {
            source,
            offset,
            element,
            rows,
            rest,
            next_row: 0,
            band: Vec::new(),
            position: 0,
        })
    }

    fn fill(&mut self) -> io::Result<()> {
        let columns: u64 = self.rest.iter().product();
        let row_bytes = columns * self.element;
        let count = (BAND_BYTES / row_bytes.max(1)).clamp(1, self.rows - self.next_row);
        self.band.resize((count * row_bytes) as usize, 0);
        self.position = 0;
        let (element, row_bytes) = (self.element as usize, row_bytes as usize);
        let mut column = vec![0; count as usize * element];
        let mut index = vec![0_u64; self.rest.len()];
        for number in 0..columns {
            let place = self.offset + (number * self.rows + self.next_row) * self.element;
            self.source.read_exact_at(&mut column, place)?;
            // Index of the same column in row-major order.
            let target = index.iter().zip(&self.rest).fold(0, |n, (i, extent)| n * extent + i);
            let begin = target as usize * element;
            for (from, row) in
                column.chunks_exact(element).zip(self.band.chunks_exact_mut(row_bytes))
            {
                if let Some(to) = row.get_mut(begin..begin + element) {
                    to.copy_from_slice(from);
                }
            }
            for (i, extent) in index.iter_mut().zip(&self.rest) {
                *i += 1;
                if *i < *extent {
                    break;
                }
                *i = 0;
            }
        }
        self.next_row += count;
        Ok(())
    }
}

impl<S: ReadAt> Read for RowMajor<S> {
    #[expect(clippy::indexing_slicing, reason = "`position` is at most the length of the band")]
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.position == self.band.len() {
            if self.next_row == self.rows {
                return Ok(0);
            }
            self.fill()?;
        }
        let count = (&self.band[self.position..]).read(out)?;
        self.position += count;
        Ok(count)
    }
}
