//! Assignment of tiles to devices.

use std::fmt;

use smallvec::SmallVec;

use crate::ifrt::IfrtError;

/// An assignment of tiles to devices, as an array of positions in a device list.
///
/// It is either a list, or an iota: the positions in order, reshaped and transposed. An iota is
/// never expanded, so that a few bytes cannot announce a list of any length.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(
    feature = "serde",
    serde(try_from = "serde_form::Unchecked", into = "serde_form::Unchecked")
)]
pub struct TileAssignment {
    dimensions: SmallVec<[i64; 4]>,
    order: Order,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Order {
    Listed(Vec<i64>),
    Iota { reshape: SmallVec<[i64; 4]>, transpose: SmallVec<[i32; 4]> },
}

#[cfg(feature = "serde")]
mod serde_form {
    use super::{IfrtError, TileAssignment};

    /// The `serde` form of a tile assignment: a list, or an iota with a transposition.
    #[derive(serde::Serialize, serde::Deserialize)]
    pub(super) struct Unchecked {
        dimensions: Vec<i64>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        devices: Option<Vec<i64>>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        iota: Option<(Vec<i64>, Vec<i32>)>,
    }

    impl TryFrom<Unchecked> for TileAssignment {
        type Error = IfrtError;

        fn try_from(unchecked: Unchecked) -> Result<Self, IfrtError> {
            let Unchecked { dimensions, devices, iota } = unchecked;
            match (devices, iota) {
                (Some(devices), None) => Self::listed(dimensions, devices),
                (None, Some((reshape, transpose))) => Self::iota(dimensions, reshape, transpose),
                _ => Err(IfrtError::Invalid(
                    "a tile assignment is either a list of devices or an iota; expected one of them"
                        .to_owned(),
                )),
            }
        }
    }

    impl From<TileAssignment> for Unchecked {
        fn from(tiles: TileAssignment) -> Self {
            Self {
                dimensions: tiles.dimensions().to_vec(),
                devices: tiles.listed_devices().map(<[_]>::to_vec),
                iota: tiles
                    .iota_parts()
                    .map(|(reshape, transpose)| (reshape.to_vec(), transpose.to_vec())),
            }
        }
    }
}

/// Returns the product of sizes that are all at least 1, if it fits.
fn product(sizes: &[i64]) -> Option<i64> {
    sizes.iter().try_fold(
        1_i64,
        |product, size| {
            if *size < 1 { None } else { product.checked_mul(*size) }
        },
    )
}

fn count(what: &'static str, sizes: &[i64]) -> Result<i64, IfrtError> {
    product(sizes).ok_or_else(|| {
        IfrtError::Invalid(format!(
            "{what} are {sizes:?}; expected sizes of at least 1 whose product fits 63 bits"
        ))
    })
}

impl TileAssignment {
    /// Creates the tiles of an array of `dimensions`, assigned to the listed positions in row-major
    /// order.
    ///
    /// # Errors
    /// If a size is below 1, or if the numbers of positions and tiles differ.
    pub fn listed(
        dimensions: impl AsRef<[i64]>,
        devices: impl Into<Vec<i64>>,
    ) -> Result<Self, IfrtError> {
        let (dimensions, devices) = (SmallVec::from_slice(dimensions.as_ref()), devices.into());
        let tiles = count("the tile assignment dimensions", &dimensions)?;
        if dimensions.is_empty() || tiles != devices.len() as i64 {
            return Err(IfrtError::Invalid(format!(
                "the tile assignment dimensions are {dimensions:?}, that is {tiles} tiles, but {} devices are listed",
                devices.len(),
            )));
        }
        Ok(Self { dimensions, order: Order::Listed(devices) })
    }

    /// Creates the assignment of the positions 0 to n - 1, reshaped to `reshape`, transposed by
    /// `transpose` and arranged in `dimensions`.
    ///
    /// # Errors
    /// If a size is below 1, the products differ, or `transpose` is not a permutation of the
    /// dimensions of `reshape`.
    pub fn iota(
        dimensions: impl AsRef<[i64]>,
        reshape: impl AsRef<[i64]>,
        transpose: impl AsRef<[i32]>,
    ) -> Result<Self, IfrtError> {
        let dimensions: SmallVec<[i64; 4]> = SmallVec::from_slice(dimensions.as_ref());
        let reshape: SmallVec<[i64; 4]> = SmallVec::from_slice(reshape.as_ref());
        let transpose: SmallVec<[i32; 4]> = SmallVec::from_slice(transpose.as_ref());
        let tiles = count("the tile assignment dimensions", &dimensions)?;
        let positions = count("the iota dimensions", &reshape)?;
        if dimensions.is_empty() || reshape.is_empty() || tiles != positions {
            return Err(IfrtError::Invalid(format!(
                "the tile assignment dimensions are {dimensions:?}, that is {tiles} tiles, but the iota dimensions are {reshape:?}, that is {positions}",
            )));
        }
        if transpose.len() != reshape.len() || !is_permutation(&transpose) {
            return Err(IfrtError::Invalid(format!(
                "the iota is transposed by {transpose:?}; expected each of 0 to {} once",
                reshape.len() - 1,
            )));
        }
        Ok(Self { dimensions, order: Order::Iota { reshape, transpose } })
    }

