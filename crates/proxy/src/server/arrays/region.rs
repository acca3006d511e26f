//! Layout of an array's elements in host memory, and copies between layouts.

use serdes::codec::Status;

use crate::status::status;

/// Memory of an array's elements: from the first byte of element 0 to the last byte of the last
/// element, including gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Region {
    shape: Vec<i64>,
    /// Distance in bytes between consecutive elements of each dimension.
    strides: Vec<i64>,
    item: usize,
    bytes: u64,
}

impl Region {
    /// Creates a region of row-major elements without gaps.
    ///
    /// # Errors
    /// INVALID_ARGUMENT if the size does not fit 63 bits.
    pub(crate) fn dense(shape: &[i64], item: usize) -> Result<Self, Status> {
        let too_large = || {
            status!(
                InvalidArgument,
                "an array of {shape:?} elements of {item} bytes has a size beyond 63 bits"
            )
        };
        let mut strides = vec![0; shape.len()];
        if shape.contains(&0) {
            return Ok(Self { shape: shape.to_vec(), strides, item, bytes: 0 });
        }
        let mut bytes = i64::try_from(item).map_err(|_| too_large())?;
        for (stride, dimension) in strides.iter_mut().zip(shape).rev() {
            *stride = bytes;
            bytes =
                bytes.checked_mul(*dimension).filter(|bytes| *bytes >= 0).ok_or_else(too_large)?;
        }
        Ok(Self { shape: shape.to_vec(), strides, item, bytes: bytes.unsigned_abs() })
    }

    /// Creates a region of elements with strides in bytes. The stride of a dimension of at most one
    /// element is ignored.
    ///
    /// # Errors
    /// INVALID_ARGUMENT for a wrong number of strides and sizes beyond 63 bits; UNIMPLEMENTED for
    /// strides that are not positive.
    pub(crate) fn strided(shape: &[i64], item: usize, strides: &[i64]) -> Result<Self, Status> {
        if strides.len() != shape.len() {
            return Err(status!(
                InvalidArgument,
                "found {} byte strides; expected {}, one for each dimension of {shape:?}",
                strides.len(),
                shape.len(),
            ));
        }
        let dense = Self::dense(shape, item)?;
        if dense.bytes == 0 {
            return Ok(dense);
        }
        let mut bytes = i64::try_from(item).ok();
        for (stride, dimension) in
            strides.iter().zip(shape).filter(|(_, dimension)| **dimension > 1)
        {
            if *stride <= 0 {
                return Err(status!(
                    Unimplemented,
                    "a byte stride is {stride}; expected a positive one: send a copy of the array"
                ));
            }
            bytes =
                bytes.zip(stride.checked_mul(dimension - 1)).and_then(|(a, b)| a.checked_add(b));
        }
        let bytes = bytes.ok_or_else(|| {
            status!(InvalidArgument, "byte strides {strides:?} of {shape:?} reach beyond 63 bits")
        })?;
        Ok(Self { strides: strides.to_vec(), bytes: bytes.unsigned_abs(), ..dense })
    }

    /// Creates a [`strided`](Self::strided) region, or a dense one if there are no strides.
    ///
    /// # Errors
    /// As [`strided`](Self::strided).
    pub(crate) fn new(shape: &[i64], item: usize, strides: Option<&[i64]>) -> Result<Self, Status> {
        match strides {
            Some(strides) => Self::strided(shape, item, strides),
            None => Self::dense(shape, item),
        }
    }

    /// Returns the size in bytes.
    pub(crate) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Returns the size of an element in bytes.
    pub(crate) const fn item(&self) -> usize {
        self.item
    }

    /// Returns true if the region is row-major without gaps.
    pub(crate) fn is_dense(&self) -> bool {
        self.bytes == 0
            || Self::dense(&self.shape, self.item).is_ok_and(|dense| {
                let strides = dense.strides.iter().zip(&self.strides).zip(&self.shape);
                strides.into_iter().all(|((dense, own), dimension)| *dimension <= 1 || dense == own)
            })
    }

