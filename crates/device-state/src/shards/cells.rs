//! Iteration over an array in row-major order.

use smallvec::SmallVec;

use super::Block;

/// Maximum number of cells into which the cuts of all blocks divide an array: more than any real
/// sharding needs.
const MOST_CELLS: usize = 1 << 22;

/// A run of elements that are contiguous in the array, in its source, and in each of its targets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Run<'a> {
    /// Position of its source block; `None` if it has none.
    pub(crate) source: Option<u32>,
    /// Positions of its target blocks.
    pub(crate) targets: &'a [u32],
    /// Length of the run.
    pub(crate) elements: u64,
}

/// Iterator over the runs of an array, with the source and targets of each.
///
/// Every block is visited in its own row-major order, so that it can be read or written
/// sequentially.
#[derive(Debug)]
pub(crate) struct CellIterator {
    /// Starts of the intervals of each iterated dimension, and its end.
    cuts: Vec<Vec<u64>>,
    /// Source and targets of each cell, row-major over the intervals.
    cells: Vec<(Option<u32>, SmallVec<[u32; 2]>)>,
    /// Number of elements in the dimensions after the last iterated one.
    inner: u64,
    /// Index in each dimension; in the last one the index of an interval.
    at: Vec<u64>,
    /// Current interval of each dimension.
    interval: Vec<usize>,
    done: bool,
}

impl CellIterator {
    /// Creates the iterator over `whole`; an error message if the blocks have too many cuts.
    ///
    /// If several sources contain a cell, the first one is used.
    pub(crate) fn new(whole: &Block, sources: &[Block], targets: &[Block]) -> Result<Self, String> {
        let rank = whole.dims.len();
        let all = || sources.iter().chain(targets).filter(|block| !block.is_empty());
        let mut cuts: Vec<Vec<u64>> = Vec::with_capacity(rank);
        for (dim, (_, extent)) in whole.dims.iter().enumerate() {
            let ends = all().filter_map(|block| block.dims.get(dim));
            let mut points: Vec<u64> =
                ends.flat_map(|(start, extent)| [*start, start + extent]).collect();
            points.extend([0, *extent]);
            points.sort_unstable();
            points.dedup();
            cuts.push(points);
        }
        // Dimensions after the last cut one are visited as a whole.
        let walked = cuts.iter().rposition(|points| points.len() > 2).map_or(0, |last| last + 1);
        let inner = whole.dims.iter().skip(walked).try_fold(1_u64, |n, (_, e)| n.checked_mul(*e));
        cuts.truncate(walked);
        let count =
            cuts.iter().try_fold(1_usize, |count, points| count.checked_mul(points.len() - 1));
        let count = count.filter(|count| *count <= MOST_CELLS);
        let (Some(count), Some(inner)) = (count, inner) else {
            return Err(format!(
                "{} parts and {} shards cut it into too many pieces",
                sources.len(),
                targets.len()
            ));
        };
        let mut cells = Self {
            cells: vec![(None, SmallVec::new()); count],
            at: vec![0; walked],
            interval: vec![0; walked],
            done: whole.is_empty(),
            cuts,
            inner,
        };
        let mut work = 0;
        for (position, block) in (0_u32..).zip(sources) {
            work += cells.mark(block, |cell| {
                cell.0.get_or_insert(position);
            });
        }
        for (position, block) in (0_u32..).zip(targets) {
            work += cells.mark(block, |cell| cell.1.push(position));
            if work > 4 * MOST_CELLS {
                return Err("its shards overlap too often".to_owned());
            }
        }
        Ok(cells)
    }

    /// Visits the cells of a block; returns their number.
    fn mark(
        &mut self,
        block: &Block,
        mut mark: impl FnMut(&mut (Option<u32>, SmallVec<[u32; 2]>)),
    ) -> usize {
        if block.is_empty() {
            return 0;
        }
        let ranges: Vec<(usize, usize)> = self
            .cuts
            .iter()
            .zip(&block.dims)
            .map(|(points, (start, extent))| {
                let from = points.partition_point(|point| point < start);
                (from, points.partition_point(|point| *point < start + extent))
            })
            .collect();
        let mut at: Vec<usize> = ranges.iter().map(|(from, _)| *from).collect();
        let mut marked = 0;
        loop {
            if let Some(cell) = self.cell_of(&at).and_then(|cell| self.cells.get_mut(cell)) {
                mark(cell);
                marked += 1;
            }
            let mut carried = true;
            for (at, (from, to)) in at.iter_mut().zip(&ranges).rev() {
                *at += 1;
                if *at < *to {
                    carried = false;
                    break;
                }
                *at = *from;
            }
            if carried {
                return marked;
            }
        }
    }

