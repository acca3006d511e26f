//! Arrays of strings: a shard is one message with all its strings, in row-major order.

use bytes::Bytes;
use prost::Message as _;

use crate::{
    codec::Status,
    ifrt::{IndexDomain, Shape},
    proto::xla::ifrt::proto::StringArrayContents,
    proxy::status::status,
};

/// The strings of a payload.
///
/// # Errors
/// INVALID_ARGUMENT if it is none, or has not one for each element.
pub(super) fn read_strings(payload: Bytes, shape: &Shape) -> Result<Vec<Bytes>, Status> {
    let contents = StringArrayContents::decode(payload).map_err(|error| {
        status!(InvalidArgument, "the data of a string array is no StringArrayContents: {error}")
    })?;
    let expected = shape.element_count().map_err(|error| error.to_status())?;
    if contents.strings.len() as u64 != expected.unsigned_abs() {
        return Err(status!(
            InvalidArgument,
            "found {} strings; expected {expected} for the shape {shape}",
            contents.strings.len(),
        ));
    }
    Ok(contents.strings)
}

/// The strings of a part of an array.
pub(super) fn pick_strings(
    strings: &[Bytes],
    shape: &Shape,
    domain: &IndexDomain,
) -> Result<Vec<Bytes>, Status> {
    let picked =
        positions(shape, domain)?.into_iter().map(|position| strings.get(position).cloned());
    picked.collect::<Option<_>>().ok_or_else(|| status!(Internal, "{domain} is outside of {shape}"))
}

/// Where the elements of a part are among all elements, in row-major order.
pub(super) fn positions(shape: &Shape, domain: &IndexDomain) -> Result<Vec<usize>, Status> {
    let count = domain.shape().element_count().map_err(|error| error.to_status())?;
    let mut positions = Vec::new();
    if count == 0 {
        return Ok(positions);
    }
    let mut index = vec![0_i64; shape.rank()];
    loop {
        let parts = index.iter().zip(domain.origin().elements()).zip(shape.dims());
        let position = parts.fold(0_i64, |sum, ((at, origin), dimension)| {
            sum.saturating_mul(*dimension).saturating_add(origin + at)
        });
        positions.push(usize::try_from(position).unwrap_or(usize::MAX));
        let mut moved = false;
        for (at, dimension) in index.iter_mut().zip(domain.shape().dims()).rev() {
            *at += 1;
            if *at < *dimension {
                moved = true;
                break;
            }
            *at = 0;
        }
        if !moved {
            return Ok(positions);
        }
    }
}