    /// Returns the number of tiles in each dimension.
    pub fn dimensions(&self) -> &[i64] {
        &self.dimensions
    }

    /// Returns the number of tiles.
    pub fn tile_count(&self) -> i64 {
        // The constructors checked the product.
        product(&self.dimensions).unwrap_or(i64::MAX)
    }

    /// Returns the listed positions; `None` for an iota.
    pub fn listed_devices(&self) -> Option<&[i64]> {
        match &self.order {
            Order::Listed(devices) => Some(devices),
            Order::Iota { .. } => None,
        }
    }

    /// Returns the dimensions and the transposition of an iota; `None` for a list.
    pub fn iota_parts(&self) -> Option<(&[i64], &[i32])> {
        match &self.order {
            Order::Listed(_) => None,
            Order::Iota { reshape, transpose } => Some((reshape, transpose)),
        }
    }

    /// Returns the position of each tile's device, with tiles in row-major order, for at most
    /// `limit` tiles.
    ///
    /// # Errors
    /// If there are more than `limit` tiles.
    pub fn devices(&self, limit: usize) -> Result<Vec<i64>, IfrtError> {
        let tiles = self.tile_count();
        let Some(tiles) = usize::try_from(tiles).ok().filter(|tiles| *tiles <= limit) else {
            return Err(IfrtError::Invalid(format!(
                "the tile assignment has {tiles} tiles; expected at most {limit}"
            )));
        };
        let (reshape, transpose) = match &self.order {
            Order::Listed(devices) => return Ok(devices.clone()),
            Order::Iota { reshape, transpose } => canonical_iota(reshape, transpose),
        };
        // The stride of each dimension before the transposition, in the order after it.
        let mut stride = 1;
        let mut strides = vec![0; reshape.len()];
        for (place, size) in strides.iter_mut().zip(&reshape).rev() {
            *place = stride;
            stride *= size;
        }
        let axes: Vec<(i64, i64)> = transpose
            .iter()
            .filter_map(|axis| Some((*reshape.get(*axis)?, *strides.get(*axis)?)))
            .collect();
        let mut index = vec![0; axes.len()];
        let mut devices = Vec::with_capacity(tiles);
        let mut device = 0;
        while devices.len() < tiles {
            devices.push(device);
            for (place, (size, stride)) in index.iter_mut().zip(&axes).rev() {
                *place += 1;
                device += stride;
                if *place < *size {
                    break;
                }
                *place = 0;
                device -= size * stride;
            }
        }
        Ok(devices)
    }
}

fn is_permutation(values: &[i32]) -> bool {
    let mut seen: SmallVec<[bool; 16]> = SmallVec::from_elem(false, values.len());
    values.iter().all(|value| {
        usize::try_from(*value)
            .ok()
            .and_then(|index| seen.get_mut(index))
            .is_some_and(|seen| !std::mem::replace(seen, true))
    })
}

/// Returns the shortest iota with the same order: without dimensions of size 1, and with dimensions
/// merged that stay neighbours.
fn canonical_iota(reshape: &[i64], transpose: &[i32]) -> (Vec<i64>, Vec<usize>) {
    let axes = transpose.iter().filter_map(|axis| usize::try_from(*axis).ok());
    // Runs of axes that are adjacent before and after the transposition, as first axis and size.
    let mut runs: Vec<(usize, i64)> = Vec::new();
    let mut next = None;
    let skipping = |axis: usize| reshape.get(axis).copied().unwrap_or(1);
    for axis in axes.filter(|axis| skipping(*axis) != 1) {
        let follows = next.is_some_and(|next: usize| {
            next <= axis && (next..axis).all(|between| skipping(between) == 1)
        });
        match runs.last_mut() {
            Some((_, size)) if follows => *size *= skipping(axis),
            _ => runs.push((axis, skipping(axis))),
        }
        next = Some(axis + 1);
    }
    if runs.is_empty() {
        return (vec![1], vec![0]);
    }
    let mut sorted: Vec<_> = runs.iter().map(|(axis, _)| *axis).collect();
    sorted.sort_unstable();
    let rank = |axis: usize| sorted.binary_search(&axis).unwrap_or_default();
    let order: Vec<_> = runs.iter().map(|(axis, _)| rank(*axis)).collect();
    let mut sizes = vec![1; runs.len()];
    for ((_, size), place) in runs.iter().zip(&order) {
        if let Some(slot) = sizes.get_mut(*place) {
            *slot = *size;
        }
    }
    (sizes, order)
}

fn write_joined<T: fmt::Display>(f: &mut fmt::Formatter<'_>, values: &[T]) -> fmt::Result {
    for (index, value) in values.iter().enumerate() {
        let comma = if index == 0 { "" } else { "," };
        write!(f, "{comma}{value}")?;
    }
    Ok(())
}

/// Formats as `[2,1]<=[2]`, `[2,2]<=[2,2]T(1,0)` or `[2,1]1,0`.
impl fmt::Display for TileAssignment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[")?;
        write_joined(f, &self.dimensions)?;
        f.write_str("]")?;
        match &self.order {
            Order::Listed(devices) => write_joined(f, devices),
            Order::Iota { reshape, transpose } => {
                let (sizes, order) = canonical_iota(reshape, transpose);
                f.write_str("<=[")?;
                write_joined(f, &sizes)?;
                f.write_str("]")?;
                if order.len() > 1 {
                    f.write_str("T(")?;
                    write_joined(f, &order)?;
                    f.write_str(")")?;
                }
                Ok(())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn an_iota_is_reshaped_and_transposed() {
        let assignment = TileAssignment::iota([2, 2], [2, 2], [1, 0]).unwrap();
        assert_eq!(assignment.devices(4), Ok(vec![0, 2, 1, 3]));
        assert_eq!(assignment.to_string(), "[2,2]<=[2,2]T(1,0)");
        let assignment = TileAssignment::iota([4, 3], [2, 3, 2], [2, 0, 1]).unwrap();
        assert_eq!(assignment.devices(12), Ok(vec![0, 2, 4, 6, 8, 10, 1, 3, 5, 7, 9, 11]));
        assert_eq!(assignment.to_string(), "[4,3]<=[6,2]T(1,0)");
        let assignment = TileAssignment::iota([2, 1], [2], [0]).unwrap();
        assert_eq!(assignment.to_string(), "[2,1]<=[2]");
        assert_eq!(TileAssignment::iota([1], [1, 1], [1, 0]).unwrap().to_string(), "[1]<=[1]");
    }

    #[test]
    fn sizes_that_do_not_agree_are_refused() {
        for (dimensions, reshape, transpose) in [
            (vec![2, 2], vec![2], vec![0]),
            (vec![], vec![1], vec![0]),
            (vec![0], vec![0], vec![0]),
            (vec![-2], vec![-2], vec![0]),
            (vec![4], vec![2, 2], vec![0, 0]),
            (vec![4], vec![2, 2], vec![0]),
            (vec![4], vec![2, 2], vec![0, 2]),
            (vec![i64::MAX, 2], vec![i64::MAX, 2], vec![0, 1]),
        ] {
            let found = TileAssignment::iota(dimensions.clone(), reshape, transpose);
            assert!(found.is_err(), "{dimensions:?}");
        }
        assert!(TileAssignment::listed([2, 2], [0, 1, 2]).is_err());
        assert!(TileAssignment::listed([0; 0], []).is_err());
    }

    #[test]
    fn a_long_iota_is_not_written_out() {
        let assignment = TileAssignment::iota([1 << 40], [1 << 40], [0]).unwrap();
        assert_eq!(assignment.tile_count(), 1 << 40);
        assert!(assignment.devices(1 << 20).is_err());
    }

    proptest! {
        #[test]
        fn the_canonical_iota_has_the_same_order(
            (reshape, transpose) in prop::collection::vec(1_i64..4, 1..6).prop_flat_map(|reshape| {
                let axes: Vec<i32> = (0..).take(reshape.len()).collect();
                (Just(reshape), Just(axes).prop_shuffle())
            })
        ) {
            // The slow way: walks over the transposed index and computes each position separately.
            let sizes: Vec<i64> = transpose.iter().map(|axis| reshape[*axis as usize]).collect();
            let total: i64 = reshape.iter().product();
            let expected: Vec<i64> = (0..total).map(|mut tile| {
                let mut index = vec![0; reshape.len()];
                for (place, size) in sizes.iter().enumerate().rev() {
                    index[transpose[place] as usize] = tile % size;
                    tile /= size;
                }
                index.iter().zip(&reshape).fold(0, |at, (index, size)| at * size + index)
            }).collect();
            let assignment = TileAssignment::iota([total], reshape, transpose).unwrap();
            prop_assert_eq!(assignment.devices(total as usize), Ok(expected));
        }
    }
}
