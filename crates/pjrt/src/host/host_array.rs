//! Arrays on the host, which are checked before they are passed to a plug-in.

use serdes_abi::pjrt::ElementType;

use crate::PjrtError;

/// The maximum number of dimensions of an array.
pub(super) const MOST_DIMENSIONS: usize = 254;

/// An array in host memory.
#[derive(Clone, Copy, Debug)]
pub struct HostArray<'a> {
    element_type: ElementType,
    dims: &'a [i64],
    byte_strides: &'a [i64],
}

impl<'a> HostArray<'a> {
    /// Creates a dense array, whose last dimension changes fastest.
    #[must_use]
    pub fn new(element_type: ElementType, dims: &'a [i64]) -> Self {
        Self { element_type, dims, byte_strides: &[] }
    }

    /// Sets the strides: the distance in bytes between neighbours in each dimension; 0 repeats one
    /// element.
    #[must_use]
    pub fn with_byte_strides(mut self, byte_strides: &'a [i64]) -> Self {
        self.byte_strides = byte_strides;
        self
    }

    pub(super) fn element_type(&self) -> ElementType {
        self.element_type
    }

    pub(super) fn dims(&self) -> &'a [i64] {
        self.dims
    }

    pub(super) fn byte_strides(&self) -> &'a [i64] {
        self.byte_strides
    }

    /// Returns the number of bytes that a plug-in may read, from the first one.
    ///
    /// # Errors
    /// [`PjrtError::InvalidArgument`] for too many dimensions, a negative dimension or stride (a
    /// plug-in would read before the array), another number of strides than of dimensions, or an
    /// array that exceeds any memory.
    pub(crate) fn extent(&self) -> Result<usize, PjrtError> {
        let refuse = |what, found: String, expected: &str| {
            Err(PjrtError::InvalidArgument { what, found, expected: expected.to_owned() })
        };
        if self.dims.len() > MOST_DIMENSIONS {
            return refuse("the rank", self.dims.len().to_string(), "254 at most");
        }
        if self.dims.iter().any(|&dim| dim < 0) {
            return refuse("the shape", format!("{:?}", self.dims), "no negative dimension");
        }
        let strided = !self.byte_strides.is_empty();
        if strided && self.byte_strides.len() != self.dims.len() {
            let expected = format!("{}, one a dimension", self.dims.len());
            return refuse("the number of strides", self.byte_strides.len().to_string(), &expected);
        }
        if self.byte_strides.iter().any(|&stride| stride < 0) {
            let expected = "no negative stride: plug-ins would read before the array";
            return refuse("the strides", format!("{:?}", self.byte_strides), expected);
        }
        let Some(extent) = self.checked_extent(strided) else {
            return refuse("the array", format!("{:?}", self.dims), "one that fits into memory");
        };
        Ok(extent)
    }

    fn checked_extent(&self, strided: bool) -> Option<usize> {
        let bytes = self.element_type.host_bytes();
        let elements = element_count(self.dims)?;
        if elements == 0 || !strided {
            // No slice is longer than this.
            return elements.checked_mul(bytes).filter(|&bytes| bytes <= isize::MAX as usize);
        }
        let places = self.dims.iter().zip(self.byte_strides);
        let last = places.map(|(&dim, &stride)| {
            usize::try_from(dim - 1).ok()?.checked_mul(usize::try_from(stride).ok()?)
        });
        let last = last.into_iter().try_fold(0_usize, |sum, place| sum.checked_add(place?))?;
        last.checked_add(bytes).filter(|&bytes| bytes <= isize::MAX as usize)
    }
}

/// Returns the number of elements of an array of these dimensions; `None` if it overflows. A
/// dimension of 0 makes the array empty, regardless of the others.
pub(super) fn element_count(dims: &[i64]) -> Option<usize> {
    if dims.contains(&0) {
        return Some(0);
    }
    dims.iter().try_fold(1_usize, |product, &dim| product.checked_mul(usize::try_from(dim).ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn extent(dims: &[i64], strides: &[i64]) -> Option<usize> {
        HostArray::new(ElementType::F32, dims).with_byte_strides(strides).extent().ok()
    }

    #[test]
    fn an_array_reaches_to_its_last_element() {
        assert_eq!(extent(&[2, 3], &[]), Some(24));
        assert_eq!(extent(&[], &[]), Some(4));
        assert_eq!(extent(&[3, 0], &[]), Some(0));
        assert_eq!(extent(&[2, 3], &[4, 8]), Some(24));
        assert_eq!(extent(&[2, 3], &[100, 4]), Some(112));
        assert_eq!(extent(&[1000, 1000], &[0, 0]), Some(4));
        assert_eq!(extent(&[0, 5], &[100, 4]), Some(0));
        // Packed on the device, one byte per element on the host.
        assert_eq!(HostArray::new(ElementType::S4, &[6]).extent().unwrap(), 6);
    }

    #[test]
    fn range_outside_of_the_array_is_refused() {
        for (dims, strides) in [
            (&[2, 3][..], &[12, -4][..]),
            (&[-1], &[]),
            (&[2, 3], &[12]),
            (&[i64::MAX, i64::MAX], &[]),
            (&[i64::MAX, 2], &[1, 1]),
            (&[2], &[i64::MAX]),
        ] {
            assert_eq!(extent(dims, strides), None, "{dims:?} {strides:?}");
        }
        assert_eq!(extent(&[1; 255], &[]), None);
    }
}
