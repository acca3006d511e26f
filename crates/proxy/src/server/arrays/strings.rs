//! Arrays of strings: a shard is one message with all its strings, in row-major order.

use bytes::Bytes;
use prost::{
    DecodeError, Message as _,
    encoding::{DecodeContext, decode_key, skip_field},
};
use serdes::{
    codec::Status,
    ifrt::{IndexDomain, Shape},
    proto::xla::ifrt::proto::StringArrayContents,
};

use crate::status::status;

/// Parses the strings of a payload.
///
/// # Errors
/// INVALID_ARGUMENT if the payload is invalid, or has not one string for each element.
pub(crate) fn read_strings(payload: Bytes, shape: &Shape) -> Result<Vec<Bytes>, Status> {
    let damaged = |error: DecodeError| {
        status!(InvalidArgument, "the data of a string array is no StringArrayContents: {error}")
    };
    let expected = shape.element_count().map_err(|error| error.to_status())?;
    // Count before allocating: an empty string has two bytes in the payload, and many more in
    // memory.
    let found = count_fields(&payload).map_err(damaged)?;
    if found != expected.unsigned_abs() {
        return Err(status!(
            InvalidArgument,
            "found {found} strings; expected {expected} for the shape {shape}",
        ));
    }
    StringArrayContents::decode(payload).map(|contents| contents.strings).map_err(damaged)
}

/// Returns the number of fields of a message.
fn count_fields(mut bytes: &[u8]) -> Result<u64, DecodeError> {
    let mut count = 0;
    while !bytes.is_empty() {
        let (number, wire_type) = decode_key(&mut bytes)?;
        skip_field(wire_type, number, &mut bytes, DecodeContext::default())?;
        count += 1;
    }
    Ok(count)
}

/// Selects the strings of a part of an array.
pub(crate) fn pick_strings(
    strings: &[Bytes],
    shape: &Shape,
    domain: &IndexDomain,
) -> Result<Vec<Bytes>, Status> {
    let picked =
        positions(shape, domain)?.into_iter().map(|position| strings.get(position).cloned());
    picked.collect::<Option<_>>().ok_or_else(|| status!(Internal, "{domain} is outside of {shape}"))
}

/// Returns the positions of a part's elements among all elements, in row-major order.
pub(crate) fn positions(shape: &Shape, domain: &IndexDomain) -> Result<Vec<usize>, Status> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strings_are_counted_before_there_is_memory_for_them() {
        let strings = vec![Bytes::new(), Bytes::from_static(b"a"), Bytes::new()];
        let payload = Bytes::from(StringArrayContents { strings: strings.clone() }.encode_to_vec());
        let shape = |count| Shape::new([count]).unwrap();
        assert_eq!(read_strings(payload.clone(), &shape(3)).unwrap(), strings);
        let error = read_strings(payload.repeat(1000).into(), &shape(3)).unwrap_err();
        assert!(error.message().contains("found 3000 strings"), "{}", error.message());
        assert!(read_strings(payload.slice(..3), &shape(1)).is_err());
    }
}
