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

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use prost::Message;

    use super::*;
    use crate::{
        ifrt::{
            ConcreteEvenSharding, DeviceList, HloSharding, Interval,
            xla::{OpSharding, TileAssignment},
        },
        proto::xla::ifrt::proxy::{
            CopyToHostBufferRequest, DeleteArrayRequest, DestructArrayRequest, InitRequest,
        },
        version::SerDesAnyVersionAccessor,
    };

    /// What a real client of jaxlib 0.10.2 sent.
    fn captured(name: &str) -> Vec<u8> {
        let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/ifrt/golden");
        fs::read(directory.join(name)).unwrap()
    }

    fn version() -> SerDesVersion {
        SerDesAnyVersionAccessor::get(3).unwrap()
    }

    fn on(devices: impl Into<DeviceList>) -> Sharding {
        HloSharding::replicated(devices.into(), MemoryKind::new("device")).unwrap().into()
    }

    fn shape(dims: &[i64]) -> Shape {
        Shape::new(dims).unwrap()
    }

    fn tiled(dims: &[i64]) -> Sharding {
        let tiles = OpSharding::tiled(TileAssignment::iota(dims, [2], [0]).unwrap());
        HloSharding::new(DeviceList::from([0, 1]), MemoryKind::new("device"), tiles).unwrap().into()
    }

    /// Compares with a captured request, whose random number is taken over.
    fn assert_request(name: &str, request: Request) {
        let captured = captured(&format!("serdes3.{name}.xla.ifrt.proxy.IfrtRequest.binpb"));
        let metadata = IfrtRequest::decode(&captured[..]).unwrap().request_metadata.unwrap();
        let ours = numbered(metadata.op_id, metadata.user_context_id, request);
        assert_eq!(ours.encode_to_vec(), captured, "{name}");
    }

    fn assert_body(name: &str, message: impl prost::Name) {
        let kind = format!("{name}.{}.binpb", message_name(&message));
        assert_eq!(message.encode_to_vec(), captured(&format!("serdes3.{kind}")), "{name}");
    }

    fn message_name<M: prost::Name>(_: &M) -> String {
        M::full_name()
    }

    fn put(dtype: DType, dims: &[i64], handle: u64) -> Request {
        let shape = shape(dims);
        let strides = row_major_strides(dtype, &shape);
        let request = make_array(dtype, &shape, &on([0]), strides, handle, version()).unwrap();
        Request::MakeArrayFromHostBufferRequest(request)
    }

    #[test]
    fn puts_are_the_captured_ones() {
        assert_request("init_request", Request::InitRequest(InitRequest {}));
        assert_request("make_array_F32_2x3", put(DType::F32, &[2, 3], 1));
        assert_request("make_array_F32_scalar", put(DType::F32, &[], 4));
        assert_request("make_array_F32_0x3", put(DType::F32, &[0, 3], 7));
        assert_request("make_array_F4E2M1FN_2", put(DType::F4E2M1FN, &[2], 73));
        assert_request("make_array_STRING_3", put(DType::String, &[3], 106));
        let request =
            CopyToHostBufferRequest { host_buffer_handle: 3, array_handle: 2, byte_strides: None };
        assert_request("copy_to_host_buffer_request", Request::CopyToHostBufferRequest(request));
        let spec = ArraySpec::new(DType::F32, shape(&[4, 4]), tiled(&[2, 1]));
        let shards = [(shape(&[2, 4]), 116), (shape(&[2, 4]), 117)];
        let request = make_array_of_shards(&spec, &shards, 116, version()).unwrap();
        assert_request("make_arrays_0", Request::MakeArraysFromHostBufferShardsRequest(request));
    }

    #[test]
    fn rearrangements_are_the_captured_ones() {
        assert_body("fully_replicated_shard_request", fully_replicated_shard(1, 2));
        assert_body(
            "disassemble_into_single_device_arrays_request",
            disassemble(116, vec![118, 119]),
        );
        let kind = MemoryKind::new("device");
        assert_body(
            "copy_arrays_request",
            copy_arrays(vec![111], &[DeviceId(1)], &kind, vec![112]),
        );
        let spec = ArraySpec::new(DType::F32, shape(&[3]), on([1]));
        assert_body(
            "assemble_array_from_single_device_arrays_request",
            assemble(&spec, vec![112], 113, version()).unwrap(),
        );
        assert_body("delete_array_request", DeleteArrayRequest { array_handle: vec![110] });
        assert_body("destruct_array_request", DestructArrayRequest { array_handle: vec![1, 2] });
        assert_body(
            "get_default_layout_request",
            default_layout(
                DType::F32,
                &shape(&[2, 3]),
                DeviceId(0),
                &MemoryKind::unset(),
                version(),
            )
            .unwrap(),
        );
        let even = ConcreteEvenSharding::new(
            DeviceList::from([1, 0]),
            kind,
            shape(&[8]),
            shape(&[4]),
            false,
        )
        .unwrap();
        let plan = RemapPlan::new(
            [ArraySpec::new(DType::F64, shape(&[8]), tiled(&[2]))],
            [ArraySpec::new(DType::F64, shape(&[8]), even)],
        );
        let interval = |at| Interval::new(at, at + 1, 1);
        let plan = plan
            .with_mapping(0, 0, &[interval(0), interval(1)], &[interval(1), interval(0)])
            .unwrap();
        let semantics = ArrayCopySemantics::ReuseInput;
        let request = remap_arrays(&plan, vec![144], semantics, vec![146], version()).unwrap();
        assert_request("remap_arrays_request", Request::RemapArraysRequest(request));
    }
}
