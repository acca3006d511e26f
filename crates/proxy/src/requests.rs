//! Requests of our client, with the same contents as those of the real clients.

use serdes::{
    codec::{EncodeError, ToProto},
    ifrt::{
        ArrayCopySemantics, ArraySpec, AttributeMap, DType, DeviceId, MemoryKind, RemapPlan, Shape,
        Sharding,
    },
    proto::xla::ifrt::{
        proto::{ByteStrides, SingleDeviceShardSemantics},
        proxy::{
            AssembleArrayFromSingleDeviceArraysRequest, CheckFutureRequest, CheckValueReadyRequest,
            CopyArraysRequest, CopyToHostBufferRequest, DeleteArrayRequest, DestructArrayRequest,
            DisassembleIntoSingleDeviceArraysRequest, FullyReplicatedShardRequest,
            GetDefaultLayoutRequest, GrpcHostBufferDeleteRequest, GrpcHostBufferLookupRequest,
            GrpcHostBufferStoreMetadata, GrpcIfrtSessionMetadata, IfrtRequest,
            MakeArrayFromHostBufferRequest, MakeArraysFromHostBufferShardsRequest,
            RemapArraysRequest, RequestMetadata,
            ifrt_request::Request,
            make_arrays_from_host_buffer_shards_request::{
                HostBuffer, MakeArraysFromHostBufferShardsSpec, ShardIndices,
            },
        },
    },
    version::SerDesVersion,
};

use crate::{Agreement, handshake};

/// Returns the metadata of a session.
pub(super) fn session_metadata(
    agreement: Agreement,
    initialization_data: &AttributeMap,
) -> Result<GrpcIfrtSessionMetadata, EncodeError> {
    Ok(GrpcIfrtSessionMetadata {
        version: Some(handshake::to_proto(agreement)),
        initialization_data: Some(initialization_data.to_proto(agreement.serdes())?),
    })
}

/// Returns the metadata of a store of `bytes` bytes.
pub(super) fn store_metadata(
    session_id: u64,
    handle: u64,
    bytes: usize,
) -> GrpcHostBufferStoreMetadata {
    let buffer_size = i64::try_from(bytes).unwrap_or(i64::MAX);
    GrpcHostBufferStoreMetadata { session_id, handle, buffer_size }
}

pub(super) fn look_up(session_id: u64, handle: u64) -> GrpcHostBufferLookupRequest {
    GrpcHostBufferLookupRequest { session_id, handle }
}

pub(super) fn delete_host_buffer(session_id: u64, handle: u64) -> GrpcHostBufferDeleteRequest {
    GrpcHostBufferDeleteRequest { session_id, handle }
}

pub(super) fn copy_to_host_buffer(
    array_handle: u64,
    host_buffer_handle: u64,
) -> CopyToHostBufferRequest {
    CopyToHostBufferRequest { host_buffer_handle, array_handle, byte_strides: None }
}

pub(super) fn check_value_ready(array_handle: u64) -> CheckValueReadyRequest {
    CheckValueReadyRequest { value_handles: vec![array_handle] }
}

pub(super) fn check_future(future_handle: u64) -> CheckFutureRequest {
    CheckFutureRequest { future_handle }
}

pub(super) fn delete(array_handles: Vec<u64>) -> DeleteArrayRequest {
    DeleteArrayRequest { array_handle: array_handles }
}

pub(super) fn destruct(array_handles: Vec<u64>) -> DestructArrayRequest {
    DestructArrayRequest { array_handle: array_handles }
}

/// Numbers a request. Requests made by threads of the user's program carry a number of the client,
/// others do not.
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

