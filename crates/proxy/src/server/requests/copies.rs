//! Requests that create arrays from whole shards: disassembly, assembly, copies, bitcasts.

use serdes::{
    codec::Status,
    ifrt::{
        ArraySpec, DType, DeviceId, DeviceList, MemoryKind, Shape, Sharding, SingleDeviceSharding,
    },
    proto::xla::ifrt::proxy::{
        AssembleArrayFromSingleDeviceArraysRequest, AssembleArrayFromSingleDeviceArraysResponse,
        BitcastArraysRequest, BitcastArraysResponse, CopyArraysRequest, CopyArraysResponse,
        DisassembleIntoSingleDeviceArraysRequest, DisassembleIntoSingleDeviceArraysResponse,
        FullyReplicatedShardRequest, FullyReplicatedShardResponse, ifrt_response::Response,
    },
};

use super::rearrangement::{Inputs, Rearrange, Rearrangement, handles, specs};
use crate::{
    server::arrays::{Array, Devices, Item, MemorySpace, Region, Shard, item_size},
    status::status,
};

/// Returns the first shard of a fully replicated array.
impl Rearrange for FullyReplicatedShardRequest {
    handles!(array_handle, result_handle => FullyReplicatedShardResponse);

    fn rearrange(&self, inputs: &Inputs<'_>) -> Result<Rearrangement, Status> {
        let mut result = Rearrangement::default();
        for array in inputs.arrays {
            let shard = array.shards.first().filter(|shard| {
                array.sharding().is_fully_replicated()
                    || (array.shards.len() == 1 && shard.shape == *array.shape())
            });
            let shard = shard.ok_or_else(|| {
                status!(
                    InvalidArgument,
                    "array {} is not replicated: {}",
                    self.array_handle,
                    array.spec
                )
            })?;
            let made = result.shard(shard, shard.space, shard.shape.clone(), inputs.semantics);
            result.arrays.push(single(&inputs.context.devices, array, made));
        }
        Ok(result)
    }
}

/// Returns each shard as an array.
impl Rearrange for DisassembleIntoSingleDeviceArraysRequest {
    handles!(array_handle, result_handles[] => DisassembleIntoSingleDeviceArraysResponse);

    fn rearrange(&self, inputs: &Inputs<'_>) -> Result<Rearrangement, Status> {
        let mut result = Rearrangement::default();
        for array in inputs.arrays {
            for shard in &array.shards {
                let made = result.shard(shard, shard.space, shard.shape.clone(), inputs.semantics);
                result.arrays.push(single(&inputs.context.devices, array, made));
            }
        }
        Ok(result)
    }
}

/// Assembles an array from arrays of one shard each.
impl Rearrange for AssembleArrayFromSingleDeviceArraysRequest {
    handles!(
        single_device_array_handles[],
        result_handle => AssembleArrayFromSingleDeviceArraysResponse
    );

    fn rearrange(&self, inputs: &Inputs<'_>) -> Result<Rearrangement, Status> {
        let shape: Shape = inputs.session.decode(self.shape.as_ref())?;
        let sharding: Sharding = inputs.session.decode(self.sharding.as_ref())?;
        let dtype = match &self.dtype {
            Some(dtype) => inputs.session.decode::<DType>(Some(dtype))?,
            None => inputs.arrays.first().map(|array| array.dtype()).ok_or_else(|| {
                status!(InvalidArgument, "neither an element type nor an array is given")
            })?,
        };
        let spaces = inputs.context.devices.spaces(&sharding)?;
        if spaces.len() != inputs.arrays.len() {
            return Err(status!(
                InvalidArgument,
                "found {} arrays; expected {}, one for each device of the sharding",
                inputs.arrays.len(),
                spaces.len(),
            ));
        }
        let shapes = sharding.disassemble(&shape).ok();
        let mut result = Rearrangement::default();
        let mut shards = Vec::with_capacity(spaces.len());
        for (index, (array, space)) in inputs.arrays.iter().zip(spaces).enumerate() {
            let expected = shapes.as_ref().and_then(|shapes| shapes.get(index));
            let shard = only_shard(index, array, dtype, space, expected.map(|(shape, _)| shape))?;
            shards.push(result.shard(shard, space, shard.shape.clone(), inputs.semantics));
        }
        result.arrays.push(Array { spec: ArraySpec::new(dtype, shape, sharding), shards });
        Ok(result)
    }
}