    /// Returns true if a block lies inside this region of elements of `item` bytes, and the region
    /// fits in `memory` bytes.
    fn has(&self, origin: &[i64], shape: &[i64], item: usize, memory: usize) -> bool {
        origin.len() == shape.len()
            && self.shape.len() == shape.len()
            && self.bytes <= memory as u64
            && self.item == item
            && origin.iter().zip(shape).zip(&self.shape).all(|((at, length), whole)| {
                *at >= 0 && *length >= 0 && at.checked_add(*length).is_some_and(|end| end <= *whole)
            })
    }

    /// Returns the loop nest for copying a block between both regions: the bytes of a contiguous
    /// run, and for each dimension of runs its length and its steps in both regions.
    fn runs(&self, target: &Self, shape: &[i64]) -> (usize, Vec<(usize, usize, usize)>) {
        // Skip dimensions of one element; merge trailing dimensions that are contiguous in both
        // regions into one run.
        let mut dimensions: Vec<(usize, usize, usize)> = (0..shape.len())
            .filter_map(|at| {
                let count = usize::try_from(*shape.get(at)?).ok()?;
                let from = usize::try_from(*self.strides.get(at)?).ok()?;
                let to = usize::try_from(*target.strides.get(at)?).ok()?;
                (count > 1).then_some((count, from, to))
            })
            .collect();
        let mut run = self.item;
        while let Some(&(count, from, to)) = dimensions.last()
            && from == run
            && to == run
        {
            run *= count;
            dimensions.pop();
        }
        (run, dimensions)
    }

    /// Copies the block of `shape` elements at `from_origin` of this region to `to_origin` of
    /// another one.
    ///
    /// # Errors
    /// INTERNAL if a memory is smaller than its region, or the block is not inside both.
    pub(crate) fn copy_block(
        &self,
        from: &[u8],
        from_origin: &[i64],
        target: &Self,
        to: &mut [u8],
        to_origin: &[i64],
        shape: &[i64],
    ) -> Result<(), Status> {
        let broken = || {
            status!(
                Internal,
                "a block of {shape:?} at {from_origin:?} and {to_origin:?} is outside of {:?} or {:?}",
                self.shape,
                target.shape
            )
        };
        if !self.has(from_origin, shape, self.item, from.len())
            || !target.has(to_origin, shape, self.item, to.len())
        {
            return Err(broken());
        }
        if shape.contains(&0) {
            return Ok(());
        }
        let offset = |region: &Self, origin: &[i64]| -> usize {
            // Every element is inside an existing memory, so its offset fits.
            origin
                .iter()
                .zip(&region.strides)
                .zip(&region.shape)
                .filter(|(_, whole)| **whole > 1)
                .map(|((at, stride), _)| (at * stride) as usize)
                .sum()
        };
        let (run, mut dimensions) = self.runs(target, shape);
        let (mut source, mut goal) = (offset(self, from_origin), offset(target, to_origin));
        let inner = dimensions.pop().unwrap_or((1, 0, 0));
        let mut index = vec![0_usize; dimensions.len()];
        loop {
            copy_row(from, source, to, goal, run, inner).ok_or_else(broken)?;
            // Advance to the next row like an odometer.
            let mut moved = false;
            for (at, (count, from, to)) in index.iter_mut().zip(&dimensions).rev() {
                *at += 1;
                if *at < *count {
                    source += from;
                    goal += to;
                    moved = true;
                    break;
                }
                source -= from * (count - 1);
                goal -= to * (count - 1);
                *at = 0;
            }
            if !moved {
                return Ok(());
            }
        }
    }
}

