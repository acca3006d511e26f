//! Elements of arrays in the memory of the host: how large one is, and room for many.

use serdes::{
    codec::Status,
    ifrt::{DType, Shape},
};
use serdes_device_state::Contents;

use crate::status::status;

/// Bytes that are read, copied or written at a time: much for a call into the plug-in, little for
/// the caches of a processor.
pub(crate) const STEP: usize = 4 << 20;

/// Memory representation of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Item {
    /// That many bytes; elements smaller than a byte have one each.
    Bytes(usize),
    /// A shard is one message with all its strings.
    Strings,
}

/// # Errors
/// INVALID_ARGUMENT for no type, UNIMPLEMENTED for types whose values are not data.
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

/// Contents of a device's memory for a shard.
///
/// # Errors
/// INTERNAL for elements that have no place on a device, or more of them than any memory has.
pub(crate) fn contents_of(dtype: DType, shape: &Shape) -> Result<Contents, Status> {
    Contents::new(dtype, shape.dims().iter().copied())
        .ok_or_else(|| status!(Internal, "no device holds {dtype}{shape}"))
}

/// Returns the memory of the host for `bytes` bytes.
///
/// # Errors
/// RESOURCE_EXHAUSTED if there is not that much.
pub(crate) fn zeroed(bytes: u64) -> Result<Vec<u8>, Status> {
    let exhausted = || status!(ResourceExhausted, "the host has no {bytes} bytes left");
    let length = usize::try_from(bytes).map_err(|_| exhausted())?;
    let mut memory = Vec::new();
    memory.try_reserve_exact(length).map_err(|_| exhausted())?;
    memory.resize(length, 0);
    Ok(memory)
}
