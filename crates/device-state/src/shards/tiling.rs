//! Checks that blocks tile an array: each element is in exactly one of them.

use std::collections::HashMap;

use serdes::ifrt::ArraySpec;
use smallvec::SmallVec;

use super::{super::format::piece::Domain, Block};

/// Maximum number of corners that are counted: a state with more cuts than any real one is refused.
const MOST_CORNERS: usize = 1 << 24;

/// Checks that the stored domains of an array cover it; an error message if they do not.
pub(crate) fn check_tiling(spec: &ArraySpec, domains: &[Domain]) -> Result<(), String> {
    let shape = spec.shape();
    if let [None] = domains {
        return Ok(());
    }
    let blocks = domains.iter().map(|domain| Block::of(domain, shape));
    let blocks = blocks.collect::<Option<Vec<_>>>();
    let blocks = blocks.ok_or_else(|| format!("a part of another rank than {shape}"))?;
    tiles(&Block::whole(shape), &blocks)
}

/// Checks that `blocks`, which are inside `whole`, tile it without gaps and overlaps.
///
/// Counting elements finds most errors with a number. The rest is decided exactly: sum up the
/// blocks as functions that are 1 inside and 0 outside. The sum is that of the whole if and only
/// if the mixed differences of the two are the same, and those of a block are plus or minus one
/// at its corners and 0 elsewhere.
fn tiles(whole: &Block, blocks: &[Block]) -> Result<(), String> {
    let total = |blocks: &[Block]| {
        let counts = blocks.iter().map(Block::elements);
        counts.sum::<Option<u64>>().ok_or_else(|| "more elements than 2^64".to_owned())
    };
    let (found, expected) = (total(blocks)?, total(std::slice::from_ref(whole))?);
    if found != expected {
        return Err(format!("they have {found} elements, the array has {expected}"));
    }
    let cut: Vec<usize> = (0..whole.dims.len())
        .filter(|dim| blocks.iter().any(|block| block.dims.get(*dim) != whole.dims.get(*dim)))
        .collect();
    let corners = u32::try_from(cut.len()).ok().and_then(|dims| 1_usize.checked_shl(dims));
    let corners = corners.filter(|corners| {
        corners.checked_mul(blocks.len()).is_some_and(|count| count <= MOST_CORNERS)
    });
    let Some(corners) = corners else {
        return Err(format!("{} parts are cut in {} dimensions", blocks.len(), cut.len()));
    };
    let mut counts: HashMap<SmallVec<[u64; 4]>, i64> = HashMap::new();
    let signed = blocks.iter().map(|block| (block, 1)).chain([(whole, -1)]);
    for (block, sign) in signed.filter(|(block, _)| !block.is_empty()) {
        for corner in 0..corners {
            let dims = cut.iter().filter_map(|dim| block.dims.get(*dim)).enumerate();
            let at = dims.map(|(bit, (start, extent))| start + (corner >> bit & 1) as u64 * extent);
            let sign = if corner.count_ones() % 2 == 0 { sign } else { -sign };
            *counts.entry(at.collect()).or_insert(0) += sign;
        }
    }
    match counts.into_iter().filter(|(_, count)| *count != 0).min() {
        None => Ok(()),
        Some((at, _)) => Err(format!(
            "some overlap, and others leave a gap, near the index {:?} of the dimensions {cut:?}",
            at.to_vec()
        )),
    }
}

#[cfg(test)]
mod tests {
    use std::slice::from_ref;

    use proptest::prelude::*;

    use super::*;

    fn block(dims: &[(u64, u64)]) -> Block {
        Block { dims: dims.iter().copied().collect() }
    }

    #[test]
    fn tiles_without_gaps_and_overlaps_are_taken() {
        let whole = block(&[(0, 4), (0, 6)]);
        assert_eq!(tiles(&whole, from_ref(&whole)), Ok(()));
        let pinwheel = [
            block(&[(0, 1), (0, 3)]),
            block(&[(0, 2), (3, 3)]),
            block(&[(2, 2), (2, 4)]),
            block(&[(1, 3), (0, 2)]),
            block(&[(1, 1), (2, 1)]),
        ];
        assert_eq!(tiles(&whole, &pinwheel), Ok(()));
        let with_empty = [whole.clone(), block(&[(4, 0), (0, 6)])];
        assert_eq!(tiles(&whole, &with_empty), Ok(()));
        assert_eq!(tiles(&block(&[]), &[block(&[])]), Ok(()));
    }

    #[test]
    fn gaps_and_overlaps_are_found_also_where_the_numbers_agree() {
        let whole = block(&[(0, 4), (0, 6)]);
        let message = tiles(&whole, &[block(&[(0, 3), (0, 6)])]).unwrap_err();
        assert!(message.contains("18 elements") && message.contains("24"), "{message}");
        let twice = [block(&[(0, 2), (0, 6)]), block(&[(0, 2), (0, 6)])];
        assert!(tiles(&whole, &twice).unwrap_err().contains("overlap"));
        let shifted = [block(&[(0, 2), (0, 6)]), block(&[(1, 2), (0, 6)])];
        assert!(tiles(&whole, &shifted).is_err());
    }

    #[test]
    fn absurd_ranks_and_counts_are_refused_without_work() {
        let whole = Block { dims: (0..60).map(|_| (0, 1)).collect() };
        let halves: Vec<_> = (0..2)
            .map(|half| Block { dims: (0..60).map(|_| (half, 1 - half)).collect() })
            .collect();
        assert!(tiles(&whole, &halves).is_err());
        let huge = block(&[(0, u64::MAX), (0, u64::MAX)]);
        assert!(tiles(&huge, from_ref(&huge)).is_err());
    }

    proptest! {
        #[test]
        fn the_verdict_is_that_of_counting_each_element(
            parts in prop::collection::vec((0_u64..4, 0_u64..4, 0_u64..4, 0_u64..4), 1..5),
        ) {
            let whole = block(&[(0, 4), (0, 4)]);
            let blocks: Vec<_> = parts
                .iter()
                .map(|(y, h, x, w)| block(&[(*y, (*h + 1).min(4 - y)), (*x, (*w + 1).min(4 - x))]))
                .collect();
            let inside = |block: &Block, at: [u64; 2]| {
                block.dims.iter().zip(at).all(|((start, extent), at)| (*start..start + extent).contains(&at))
            };
            let once = (0..16).all(|n| {
                blocks.iter().filter(|block| inside(block, [n / 4, n % 4])).count() == 1
            });
            prop_assert_eq!(tiles(&whole, &blocks).is_ok(), once);
        }
    }
}
