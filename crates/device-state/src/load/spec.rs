//! Validates the specs of tensors, and the lengths of their pieces.

use bytes::Bytes;
use serdes::{
    codec::{DecodeError, FromProto},
    ifrt::{ArraySpec, DType, DeviceId, DeviceLookup, Reach, with_devices},
};

use crate::Error;

/// Accepts any device id: specs refer to devices of the build that saved them.
struct AnyDevice;

impl DeviceLookup for AnyDevice {
    fn look_up(&self, _: DeviceId) -> Result<Reach, DecodeError> {
        Ok(Reach::Addressable)
    }
}

/// A decoded spec, shared by all tensors with the same bytes.
pub(super) struct KnownSpec {
    pub(super) spec: ArraySpec,
    /// Length in bytes of a piece with the whole array; `None` for strings and for lengths that
    /// cannot be represented.
    pub(super) whole_bytes: Option<u64>,
}

impl KnownSpec {
    pub(super) fn new(spec: ArraySpec) -> Self {
        let elements =
            spec.shape().element_count().ok().and_then(|count| u64::try_from(count).ok());
        let whole_bytes = (spec.dtype() != DType::String)
            .then(|| elements.and_then(|elements| bytes_of(spec.dtype(), elements)))
            .flatten();
        Self { spec, whole_bytes }
    }
}

/// Returns the length in bytes of `elements` elements; `None` for types without a fixed size.
fn bytes_of(dtype: DType, elements: u64) -> Option<u64> {
    dtype.unpacked_byte_size().and_then(|bytes| elements.checked_mul(bytes.into()))
}

pub(super) fn decode_spec(name: &str, bytes: &[u8]) -> Result<ArraySpec, Error> {
    let options = with_devices(AnyDevice);
    ArraySpec::from_bytes(Bytes::copy_from_slice(bytes), &options).map_err(|source| Error::Spec {
        path: None,
        name: name.to_owned(),
        source: Box::new(source),
    })
}

/// Checks that the length of a piece matches its part of the array.
pub(super) fn check_piece(
    name: &str,
    spec: &ArraySpec,
    domain: Option<&Vec<(u64, u64)>>,
    data_bytes: u64,
) -> Result<(), Error> {
    let place = || format!("index entry of {name:?}");
    let dims = spec.shape().dims();
    if let Some(domain) = domain {
        let inside = domain.len() == dims.len()
            && domain.iter().zip(dims).all(|((start, extent), dim)| {
                start.checked_add(*extent).is_some_and(|end| end <= *dim as u64)
            });
        if !inside {
            let expected = format!("a part of {}{}", spec.dtype(), spec.shape());
            return Err(Error::corrupt(&place(), format!("the part {domain:?}"), expected));
        }
    }
    let elements = match domain {
        None => spec.shape().element_count().ok().and_then(|count| u64::try_from(count).ok()),
        Some(domain) if domain.iter().any(|(_, extent)| *extent == 0) => Some(0),
        Some(domain) => domain.iter().try_fold(1_u64, |n, (_, extent)| n.checked_mul(*extent)),
    };
    let fits = match (spec.dtype(), elements) {
        (DType::String, Some(elements)) => {
            elements.checked_mul(8).is_some_and(|table| table <= data_bytes) && domain.is_none()
        }
        (dtype, Some(elements)) => bytes_of(dtype, elements) == Some(data_bytes),
        (_, None) => false,
    };
    if fits {
        return Ok(());
    }
    let expected = format!("what {}{} needs", spec.dtype(), spec.shape());
    Err(Error::corrupt(&place(), format!("{data_bytes} bytes"), expected))
}