/// Returns the byte strides of row-major elements: 0 for each dimension of an empty array, like the
/// real clients. Strings have none.
pub(super) fn row_major_strides(dtype: DType, shape: &Shape) -> Option<ByteStrides> {
    let item = i64::from(dtype.unpacked_byte_size()?);
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

/// Returns the request for an array with a row-major host buffer for each shard.
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
    // There are at most as many shards as devices, whose ids have 32 bits.
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
    use std::{cell::RefCell, collections::BTreeSet, fs, path::Path};

    use prost::Message;

    use super::*;
    use crate::Ranges;
    use serdes::{
        ifrt::{
            ConcreteEvenSharding, DeviceList, HloSharding, Interval,
            xla::{OpSharding, TileAssignment},
        },
        proto::xla::ifrt::proxy::{GrpcHostBufferStoreRequest, InitRequest},
        version::{SerDesAnyVersionAccessor, VersionRange},
    };

    thread_local! {
        /// The captured messages that this test has compared.
        static COMPARED: RefCell<BTreeSet<String>> = RefCell::default();
    }

    fn directory() -> std::path::PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/ifrt/golden")
    }

    /// Returns a request that a real client of jaxlib 0.10.2 sent.
    fn captured(name: &str) -> Vec<u8> {
        COMPARED.with_borrow_mut(|compared| compared.insert(name.to_owned()));
        fs::read(directory().join(name)).unwrap()
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

    /// Compares a request with a captured one, whose random number it takes over.
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

    fn ranges(serdes: i32) -> Ranges {
        Ranges::supported().with_serdes(VersionRange::new(0, serdes).unwrap())
    }

    fn calls_are_the_captured_ones() {
        assert_body("client", handshake::to_request(ranges(3)));
        assert_body("client", store_metadata(1, 1, 24));
        assert_body("client", look_up(1, 3));
        assert_body("client", delete_host_buffer(1, 3));
        let elements = [0_f32, 1.0, 2.0, 3.0, 4.0, 5.0];
        let bytes: Vec<u8> = elements.into_iter().flat_map(f32::to_le_bytes).collect();
        assert_body("client", GrpcHostBufferStoreRequest { data: bytes.into() });
        let one = AttributeMap::from_iter([("k", "v".into())]);
        let three = AttributeMap::from_iter([
            ("bool_value", true.into()),
            ("int_value", (-5_i64).into()),
            ("bytes_value", vec![0_u8, 255, 118].into()),
        ]);
        for (name, serdes, map) in [
            ("serdes0.client", 0, one.clone()),
            ("serdes3.client", 3, one),
            ("serdes3.three_kinds", 3, three),
        ] {
            let agreement = crate::Handshake::answer(ranges(serdes), Ranges::supported()).unwrap();
            let ours = session_metadata(agreement, &map).unwrap();
            let name = format!("{name}.xla.ifrt.proxy.GrpcIfrtSessionMetadata.binpb");
            let bytes = captured(&name);
            let mut theirs = GrpcIfrtSessionMetadata::decode(&bytes[..]).unwrap();
            // The real client's maps have no order.
            let entries = &mut theirs.initialization_data.as_mut().unwrap().attributes;
            entries.sort_by(|left, right| left.key.cmp(&right.key));
            assert_eq!(ours, theirs, "{name}");
            assert_eq!(ours.encoded_len(), bytes.len(), "{name}");
        }
    }

    fn puts_are_the_captured_ones() {
        let name = "serdes0.init_request.xla.ifrt.proxy.IfrtRequest.binpb";
        let init = numbered(1, 9, Request::InitRequest(InitRequest {}));
        assert_eq!(init.encode_to_vec(), captured(name));
        assert_request("init_request", Request::InitRequest(InitRequest {}));
        assert_body("init_request", InitRequest {});
        assert_request("make_array_F32_2x3", put(DType::F32, &[2, 3], 1));
        let Request::MakeArrayFromHostBufferRequest(body) = put(DType::F32, &[2, 3], 1) else {
            panic!("another request")
        };
        assert_body("make_array_from_host_buffer_request", body);
        assert_request("make_array_F32_scalar", put(DType::F32, &[], 4));
        assert_request("make_array_F32_0x3", put(DType::F32, &[0, 3], 7));
        assert_request("make_array_F4E2M1FN_2", put(DType::F4E2M1FN, &[2], 73));
        assert_request("make_array_STRING_3", put(DType::String, &[3], 106));
        let request = copy_to_host_buffer(2, 3);
        assert_body("copy_to_host_buffer_request", request.clone());
        assert_request("copy_to_host_buffer_request", Request::CopyToHostBufferRequest(request));
        let spec = ArraySpec::new(DType::F32, shape(&[4, 4]), tiled(&[2, 1]));
        let shards = [(shape(&[2, 4]), 116), (shape(&[2, 4]), 117)];
        let request = make_array_of_shards(&spec, &shards, 116, version()).unwrap();
        assert_body("make_arrays_from_host_buffer_shards_request", request.clone());
        assert_request("make_arrays_0", Request::MakeArraysFromHostBufferShardsRequest(request));
    }

    fn uses_are_the_captured_ones() {
        assert_body("check_value_ready_request", check_value_ready(109));
        assert_body("check_future_request", check_future(1 << 63));
        assert_body("delete_array_request", delete(vec![110]));
        assert_body("destruct_array_request", destruct(vec![1, 2]));
        let layout = default_layout(
            DType::F32,
            &shape(&[2, 3]),
            DeviceId(0),
            &MemoryKind::unset(),
            version(),
        );
        assert_body("get_default_layout_request", layout.unwrap());
    }

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
        assert_body("remap_arrays_request", request.clone());
        assert_request("remap_arrays_request", Request::RemapArraysRequest(request));
    }

    #[test]
    fn our_requests_are_the_captured_ones_and_none_is_left_out() {
        calls_are_the_captured_ones();
        puts_are_the_captured_ones();
        uses_are_the_captured_ones();
        rearrangements_are_the_captured_ones();
        let names = fs::read_dir(directory()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let left: Vec<String> = names
            .filter(|name| name.contains(".xla.ifrt.proxy."))
            // Our client has no compiler.
            .filter(|name| !name.contains(".CompileRequest."))
            .filter(|name| COMPARED.with_borrow(|compared| !compared.contains(name)))
            .collect();
        assert_eq!(left, Vec::<String>::new());
    }
}
