//! Checks that the chunks of a tensor cover it without overlap.

use super::{super::error::TorchError, description::Sharded};

/// Comparisons of two chunks per chunk of a checkpoint: chunks cut for device meshes need far
/// fewer.
const COMPARISONS: u64 = 1 << 10;
const LEAST_COMPARISONS: u64 = 1 << 22;

/// Remaining comparisons for the tensors of a checkpoint.
pub(super) struct Comparisons(u64);

impl Comparisons {
    /// Creates the limit for a checkpoint of `chunks` chunks.
    pub(super) const fn of(chunks: usize) -> Self {
        Self((chunks as u64).saturating_mul(COMPARISONS).saturating_add(LEAST_COMPARISONS))
    }
}

/// Returns an error unless each element of a tensor is in exactly one of its chunks.
pub(super) fn check(tensor: &Sharded, left: &mut Comparisons) -> Result<(), TorchError> {
    let wrong = |found: &str| {
        let found = format!("{:?} {found}", tensor.name);
        TorchError::damaged(found, "chunks that are all of a tensor, each element once")
    };
    let volume = |sizes: &[u64]| match sizes.contains(&0) {
        true => Some(0),
        false => sizes.iter().try_fold(1_u64, |volume, size| volume.checked_mul(*size)),
    };
    let mut covered = 0_u64;
    for chunk in &tensor.chunks {
        let mut sides = chunk.offsets.iter().zip(&chunk.sizes).zip(&tensor.shape);
        let is_inside = sides.all(|((offset, size), whole)| {
            offset.checked_add(*size).is_some_and(|end| end <= *whole)
        });
        let sum = volume(&chunk.sizes).and_then(|volume| covered.checked_add(volume));
        covered = sum.filter(|_| is_inside).ok_or_else(|| wrong("with a chunk beyond it"))?;
    }
    if volume(&tensor.shape) != Some(covered) {
        return Err(wrong("with chunks that are missing or lie over each other"));
    }
    match overlaps(tensor, left)? {
        true => Err(wrong("with chunks that lie over each other")),
        false => Ok(()),
    }
}

/// Returns true if two chunks share elements. Sweeps along the dimension with the most cuts, and
/// compares each chunk with those that reach into its first index.
fn overlaps(tensor: &Sharded, left: &mut Comparisons) -> Result<bool, TorchError> {
    let cuts = |dimension: usize| {
        let mut offsets: Vec<u64> = tensor
            .chunks
            .iter()
            .filter_map(|chunk| chunk.offsets.get(dimension).copied())
            .collect();
        offsets.sort_unstable();
        offsets.dedup();
        offsets.len()
    };
    if tensor.chunks.len() < 2 {
        return Ok(false);
    }
    let Some(most) = (0..tensor.shape.len()).max_by_key(|dimension| cuts(*dimension)) else {
        return Ok(true);
    };
    let side = |chunk: usize| {
        let chunk = tensor.chunks.get(chunk)?;
        Some((*chunk.offsets.get(most)?, *chunk.sizes.get(most)?))
    };
    let mut order: Vec<usize> = (0..tensor.chunks.len()).collect();
    order.sort_unstable_by_key(|chunk| side(*chunk));
    let mut open: Vec<usize> = Vec::new();
    for chunk in order {
        let begin = side(chunk).unwrap_or_default().0;
        left.0 = left.0.checked_sub(open.len() as u64).ok_or_else(|| {
            TorchError::unsupported(
                "its tensors are cut into chunks as no mesh of devices is; load it with torch and save it again",
            )
        })?;
        open.retain(|other| {
            let (offset, size) = side(*other).unwrap_or_default();
            offset.saturating_add(size) > begin
        });
        if open.iter().any(|other| share(tensor, *other, chunk)) {
            return Ok(true);
        }
        open.push(chunk);
    }
    Ok(false)
}

fn share(tensor: &Sharded, one: usize, other: usize) -> bool {
    let Some((one, other)) = tensor.chunks.get(one).zip(tensor.chunks.get(other)) else {
        return false;
    };
    let ones = one.offsets.iter().zip(&one.sizes);
    ones.zip(other.offsets.iter().zip(&other.sizes)).all(|((begin, size), (next, next_size))| {
        *begin < next.saturating_add(*next_size) && *next < begin.saturating_add(*size)
    })
}
