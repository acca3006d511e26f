//! Resharding of arrays.

use serdes::{
    codec::Status,
    ifrt::{ArrayCopySemantics as Semantics, ArraySpec, IndexDomain},
    proto::xla::ifrt::proxy::{
        ReshardArraysRequest, ReshardArraysResponse, ifrt_response::Response,
    },
};

use super::rearrangement::{Inputs, Rearrange, Rearrangement, ShardSource, handles, specs};
use crate::{
    server::arrays::{Array, Buffer, Item, MemorySpace, Shard, item_size, overlap},
    status::status,
};

/// Creates arrays with the same elements in other shards, on any devices.
impl Rearrange for ReshardArraysRequest {
    handles!(array_handles[], result_handles[] => ReshardArraysResponse);

    fn rearrange(&self, inputs: &Inputs<'_>) -> Result<Rearrangement, Status> {
        let specs = specs(inputs.session, &self.array_specs, inputs.arrays.len())?;
        let mut result = Rearrangement::default();
        for (array, spec) in inputs.arrays.iter().zip(specs) {
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
            let spaces = inputs.context.devices.spaces(spec.sharding())?;
            let domains = domains_of(&spec, spaces.len())?;
            let resharding = Resharding::new(array, inputs.semantics)?;
            let shards = spaces.into_iter().zip(domains);
            let shards = shards.map(|(space, wanted)| resharding.shard(&mut result, space, wanted));
            let shards = shards.collect();
            result.arrays.push(Array { spec, shards });
        }
        Ok(result)
    }
}

/// Returns the part of the array for each device.
///
/// # Errors
/// INVALID_ARGUMENT if the sharding does not define it.
fn domains_of(spec: &ArraySpec, devices: usize) -> Result<Vec<IndexDomain>, Status> {
    spec.sharding().index_domains(spec.shape()).or_else(|error| match devices {
        1 => Ok(vec![IndexDomain::whole(spec.shape().clone())]),
        _ => Err(error.to_status()),
    })
}

/// An array to be resharded.
struct Resharding<'a> {
    array: &'a Array,
    domains: Vec<IndexDomain>,
    item: Item,
    semantics: Semantics,
}

impl<'a> Resharding<'a> {
    fn new(array: &'a Array, semantics: Semantics) -> Result<Self, Status> {
        let item = item_size(array.dtype())?;
        Ok(Self { array, domains: array.domains()?, item, semantics })
    }

    /// Returns a shard that holds the part `wanted`.
    fn shard(&self, result: &mut Rearrangement, space: MemorySpace, wanted: IndexDomain) -> Shard {
        // Prefer the same part on the same device, then the same part on another one.
        let same =
            || self.shards().filter(|(_, domain)| **domain == wanted).map(|(shard, _)| shard);
        if let Some(shard) = same().find(|shard| shard.space == space).or_else(|| same().next()) {
            return result.shard(shard, space, shard.shape.clone(), self.semantics);
        }
        let mut parts: Vec<(Buffer, IndexDomain)> = Vec::new();
        for (shard, domain) in self.shards() {
            if (self.item == Item::Strings || overlap(domain, &wanted).is_some())
                && parts.iter().all(|(_, other)| other != domain)
            {
                parts.push((shard.buffer.clone(), domain.clone()));
            }
        }
        let (shape, whole) = (wanted.shape().clone(), self.array.shape().clone());
        let source = ShardSource::Parts { parts, wanted, shape: whole, item: self.item };
        result.copy(source, space, shape)
    }

    fn shards(&self) -> impl Iterator<Item = (&Shard, &IndexDomain)> {
        self.array.shards.iter().zip(&self.domains)
    }
}
