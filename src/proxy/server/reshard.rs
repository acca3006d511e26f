//! Arrays cut in another way.

use std::sync::Arc;

use prost::Message as _;

use super::{
    array::{Array, Shard},
    element::{Item, item_size, zeroed},
    memory::{Buffer, Memory},
    read::assemble,
    rearrange::{From, Rearrangement, Work},
    region::Region,
    session::{Answer, Session},
};
use crate::{
    codec::Status,
    ifrt::{IndexDomain, Shape},
    proto::xla::ifrt::{
        proto::StringArrayContents,
        proxy::{ReshardArraysRequest, ReshardArraysResponse, ifrt_response::Response},
    },
    proxy::status::status,
};

impl Session {
    /// The same arrays cut in another way, on any devices.
    pub(super) fn reshard_arrays(self: &Arc<Self>, request: &ReshardArraysRequest) -> Answer {
        self.rearranging(
            &request.array_handles,
            &request.result_handles,
            request.copy_semantics,
            |inputs, semantics| {
                let specs = self.specs(&request.array_specs, inputs.len())?;
                let mut result = Rearrangement::default();
                for (array, spec) in inputs.iter().zip(specs) {
                    if spec.dtype() != array.dtype() || spec.shape() != array.shape() {
                        return Err(status!(
                            InvalidArgument,
                            "an array of {}{} cannot be cut as {}{}: type and shape stay",
                            array.dtype(),
                            array.shape(),
                            spec.dtype(),
                            spec.shape(),
                        ));
                    }
                    let places = self.shared.devices.places(spec.sharding())?;
                    let wanted =
                        spec.sharding().index_domains(spec.shape()).or_else(
                            |error| match places.len() {
                                1 => Ok(vec![IndexDomain::whole(spec.shape().clone())]),
                                _ => Err(error.to_status()),
                            },
                        )?;
                    let own = array.domains()?;
                    let item = item_size(array.dtype())?;
                    let mut shards = Vec::with_capacity(places.len());
                    for (place, wanted) in places.into_iter().zip(wanted) {
                        let same = || {
                            array
                                .shards
                                .iter()
                                .zip(&own)
                                .filter(|(_, domain)| **domain == wanted)
                                .map(|(shard, _)| shard)
                        };
                        // The same part on the same device is best, the same part on another one is second.
                        if let Some(shard) =
                            same().find(|shard| shard.place == place).or_else(|| same().next())
                        {
                            shards.push(result.shard(shard, place, shard.shape.clone(), semantics));
                            continue;
                        }
                        let mut parts: Vec<(Buffer, IndexDomain)> = Vec::new();
                        for (shard, domain) in array.shards.iter().zip(&own) {
                            if (item == Item::Strings || overlap(domain, &wanted).is_some())
                                && parts.iter().all(|(_, other)| other != domain)
                            {
                                parts.push((shard.buffer.clone(), domain.clone()));
                            }
                        }
                        let (promise, buffer) = Buffer::promised();
                        shards.push(Shard { place, shape: wanted.shape().clone(), buffer });
                        let from =
                            From::Parts { parts, wanted, shape: array.shape().clone(), item };
                        result.work.push(Work { promise, place, from });
                    }
                    result.arrays.push(Array { spec, shards });
                }
                Ok(result)
            },
            |array_handles| {
                Response::ReshardArraysResponse(ReshardArraysResponse { array_handles })
            },
        )
    }
}

/// A part of an array out of the parts that overlap it. Waits for devices.
pub(super) fn cut(
    sources: &[(Arc<Memory>, IndexDomain)],
    wanted: &IndexDomain,
    item: usize,
) -> Result<Vec<u8>, Status> {
    let target = Region::dense(wanted.shape().dims(), item)?;
    let mut bytes = zeroed(target.bytes())?;
    for (memory, domain) in sources {
        let Some((origin, shape)) = overlap(domain, wanted) else { continue };
        let relative = |base: &IndexDomain| -> Vec<i64> {
            origin.iter().zip(base.origin().elements()).map(|(at, base)| at - base).collect()
        };
        let source = Region::dense(domain.shape().dims(), item)?;
        source.copy_block(
            &memory.read()?,
            &relative(domain),
            &target,
            &mut bytes,
            &relative(wanted),
            &shape,
        )?;
    }
    Ok(bytes)
}

/// All strings of an array of which those parts are known; the others are empty.
pub(super) fn cover(
    sources: &[(Arc<Memory>, IndexDomain)],
    shape: &Shape,
) -> Result<Vec<bytes::Bytes>, Status> {
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

/// The origin and shape of what two parts have in common; `None` if that is nothing.
fn overlap(one: &IndexDomain, other: &IndexDomain) -> Option<(Vec<i64>, Vec<i64>)> {
    let ends = |domain: &IndexDomain| -> Vec<(i64, i64)> {
        let lengths = domain.origin().elements().iter().zip(domain.shape().dims());
        lengths.map(|(origin, length)| (*origin, origin.saturating_add(*length))).collect()
    };
    let mut origin = Vec::new();
    let mut shape = Vec::new();
    for ((start, end), (other_start, other_end)) in ends(one).into_iter().zip(ends(other)) {
        let (start, end) = (start.max(other_start), end.min(other_end));
        if start >= end {
            return None;
        }
        origin.push(start);
        shape.push(end - start);
    }
    Some((origin, shape))
}