/// Returns the only shard of an array, for use as the shard of another array.
///
/// # Errors
/// INVALID_ARGUMENT if its type, place or shape differs.
fn only_shard<'a>(
    index: usize,
    array: &'a Array,
    dtype: DType,
    space: MemorySpace,
    shape: Option<&Shape>,
) -> Result<&'a Shard, Status> {
    let [shard] = &array.shards[..] else {
        let count = array.shards.len();
        return Err(status!(InvalidArgument, "array {index} has {count} shards; expected one"));
    };
    if array.dtype() != dtype {
        return Err(status!(
            InvalidArgument,
            "array {index} holds {}; expected {dtype}",
            array.dtype()
        ));
    }
    if shard.space != space {
        return Err(status!(
            InvalidArgument,
            "array {index} is on device {} in {}; expected device {} in {}, as in the sharding",
            shard.space.device,
            shard.space.kind.name(),
            space.device,
            space.kind.name(),
        ));
    }
    match shape {
        Some(expected) if *expected != shard.shape => Err(status!(
            InvalidArgument,
            "array {index} has the shape {}; expected {expected}",
            shard.shape
        )),
        _ => Ok(shard),
    }
}

/// Copies arrays to other devices or another kind of memory.
impl Rearrange for CopyArraysRequest {
    handles!(array_handles[], result_handles[] => CopyArraysResponse);

    fn rearrange(&self, inputs: &Inputs<'_>) -> Result<Rearrangement, Status> {
        let devices = (!self.device_ids.is_empty())
            .then(|| DeviceList::new(self.device_ids.iter().copied().map(DeviceId)));
        let kind = self.memory_kind.as_ref().map(MemoryKind::new);
        let mut result = Rearrangement::default();
        for array in inputs.arrays {
            let sharding = array
                .sharding()
                .with_device_assignment(devices.clone(), kind.clone())
                .map_err(|error| error.to_status())?;
            let spaces = inputs.context.devices.spaces(&sharding)?;
            let shards = array.shards.iter().zip(spaces).map(|(shard, space)| {
                result.shard(shard, space, shard.shape.clone(), inputs.semantics)
            });
            let shards = shards.collect();
            result.arrays.push(Array { spec: respec(&array.spec, sharding), shards });
        }
        Ok(result)
    }
}

/// Creates arrays of the same bytes, with another type and shape.
impl Rearrange for BitcastArraysRequest {
    handles!(array_handles[], result_handles[] => BitcastArraysResponse);

    fn rearrange(&self, inputs: &Inputs<'_>) -> Result<Rearrangement, Status> {
        let specs = specs(inputs.session, &self.array_specs, inputs.arrays.len())?;
        let mut result = Rearrangement::default();
        for (array, spec) in inputs.arrays.iter().zip(specs) {
            let spaces = inputs.context.devices.spaces(spec.sharding())?;
            let parts = spec.sharding().disassemble(spec.shape());
            let parts = parts.map_err(|error| error.to_status())?;
            if spaces.len() != array.shards.len() {
                return Err(status!(
                    InvalidArgument,
                    "the new sharding has {} shards; expected {}, as the array",
                    spaces.len(),
                    array.shards.len(),
                ));
            }
            let mut shards = Vec::with_capacity(spaces.len());
            for ((shard, space), (shape, _)) in array.shards.iter().zip(spaces).zip(parts) {
                let old = shard_bytes(array.dtype(), &shard.shape)?;
                let new = shard_bytes(spec.dtype(), &shape)?;
                if old != new || shard.space != space {
                    return Err(status!(
                        InvalidArgument,
                        "a shard of {new} bytes on device {} cannot be the same as one of {old} bytes on device {}",
                        space.device,
                        shard.space.device,
                    ));
                }
                shards.push(result.shard(shard, space, shape, inputs.semantics));
            }
            result.arrays.push(Array { spec, shards });
        }
        Ok(result)
    }
}

/// Returns the size of a shard in bytes.
///
/// # Errors
/// INVALID_ARGUMENT for types without a fixed size.
fn shard_bytes(dtype: DType, shape: &Shape) -> Result<u64, Status> {
    match item_size(dtype)? {
        Item::Bytes(item) => Ok(Region::dense(shape.dims(), item)?.bytes()),
        Item::Strings => {
            Err(status!(InvalidArgument, "strings have no bits that could be seen as another type"))
        }
    }
}

/// Returns a shard as a separate array.
fn single(devices: &Devices, array: &Array, shard: Shard) -> Array {
    let device = devices.id(shard.space.device);
    let sharding = SingleDeviceSharding::new(device).with_memory_kind(shard.space.kind.name());
    let spec = ArraySpec::new(array.dtype(), shard.shape.clone(), sharding);
    Array { spec, shards: vec![shard] }
}

/// Returns a spec with the same type and shape, and another sharding.
fn respec(spec: &ArraySpec, sharding: Sharding) -> ArraySpec {
    let new = ArraySpec::new(spec.dtype(), spec.shape().clone(), sharding);
    match spec.layout() {
        Some(layout) => new.with_layout(layout.clone()),
        None => new,
    }
}