/// Copies `count` runs of `run` bytes, `from_step` and `to_step` bytes apart; returns `None` if one
/// is out of bounds.
fn copy_row(
    from: &[u8],
    source: usize,
    to: &mut [u8],
    goal: usize,
    run: usize,
    (count, from_step, to_step): (usize, usize, usize),
) -> Option<()> {
    fn fixed<const N: usize>(
        from: &[u8],
        to: &mut [u8],
        count: usize,
        from_step: usize,
        to_step: usize,
    ) -> Option<()> {
        for at in 0..count {
            let item: [u8; N] = *from.get(at * from_step..)?.first_chunk()?;
            *to.get_mut(at * to_step..)?.first_chunk_mut()? = item;
        }
        Some(())
    }
    let (from, to) = (from.get(source..)?, to.get_mut(goal..)?);
    match run {
        1 => fixed::<1>(from, to, count, from_step, to_step),
        2 => fixed::<2>(from, to, count, from_step, to_step),
        4 => fixed::<4>(from, to, count, from_step, to_step),
        8 => fixed::<8>(from, to, count, from_step, to_step),
        16 => fixed::<16>(from, to, count, from_step, to_step),
        _ => {
            for at in 0..count {
                let item = from.get(at * from_step..at * from_step + run)?;
                to.get_mut(at * to_step..at * to_step + run)?.copy_from_slice(item);
            }
            Some(())
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use serdes::codec::StatusCode;

    #[test]
    fn a_region_ends_with_its_last_element() {
        assert_eq!(Region::strided(&[2, 3], 4, &[12, 4]).unwrap().bytes(), 24);
        assert_eq!(Region::strided(&[3, 2], 4, &[4, 12]).unwrap().bytes(), 24);
        assert_eq!(Region::strided(&[2, 2], 4, &[100, 8]).unwrap().bytes(), 112);
        assert_eq!(Region::strided(&[], 8, &[]).unwrap().bytes(), 8);
        assert_eq!(Region::strided(&[0, 3], 4, &[0, 0]).unwrap().bytes(), 0);
        assert_eq!(Region::strided(&[1, 3], 4, &[-7, 4]).unwrap().bytes(), 12);
    }

    #[test]
    fn strides_that_cannot_be_used_are_refused() {
        let code =
            |shape: &[i64], strides: &[i64]| Region::strided(shape, 4, strides).unwrap_err().code();
        assert_eq!(code(&[2], &[]), StatusCode::InvalidArgument);
        assert_eq!(code(&[2], &[0]), StatusCode::Unimplemented);
        assert_eq!(code(&[2], &[-4]), StatusCode::Unimplemented);
        assert_eq!(code(&[i64::MAX, 2], &[4, 4]), StatusCode::InvalidArgument);
        assert_eq!(code(&[3, 3], &[i64::MAX, 4]), StatusCode::InvalidArgument);
    }

    proptest! {
        #[test]
        fn blocks_arrive_where_they_belong(
            shape in proptest::collection::vec(1_i64..5, 0..4),
            item in prop_oneof![Just(1_usize), Just(2), Just(3), Just(8), Just(16)],
            seed in any::<u64>(),
        ) {
            // A permuted region with a gap at the end of each of its rows.
            let mut order: Vec<usize> = (0..shape.len()).collect();
            order.sort_by_key(|at| seed.rotate_left(*at as u32 * 7) & 0xff);
            let mut strides = vec![0; shape.len()];
            let mut step = item as i64;
            for at in order {
                strides[at] = step;
                step = step * shape[at] + item as i64;
            }
            let region = Region::strided(&shape, item, &strides).unwrap();
            let memory: Vec<u8> = (0..region.bytes()).map(|at| (at * 31 + seed % 251) as u8).collect();
            let dense = Region::dense(&shape, item).unwrap();
            let mut target = vec![0; dense.bytes() as usize];
            let zero = vec![0; shape.len()];
            region.copy_block(&memory, &zero, &dense, &mut target, &zero, &shape).unwrap();

            let mut expected = Vec::new();
            for number in 0..shape.iter().product::<i64>() {
                let (mut rest, mut offset) = (number, 0);
                for at in (0..shape.len()).rev() {
                    offset += rest % shape[at] * strides[at];
                    rest /= shape[at];
                }
                expected.extend_from_slice(&memory[offset as usize..offset as usize + item]);
            }
            prop_assert_eq!(&target, &expected);

            // Copied back; the gaps are unchanged.
            let mut back = memory.clone();
            let elements = expected.iter().map(|byte| !byte).collect::<Vec<_>>();
            dense.copy_block(&elements, &zero, &region, &mut back, &zero, &shape).unwrap();
            let mut again = vec![0; target.len()];
            region.copy_block(&back, &zero, &dense, &mut again, &zero, &shape).unwrap();
            prop_assert_eq!(again, elements);
        }
    }
}
