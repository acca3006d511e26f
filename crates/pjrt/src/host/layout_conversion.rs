//! Arrays that lie on a device in another order than the host's: they are read in theirs, and put
//! in the host's here.
//!
//! A plug-in can be asked for the host's order, but old ones take no notice: XLA's for CPUs of PJRT
//! 0.81 gives the bytes as they lie, and says nothing (measured, with an array of
//! `jax.device_put(x, Format(Layout((1, 0)), …))`). In its own order each of them gives them right.

use super::{buffer::Buffer, layout::MemoryLayout};
use crate::PjrtError;

/// An order of dimensions that is not the host's, and what it is the order of.
#[derive(Debug)]
pub(super) struct LayoutConversion {
    dims: Vec<usize>,
    /// The dimension that changes fastest first.
    pub(super) minor_to_major: Vec<i64>,
    /// Bytes of an element on the host.
    item: usize,
}

impl Buffer {
    /// The order in which it lies, where that is not the host's, and elements follow each other in
    /// it; `None` also where the plug-in does not say it.
    ///
    /// # Errors
    /// As [`dims`](Self::dims) and [`element_type`](Self::element_type).
    pub(super) fn turned(&self) -> Result<Option<LayoutConversion>, PjrtError> {
        let dims = self.dims()?;
        if dims.len() < 2 {
            return Ok(None);
        }
        let item = self.element_type()?.host_bytes();
        Ok(match self.layout() {
            Ok(MemoryLayout::Tiled { minor_to_major, tiles }) if tiles.is_empty() => {
                LayoutConversion::new(&dims, minor_to_major, item)
            }
            _ => None,
        })
    }
}

impl LayoutConversion {
    /// `None` for the host's own order, and for what is no order.
    fn new(dims: &[i64], minor_to_major: Vec<i64>, item: usize) -> Option<Self> {
        let row_major = || (0..dims.len() as i64).rev();
        let mut sorted = minor_to_major.clone();
        sorted.sort_unstable();
        let is_order = sorted.iter().copied().eq(0..dims.len() as i64);
        if !is_order || minor_to_major.iter().copied().eq(row_major()) {
            return None;
        }
        let dims = dims.iter().map(|dim| usize::try_from(*dim).ok()).collect::<Option<_>>()?;
        Some(Self { dims, minor_to_major, item })
    }

    /// Fills `target`, row-major, with the bytes of `source`, which are as many and in this order;
    /// `None` if they are not.
    pub(super) fn turn_back(&self, source: &[u8], target: &mut [u8]) -> Option<()> {
        let elements = self.dims.iter().try_fold(1_usize, |all, dim| all.checked_mul(*dim))?;
        let bytes = elements.checked_mul(self.item)?;
        if source.len() != bytes || target.len() != bytes {
            return None;
        }
        let mut steps = vec![0; self.dims.len()];
        let mut step = self.item;
        for dimension in &self.minor_to_major {
            let dimension = usize::try_from(*dimension).ok()?;
            *steps.get_mut(dimension)? = step;
            step = step.saturating_mul(*self.dims.get(dimension)?);
        }
        let (mut index, mut from) = (vec![0; self.dims.len()], 0);
        for element in target.chunks_exact_mut(self.item.max(1)) {
            element.copy_from_slice(source.get(from..from + self.item)?);
            for ((at, step), dim) in index.iter_mut().zip(&steps).zip(&self.dims).rev() {
                *at += 1;
                from += step;
                if *at < *dim {
                    break;
                }
                from -= step * dim;
                *at = 0;
            }
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_come_back_in_the_order_of_the_host() {
        let turned = LayoutConversion::new(&[2, 3], vec![0, 1], 2).unwrap();
        let source: Vec<u8> = (0..12).collect();
        let mut target = [0; 12];
        turned.turn_back(&source, &mut target).unwrap();
        assert_eq!(target, [0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11]);
        let turned = LayoutConversion::new(&[2, 2, 2], vec![1, 2, 0], 1).unwrap();
        let mut target = [0; 8];
        turned.turn_back(&[0, 1, 2, 3, 4, 5, 6, 7], &mut target).unwrap();
        assert_eq!(target, [0, 2, 1, 3, 4, 6, 5, 7]);
        assert!(turned.turn_back(&source, &mut target).is_none());
    }

    #[test]
    fn host_order_and_invalid_orders_are_left_to_the_plugin() {
        for order in [vec![1, 0], vec![0, 0], vec![0, 2], vec![0], vec![-1, 0], vec![0, 1, 2]] {
            assert!(LayoutConversion::new(&[2, 3], order.clone(), 4).is_none(), "{order:?}");
        }
        let nothing = LayoutConversion::new(&[0, 3], vec![0, 1], 4).unwrap();
        assert_eq!(nothing.turn_back(&[], &mut []), Some(()));
        assert!(LayoutConversion::new(&[-1, 3], vec![0, 1], 4).is_none());
        let huge = LayoutConversion::new(&[i64::MAX, 3], vec![0, 1], 4).unwrap();
        assert!(huge.turn_back(&[1], &mut [0]).is_none());
    }
}