    fn cell_of(&self, intervals: &[usize]) -> Option<usize> {
        let pairs = intervals.iter().zip(&self.cuts);
        pairs.clone().try_fold(0_usize, |cell, (interval, points)| {
            let count = points.len().checked_sub(1)?;
            (*interval < count).then(|| cell * count + interval)
        })
    }

    /// Returns the next run; `None` at the end of the array.
    pub(crate) fn next(&mut self) -> Option<Run<'_>> {
        if self.done {
            return None;
        }
        let cell = self.cell_of(&self.interval)?;
        let last = self.cuts.last().zip(self.interval.last());
        let width = last.map_or(1, |(points, interval)| {
            let from = points.get(*interval).copied().unwrap_or_default();
            points.get(interval + 1).map_or(0, |to| to - from)
        });
        self.step();
        let (source, targets) = self.cells.get(cell)?;
        Some(Run { source: *source, targets, elements: width.saturating_mul(self.inner) })
    }

    /// Moves to the next interval of the last dimension, or to the next row.
    fn step(&mut self) {
        let last = self.cuts.len().saturating_sub(1);
        let dims = self.cuts.iter().zip(&mut self.at).zip(&mut self.interval).enumerate();
        for (dim, ((points, at), interval)) in dims.rev() {
            if dim == last {
                *interval += 1;
                *at = points.get(*interval).copied().unwrap_or_default();
            } else {
                *at += 1;
                *interval += usize::from(points.get(*interval + 1) == Some(at));
            }
            if points.last() != Some(at) {
                return;
            }
            (*at, *interval) = (0, 0);
        }
        self.done = true;
    }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use super::*;

    fn block(dims: &[(u64, u64)]) -> Block {
        Block { dims: dims.iter().copied().collect() }
    }

    fn runs(
        whole: &Block,
        sources: &[Block],
        targets: &[Block],
    ) -> Vec<(Option<u32>, Vec<u32>, u64)> {
        let mut cells = CellIterator::new(whole, sources, targets).unwrap();
        let mut runs = Vec::new();
        while let Some(run) = cells.next() {
            runs.push((run.source, run.targets.to_vec(), run.elements));
        }
        runs
    }

    #[test]
    fn rows_that_become_columns_are_passed_in_runs() {
        let whole = block(&[(0, 4), (0, 6)]);
        let rows = [block(&[(0, 2), (0, 6)]), block(&[(2, 2), (0, 6)])];
        let columns = [block(&[(0, 4), (0, 4)]), block(&[(0, 4), (4, 2)])];
        let found = runs(&whole, &rows, &columns);
        let row = |source| [(Some(source), vec![0], 4), (Some(source), vec![1], 2)];
        let expected: Vec<_> = [0, 0, 1, 1].into_iter().flat_map(row).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn uncut_array_is_one_run_of_any_size() {
        let whole = block(&[(0, 1 << 20), (0, 1 << 20), (0, 1 << 20)]);
        assert_eq!(runs(&whole, from_ref(&whole), from_ref(&whole)), [(Some(0), vec![0], 1 << 60)]);
        let scalar = block(&[]);
        assert_eq!(runs(&scalar, from_ref(&scalar), &[]), [(Some(0), vec![], 1)]);
    }

    #[test]
    fn an_array_without_elements_has_no_runs() {
        let whole = block(&[(0, 0), (0, 3)]);
        assert_eq!(runs(&whole, from_ref(&whole), from_ref(&whole)), []);
    }

    #[test]
    fn shards_may_overlap_and_leave_gaps() {
        let whole = block(&[(0, 5)]);
        let found = runs(&whole, &[block(&[(0, 5)])], &[block(&[(0, 3)]), block(&[(2, 2)])]);
        let expected = [
            (Some(0), vec![0], 2),
            (Some(0), vec![0, 1], 1),
            (Some(0), vec![1], 1),
            (Some(0), vec![], 1),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn too_many_cuts_are_refused() {
        let whole = block(&[(0, 5000), (0, 5000)]);
        let diagonal: Vec<_> = (0..5000).map(|n| block(&[(n, 1), (n, 1)])).collect();
        assert!(CellIterator::new(&whole, &diagonal, &[]).is_err());
    }
}
