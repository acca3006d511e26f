//! Elements of arrays in host memory: their sizes, and allocation.

use serdes::{
    codec::Status,
    ifrt::{DType, Shape},
};
use serdes_device_state::Contents;

use crate::status::status;

/// Bytes that are read, copied or written at a time: large for a call into the plug-in, small for a
/// processor's caches.
pub(crate) const STEP: usize = 4 << 20;

/// Memory representation of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// A number of bytes; elements smaller than a byte take one each.
    Bytes(usize),
    /// Strings: a shard is one message with all of them.
    Strings,
}

/// # Errors
/// INVALID_ARGUMENT if there is no type, UNIMPLEMENTED for types whose values are not data.
pub(crate) fn item_size(dtype: DType) -> Result<Item, Status> {
    match dtype {
        DType::String => Ok(Item::Strings),
        DType::Invalid => Err(status!(
            InvalidArgument,
            "the request has no element type, or one that is unknown here"
        )),
        _ => match dtype.unpacked_byte_size() {
            Some(bytes) => Ok(Item::Bytes(bytes as usize)),
            None => {
                Err(status!(Unimplemented, "arrays of {dtype} hold no data that could be moved"))
            }
        },
    }
}

/// Returns the contents of a device's memory for a shard.
///
/// # Errors
/// INTERNAL for elements that devices cannot store, or more of them than any memory holds.
pub(crate) fn contents_of(dtype: DType, shape: &Shape) -> Result<Contents, Status> {
    Contents::new(dtype, shape.dims().iter().copied())
        .ok_or_else(|| status!(Internal, "no device holds {dtype}{shape}"))
}

/// Allocates `bytes` bytes of host memory.
///
/// # Errors
/// RESOURCE_EXHAUSTED if there is not enough memory.
pub(crate) fn zeroed(bytes: u64) -> Result<Vec<u8>, Status> {
    let exhausted = || status!(ResourceExhausted, "the host has no {bytes} bytes left");
    let length = usize::try_from(bytes).map_err(|_| exhausted())?;
    let mut memory = Vec::new();
    memory.try_reserve_exact(length).map_err(|_| exhausted())?;
    memory.resize(length, 0);
    Ok(memory)
}
