//! Maps the bytes of a piece to a part of an array.

use std::ops::Range;

use smallvec::SmallVec;

use crate::shards::Block;

/// Bytes that are contiguous both in a piece and in the wanted part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) from: u64,
    pub(super) to: u64,
    pub(super) bytes: u64,
}

/// Runs of a part within a piece, in the piece's order.
#[derive(Clone, Debug)]
pub(super) struct Runs {
    /// Extent and strides in the piece and in the part, in bytes, of each dimension that is
    /// iterated.
    outer: SmallVec<[Dimension; 4]>,
    position: SmallVec<[u64; 4]>,
    next: Option<Run>,
}

#[derive(Clone, Copy, Debug)]
struct Dimension {
    extent: u64,
    from: u64,
    to: u64,
}

impl Runs {
    /// Creates the runs that a piece and a part have in common; `None` if they do not intersect.
    pub(super) fn between(piece: &Block, part: &Block, element: u64) -> Option<Self> {
        let mut stride = Dimension { extent: 1, from: element, to: element };
        let mut run = Run { from: 0, to: 0, bytes: element };
        let mut outer: SmallVec<[Dimension; 4]> = SmallVec::new();
        let mut joined = true;
        for (&(has, held), &(wants, wanted)) in piece.dims.iter().zip(&part.dims).rev() {
            let begin = has.max(wants);
            let end = has.saturating_add(held).min(wants.saturating_add(wanted));
            let extent = end.checked_sub(begin).filter(|extent| *extent > 0)?;
            run.from = run.from.checked_add((begin - has).checked_mul(stride.from)?)?;
            run.to = run.to.checked_add((begin - wants).checked_mul(stride.to)?)?;
            if joined {
                run.bytes = run.bytes.checked_mul(extent)?;
            } else {
                outer.push(Dimension { extent, ..stride });
            }
            // After a partial row there is a gap.
            joined &= extent == held && extent == wanted;
            stride.from = stride.from.checked_mul(held)?;
            stride.to = stride.to.checked_mul(wanted)?;
        }
        outer.reverse();
        let position = SmallVec::from_elem(0, outer.len());
        Some(Self { outer, position, next: Some(run) })
    }

    /// Returns the range from the first needed byte of the piece to the last; empty if there is
    /// none.
    pub(super) fn span(&self) -> Range<u64> {
        let Some(first) = self.next else { return 0..0 };
        let steps = self.outer.iter().map(|outer| (outer.extent - 1).saturating_mul(outer.from));
        let last = steps.fold(first.from, u64::saturating_add);
        first.from..last.saturating_add(first.bytes)
    }
}

impl Iterator for Runs {
    type Item = Run;

    fn next(&mut self) -> Option<Run> {
        let run = self.next?;
        let mut next = run;
        self.next = None;
        for (dimension, position) in self.outer.iter().zip(&mut self.position).rev() {
            *position += 1;
            if *position < dimension.extent {
                next.from += dimension.from;
                next.to += dimension.to;
                self.next = Some(next);
                break;
            }
            *position = 0;
            next.from -= (dimension.extent - 1) * dimension.from;
            next.to -= (dimension.extent - 1) * dimension.to;
        }
        Some(run)
    }
}
