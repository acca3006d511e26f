//! Conversion of arrays from the dimension order of a device to row-major order.
//!
//! A plug-in can be asked for row-major order, but old ones ignore it: XLA's plug-in for CPUs of
//! PJRT 0.81 returns the bytes in the order of the device, without an error (measured with an array
//! of `jax.device_put(x, Format(Layout((1, 0)), …))`). Every plug-in returns them correctly in the
//! order of the device, so arrays are read in that order and converted here.

use super::{buffer::Buffer, layout::MemoryLayout};
use crate::PjrtError;

/// The conversion of an array from an order of dimensions that is not row-major.
#[derive(Debug)]
pub(super) struct LayoutConversion {
    dims: Vec<usize>,
    /// The dimension that changes fastest first.
    pub(super) minor_to_major: Vec<i64>,
    /// The size of an element on the host, in bytes.
    item: usize,
}

impl Buffer {
    /// Returns the conversion to row-major order, if the array has another order on the device.
    /// `None` also for a tiled layout, and if the plug-in does not report the layout.
    ///
    /// # Errors
    /// As [`dims`](Self::dims) and [`element_type`](Self::element_type).
    pub(super) fn layout_conversion(&self) -> Result<Option<LayoutConversion>, PjrtError> {
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
    /// Returns `None` for row-major order, and if `minor_to_major` is not a permutation of the
    /// dimensions.
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

    /// Fills `target` in row-major order with the elements of `source`, which are in this order.
    /// Returns `None` if the length of either differs from the array's.
    pub(super) fn write_row_major(&self, source: &[u8], target: &mut [u8]) -> Option<()> {
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
        let conversion = LayoutConversion::new(&[2, 3], vec![0, 1], 2).unwrap();
        let source: Vec<u8> = (0..12).collect();
        let mut target = [0; 12];
        conversion.write_row_major(&source, &mut target).unwrap();
        assert_eq!(target, [0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10, 11]);
        let conversion = LayoutConversion::new(&[2, 2, 2], vec![1, 2, 0], 1).unwrap();
        let mut target = [0; 8];
        conversion.write_row_major(&[0, 1, 2, 3, 4, 5, 6, 7], &mut target).unwrap();
        assert_eq!(target, [0, 2, 1, 3, 4, 6, 5, 7]);
        assert!(conversion.write_row_major(&source, &mut target).is_none());
    }

    #[test]
    fn host_order_and_invalid_orders_are_left_to_the_plugin() {
        for order in [vec![1, 0], vec![0, 0], vec![0, 2], vec![0], vec![-1, 0], vec![0, 1, 2]] {
            assert!(LayoutConversion::new(&[2, 3], order.clone(), 4).is_none(), "{order:?}");
        }
        let nothing = LayoutConversion::new(&[0, 3], vec![0, 1], 4).unwrap();
        assert_eq!(nothing.write_row_major(&[], &mut []), Some(()));
        assert!(LayoutConversion::new(&[-1, 3], vec![0, 1], 4).is_none());
        let huge = LayoutConversion::new(&[i64::MAX, 3], vec![0, 1], 4).unwrap();
        assert!(huge.write_row_major(&[1], &mut [0]).is_none());
    }
}
