//! The requests of our client, as the real clients write them.

use crate::{
    codec::{EncodeError, ToProto},
    ifrt::{
        ArrayCopySemantics, ArraySpec, DType, DeviceId, MemoryKind, RemapPlan, Shape, Sharding,
    },
    proto::xla::ifrt::{
        proto::{ByteStrides, SingleDeviceShardSemantics},
        proxy::{
            AssembleArrayFromSingleDeviceArraysRequest, CopyArraysRequest,
            DisassembleIntoSingleDeviceArraysRequest, FullyReplicatedShardRequest,
            GetDefaultLayoutRequest, IfrtRequest, MakeArrayFromHostBufferRequest,
            MakeArraysFromHostBufferShardsRequest, RemapArraysRequest, RequestMetadata,
            ifrt_request::Request,
            make_arrays_from_host_buffer_shards_request::{
                HostBuffer, MakeArraysFromHostBufferShardsSpec, ShardIndices,
            },
        },
    },
    version::SerDesVersion,
};

/// A request with its number. Requests that threads of the user's program make carry a number of the client, others do not.
pub(super) fn numbered(op_id: u64, user_context_id: u64, request: Request) -> IfrtRequest {
    let internal = matches!(
        request,
        Request::InitRequest(_)
            | Request::DestructArrayRequest(_)
            | Request::DeleteArrayRequest(_)
            | Request::CheckFutureRequest(_)
            | Request::GetDefaultLayoutRequest(_)
    );
    let user_context_id = if internal { 0 } else { user_context_id };
    IfrtRequest {
        request_metadata: Some(RequestMetadata { op_id, user_context_id, payloads: Vec::new() }),
        request: Some(request),
    }
}

/// The byte strides of row-major elements: 0 for each dimension of an empty array, as the real clients say it. Strings have none.
pub(super) fn row_major_strides(dtype: DType, shape: &Shape) -> Option<ByteStrides> {
    let item = i64::from(dtype.bits()?.div_ceil(8));
    let mut strides = vec![0; shape.rank()];
    if !shape.dims().contains(&0) {
        let mut step = item;
        for (stride, dimension) in strides.iter_mut().zip(shape.dims()).rev() {
            *stride = step;
            step = step.saturating_mul(*dimension);
        }
    }
    Some(ByteStrides { strides })
}

pub(super) fn make_array(
    dtype: DType,
    shape: &Shape,
    sharding: &Sharding,
    strides: Option<ByteStrides>,
    handle: u64,
    version: SerDesVersion,
) -> Result<MakeArrayFromHostBufferRequest, EncodeError> {
    Ok(MakeArrayFromHostBufferRequest {
        dtype: Some(dtype.to_proto(version)?),
        shape: Some(shape.to_proto(version)?),
        sharding: Some(sharding.to_proto(version)?),
        host_buffer_handle: handle,
        byte_strides: strides,
        array_handle: Some(handle),
        layout: None,
    })
}

/// An array of a row-major host buffer for each shard.
pub(super) fn make_array_of_shards(
    spec: &ArraySpec,
    shards: &[(Shape, u64)],
    handle: u64,
    version: SerDesVersion,
) -> Result<MakeArraysFromHostBufferShardsRequest, EncodeError> {
    let mut host_buffers = Vec::with_capacity(shards.len());
    for (shape, host_buffer_handle) in shards {
        host_buffers.push(HostBuffer {
            dtype: Some(spec.dtype().to_proto(version)?),
            shape: Some(shape.to_proto(version)?),
            host_buffer_handle: *host_buffer_handle,
            byte_strides: row_major_strides(spec.dtype(), shape),
        });
    }
    // Shards are fewer than devices, whose ids are 32-bit numbers.
    let indices = (0..shards.len()).map(|index| ShardIndices { indices: vec![index as i64] });
    Ok(MakeArraysFromHostBufferShardsRequest {
        specs: vec![MakeArraysFromHostBufferShardsSpec {
            addressable_shard_indices: indices.collect(),
            host_buffers,
            array_spec: Some(spec.to_proto(version)?),
        }],
        array_handles: vec![handle],
    })
}

pub(super) fn fully_replicated_shard(
    array_handle: u64,
    result_handle: u64,
) -> FullyReplicatedShardRequest {
    let copy_semantics = ArrayCopySemantics::ReuseInput.number();
    FullyReplicatedShardRequest { array_handle, copy_semantics, result_handle }
}

pub(super) fn disassemble(
    array_handle: u64,
    result_handles: Vec<u64>,
) -> DisassembleIntoSingleDeviceArraysRequest {
    DisassembleIntoSingleDeviceArraysRequest {
        array_handle,
        copy_semantics: ArrayCopySemantics::ReuseInput.number(),
        single_device_shard_semantics: Some(SingleDeviceShardSemantics::AddressableShards.into()),
        result_handles,
    }
}

pub(super) fn assemble(
    spec: &ArraySpec,
    single_device_array_handles: Vec<u64>,
    result_handle: u64,
    version: SerDesVersion,
) -> Result<AssembleArrayFromSingleDeviceArraysRequest, EncodeError> {
    Ok(AssembleArrayFromSingleDeviceArraysRequest {
        shape: Some(spec.shape().to_proto(version)?),
        sharding: Some(spec.sharding().to_proto(version)?),
        single_device_array_handles,
        copy_semantics: ArrayCopySemantics::ReuseInput.number(),
        single_device_shard_semantics: Some(SingleDeviceShardSemantics::AddressableShards.into()),
        result_handle,
        dtype: Some(spec.dtype().to_proto(version)?),
    })
}

pub(super) fn copy_arrays(
    array_handles: Vec<u64>,
    devices: &[DeviceId],
    memory_kind: &MemoryKind,
    result_handles: Vec<u64>,
) -> CopyArraysRequest {
    CopyArraysRequest {
        array_handles,
        device_ids: devices.iter().map(|id| id.0).collect(),
        memory_kind: memory_kind.name().map(str::to_owned),
        copy_semantics: ArrayCopySemantics::ReuseInput.number(),
        result_handles,
    }
}

pub(super) fn remap_arrays(
    plan: &RemapPlan,
    array_handles: Vec<u64>,
    semantics: ArrayCopySemantics,
    result_handles: Vec<u64>,
    version: SerDesVersion,
) -> Result<RemapArraysRequest, EncodeError> {
    Ok(RemapArraysRequest {
        plan: Some(plan.to_proto(version)?),
        array_handles,
        copy_semantics: semantics.number(),
        result_handles,
    })
}

pub(super) fn default_layout(
    dtype: DType,
    shape: &Shape,
    device: DeviceId,
    memory_kind: &MemoryKind,
    version: SerDesVersion,
) -> Result<GetDefaultLayoutRequest, EncodeError> {
    Ok(GetDefaultLayoutRequest {
        dtype: Some(dtype.to_proto(version)?),
        dims: shape.dims().to_vec(),
        device_id: device.0,
        memory_kind: memory_kind.name().unwrap_or_default().to_owned(),
    })
}
