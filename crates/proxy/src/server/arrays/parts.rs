//! Assembles arrays on the host from their shards.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;
use serdes::{
    codec::Status,
    ifrt::{IndexDomain, Shape},
    proto::xla::ifrt::proto::StringArrayContents,
};

use super::{
    Composition, Item, Memory, Region,
    strings::{positions, read_strings},
};
use crate::status::status;

/// Assembles the parts of an array. Waits for devices.
///
/// # Errors
/// INTERNAL if a part has the wrong size; an error of the plug-in.
pub(crate) fn assemble(
    parts: &[(Arc<Memory>, IndexDomain)],
    item: Item,
    region: &Region,
    shape: &Shape,
) -> Result<Vec<u8>, Status> {
    let only = match parts {
        [(memory, domain)] if domain.shape() == shape => Some(memory),
        _ => None,
    };
    match (item, only) {
        (Item::Bytes(_), Some(memory)) if region.is_dense() => memory.read(),
        (Item::Strings, Some(memory)) => memory.read(),
        (Item::Bytes(item), _) => Composition::whole(parts, item, region.clone())?.finish(),
        (Item::Strings, None) => {
            let count = usize::try_from(region.bytes()).unwrap_or(usize::MAX);
            let mut places = Vec::new();
            for (memory, domain) in parts {
                let strings = read_strings(memory.read()?.into(), domain.shape())?;
                places.extend(positions(shape, domain)?.into_iter().zip(strings));
            }
            places.sort_by_key(|(position, _)| *position);
            places.dedup_by_key(|(position, _)| *position);
            if places.len() != count {
                return Err(status!(
                    Internal,
                    "the shards hold {} strings of {count}",
                    places.len()
                ));
            }
            let strings = places.into_iter().map(|(_, string)| string).collect();
            Ok(StringArrayContents { strings }.encode_to_vec())
        }
    }
}

/// Returns all strings of an array of which some parts are known; the others are empty.
pub(crate) fn cover(
    sources: &[(Arc<Memory>, IndexDomain)],
    shape: &Shape,
) -> Result<Vec<Bytes>, Status> {
    let count = shape.element_count().map_err(|error| error.to_status())?.unsigned_abs();
    let region = Region::dense(&[count as i64], 1)?;
    match sources {
        [(memory, domain)] if domain.shape() == shape => {
            let contents = StringArrayContents::decode(&memory.read()?[..]);
            contents.map(|contents| contents.strings).map_err(|error| status!(Internal, "{error}"))
        }
        _ => {
            let whole = assemble(sources, Item::Strings, &region, shape)?;
            let contents = StringArrayContents::decode(&whole[..]);
            contents.map(|contents| contents.strings).map_err(|error| status!(Internal, "{error}"))
        }
    }
}
