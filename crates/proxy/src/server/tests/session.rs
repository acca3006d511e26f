//! Tests of sessions without a network: status codes, order, poisoning.

use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use serdes::{
    codec::{DeserializeOptions, FromProto as _, StatusCode, ToProto as _},
    ifrt::{
        ArrayCopySemantics, ArraySpec, AttributeMap, DType, DeviceId, DeviceList, HloSharding,
        MemoryKind, Shape, Sharding,
        xla::{OpSharding, TileAssignment},
    },
    proto::{
        tensorflow::StatusProto,
        xla::ifrt::{
            AttributeMapProto,
            attribute_map_proto::value::Value,
            proxy::{
                BitcastArraysRequest, CheckFutureRequest, CheckValueReadyRequest, CompileRequest,
                CopyToHostBufferRequest, DeleteArrayRequest, DestructArrayRequest, IfrtRequest,
                InitRequest, IsArrayDeletedRequest, LoadedExecutableExecuteRequest,
                MakeArrayFromHostBufferRequest, MakeErrorArraysRequest, ReshardArraysRequest,
                ifrt_request::Request, ifrt_response::Response,
            },
        },
    },
    version::{SerDesAnyVersionAccessor, SerDesVersion, VersionRange},
};
use serdes_device_state::Versions;
use serdes_stream_executor::{LayoutChoice, Plugin};

use crate::{
    Ranges, requests,
    server::{Limits, LocalSession, Server},
};

pub(crate) fn server(devices: usize) -> Server {
    let plugin = Plugin::open(&format!("host:devices={devices}"), LayoutChoice::Detect).unwrap();
    let limits = Limits {
        host_buffer_timeout: Duration::from_millis(300),
        session_host_bytes: 1 << 20,
        session_array_bytes: 1 << 22,
        ..Limits::default()
    };
    Server::builder(&plugin).limits(limits).build().unwrap()
}

/// A session that counts its requests.
pub(crate) struct Client {
    pub(crate) session: LocalSession,
    op: u64,
    answered: i64,
}

impl Client {
    fn new(server: &Server) -> Self {
        Self::with_ranges(server, Ranges::supported())
    }

    pub(crate) fn with_ranges(server: &Server, ranges: Ranges) -> Self {
        Self::of(server.local_session(ranges).unwrap())
    }

    pub(crate) fn of(session: LocalSession) -> Self {
        Self { session, op: 0, answered: 0 }
    }

    pub(crate) async fn ask(&mut self, request: Request) -> Result<Response, StatusCode> {
        self.op += 1;
        let answer = self.session.request(requests::numbered(self.op, 0, request)).await;
        let metadata = answer.response_metadata.unwrap();
        assert_eq!(metadata.op_id, self.op);
        match metadata.status {
            Some(StatusProto { code, message, .. }) => {
                assert!(!message.is_empty() && answer.response.is_none());
                assert_eq!(metadata.seq_num, 0);
                Err(StatusCode::from_number(code).unwrap())
            }
            None => {
                assert_eq!(metadata.seq_num, self.answered);
                self.answered += 1;
                Ok(answer.response.unwrap())
            }
        }
    }

    pub(crate) async fn make(
        &mut self,
        handle: u64,
        dtype: DType,
        dims: &[i64],
        sharding: &Sharding,
    ) -> Result<Response, StatusCode> {
        let shape = Shape::new(dims).unwrap();
        let strides = requests::row_major_strides(dtype, &shape);
        let request = requests::make_array(
            dtype,
            &shape,
            sharding,
            strides,
            handle,
            SerDesVersion::current(),
        )
        .unwrap();
        self.ask(Request::MakeArrayFromHostBufferRequest(request)).await
    }

    /// Creates an array from that host buffer; returns its handle, which the server chooses.
    pub(crate) async fn make_somewhere(
        &mut self,
        host_buffer: u64,
        dtype: DType,
        dims: &[i64],
        sharding: &Sharding,
    ) -> Result<u64, StatusCode> {
        let shape = Shape::new(dims).unwrap();
        let strides = requests::row_major_strides(dtype, &shape);
        let version = SerDesVersion::current();
        let request =
            requests::make_array(dtype, &shape, sharding, strides, host_buffer, version).unwrap();
        let request = MakeArrayFromHostBufferRequest { array_handle: None, ..request };
        match self.ask(Request::MakeArrayFromHostBufferRequest(request)).await? {
            Response::MakeArrayFromHostBufferResponse(answer) => Ok(answer.array_handle),
            _ => panic!("another answer"),
        }
    }

    pub(crate) async fn put(
        &mut self,
        handle: u64,
        bytes: &[u8],
        sharding: &Sharding,
    ) -> Result<Response, StatusCode> {
        self.session
            .store(handle, Bytes::copy_from_slice(bytes))
            .await
            .map_err(|status| status.code())?;
        self.make(handle, DType::U8, &[bytes.len() as i64], sharding).await
    }

    pub(crate) async fn get(
        &mut self,
        array_handle: u64,
        host_buffer_handle: u64,
    ) -> Result<Bytes, StatusCode> {
        let request =
            CopyToHostBufferRequest { array_handle, host_buffer_handle, byte_strides: None };
        self.ask(Request::CopyToHostBufferRequest(request)).await?;
        let bytes = self.session.look_up(host_buffer_handle).await.unwrap();
        self.session.delete(host_buffer_handle).unwrap();
        Ok(bytes)
    }

    pub(crate) async fn delete(&mut self, handle: u64) -> Result<(), StatusCode> {
        let request = DeleteArrayRequest { array_handle: vec![handle] };
        let Response::DeleteArrayResponse(answer) =
            self.ask(Request::DeleteArrayRequest(request)).await?
        else {
            panic!("another answer")
        };
        let future_handle = answer.deletion_future_handle;
        assert!(future_handle >= 1 << 63);
        let outcome =
            self.ask(Request::CheckFutureRequest(CheckFutureRequest { future_handle })).await;
        let again =
            self.ask(Request::CheckFutureRequest(CheckFutureRequest { future_handle })).await;
        assert_eq!(again, Err(StatusCode::NotFound));
        outcome.map(drop)
    }

    pub(crate) async fn destruct(&mut self, handle: u64) -> Result<(), StatusCode> {
        let request = DestructArrayRequest { array_handle: vec![handle] };
        self.ask(Request::DestructArrayRequest(request)).await.map(drop)
    }
}

pub(crate) fn on(devices: &[i32]) -> Sharding {
    let devices = DeviceList::new(devices.iter().copied().map(DeviceId));
    HloSharding::replicated(devices, MemoryKind::new("device")).unwrap().into()
}

pub(crate) fn tiled(dims: &[i64]) -> Sharding {
    let tiles = OpSharding::tiled(TileAssignment::iota(dims, [2], [0]).unwrap());
    HloSharding::new(DeviceList::from([0, 1]), MemoryKind::new("device"), tiles).unwrap().into()
}

#[tokio::test]
async fn unknown_handle_is_not_found() {
    let mut client = Client::new(&server(2));
    assert_eq!(client.get(7, 8).await, Err(StatusCode::NotFound));
    assert_eq!(client.destruct(7).await, Err(StatusCode::NotFound));
    assert_eq!(client.delete(7).await, Err(StatusCode::NotFound));
    assert_eq!(client.put(1, b"abc", &on(&[9])).await, Err(StatusCode::NotFound));
    assert_eq!(client.session.look_up(1).await.unwrap_err().code(), StatusCode::NotFound);
    assert_eq!(client.session.delete(1).unwrap_err().code(), StatusCode::NotFound);
    let request = CheckFutureRequest { future_handle: 5 };
    assert_eq!(client.ask(Request::CheckFutureRequest(request)).await, Err(StatusCode::NotFound));
}

#[tokio::test]
async fn an_array_lives_until_it_is_destructed_once() {
    let mut client = Client::new(&server(2));
    client.put(1, b"abc", &on(&[1])).await.unwrap();
    assert_eq!(&client.get(1, 2).await.unwrap()[..], b"abc");
    client.delete(1).await.unwrap();
    let request = IsArrayDeletedRequest { array_handle: 1 };
    let Ok(Response::IsArrayDeletedResponse(answer)) =
        client.ask(Request::IsArrayDeletedRequest(request)).await
    else {
        panic!("another answer")
    };
    assert!(answer.deleted);
    assert_eq!(client.get(1, 3).await, Err(StatusCode::InvalidArgument));
    client.destruct(1).await.unwrap();
    assert_eq!(client.destruct(1).await, Err(StatusCode::NotFound));
}

#[tokio::test]
async fn a_buffer_of_another_size_poisons_the_array() {
    let mut client = Client::new(&server(1));
    client.session.store(1, Bytes::from_static(b"12345")).await.unwrap();
    assert_eq!(client.make(1, DType::F32, &[1], &on(&[0])).await, Err(StatusCode::InvalidArgument));
    let ready = CheckValueReadyRequest { value_handles: vec![1] };
    assert_eq!(
        client.ask(Request::CheckValueReadyRequest(ready)).await,
        Err(StatusCode::InvalidArgument)
    );
    let shard = requests::fully_replicated_shard(1, 2);
    let shard = client.ask(Request::FullyReplicatedShardRequest(shard)).await;
    assert_eq!(shard, Err(StatusCode::InvalidArgument));
    assert_eq!(client.get(2, 3).await, Err(StatusCode::InvalidArgument));
    client.destruct(1).await.unwrap();
    client.destruct(2).await.unwrap();
}

#[tokio::test]
async fn a_buffer_that_never_comes_is_not_waited_for_for_ever() {
    let mut client = Client::new(&server(1));
    assert_eq!(client.make(1, DType::U8, &[4], &on(&[0])).await, Err(StatusCode::DeadlineExceeded));
    client.destruct(1).await.unwrap();
}

#[tokio::test]
async fn limits_are_answered_and_not_exceeded() {
    let server = server(1);
    let mut client = Client::new(&server);
    let stored = client.session.store(1, vec![0; (1 << 20) + 1].into()).await;
    assert_eq!(stored.unwrap_err().code(), StatusCode::ResourceExhausted);
    for handle in 2..6 {
        client.put(handle, &vec![1; 1 << 20], &on(&[0])).await.unwrap();
    }
    assert_eq!(
        client.put(6, &vec![1; 1 << 20], &on(&[0])).await,
        Err(StatusCode::ResourceExhausted)
    );
    client.destruct(2).await.unwrap();
    client.put(7, &vec![1; 1 << 20], &on(&[0])).await.unwrap();
    assert_eq!(client.session.store(8, Bytes::from_static(b"x")).await, Ok(()));
    let again = client.session.store(8, Bytes::from_static(b"x")).await;
    assert_eq!(again.unwrap_err().code(), StatusCode::AlreadyExists);
    assert!(server.metrics().shard_bytes >= 4 << 20);
    drop(client);
    let left = server.metrics();
    let held = [
        left.sessions,
        left.arrays,
        left.shards,
        left.shard_bytes,
        left.host_buffers,
        left.host_buffer_bytes,
        left.tasks,
    ];
    assert_eq!(held, [0; 7]);
}

#[tokio::test]
async fn programs_are_not_served_and_the_session_lives_on() {
    let mut client = Client::new(&server(1));
    let compiled = client.ask(Request::CompileRequest(CompileRequest::default())).await;
    assert_eq!(compiled, Err(StatusCode::Unimplemented));
    let execute = LoadedExecutableExecuteRequest {
        result_array_handle: vec![4],
        result_status_handle: 5,
        ..Default::default()
    };
    let executed = client.ask(Request::LoadedExecutableExecuteRequest(execute)).await;
    assert_eq!(executed, Err(StatusCode::Unimplemented));
    assert_eq!(client.get(4, 6).await, Err(StatusCode::Unimplemented));
    client.destruct(4).await.unwrap();
    let request = CheckFutureRequest { future_handle: 5 };
    assert_eq!(
        client.ask(Request::CheckFutureRequest(request)).await,
        Err(StatusCode::Unimplemented)
    );
    let empty = client.session.request(IfrtRequest::default()).await;
    let status = empty.response_metadata.unwrap().status.unwrap();
    assert_eq!(status.code, StatusCode::Unimplemented.number());
    client.put(7, b"on", &on(&[0])).await.unwrap();
    assert_eq!(&client.get(7, 8).await.unwrap()[..], b"on");
}

#[tokio::test]
async fn the_first_answer_names_all_devices_and_memories() {
    let mut client = Client::new(&server(3));
    let Ok(Response::InitResponse(init)) = client.ask(Request::InitRequest(InitRequest {})).await
    else {
        panic!("another answer")
    };
    assert_eq!(init.primary_device_ids, [0, 1, 2]);
    for device in &init.all_devices {
        assert_eq!(device.device_kind, "cpu");
        for id in device.memory_ids.iter().chain(&device.default_memory_id) {
            assert!(
                init.memories
                    .iter()
                    .any(|memory| memory.id == *id && memory.device_ids == [device.id])
            );
        }
    }
}

#[tokio::test]
async fn shards_are_cut_copied_put_together_and_cut_anew() {
    let mut client = Client::new(&server(2));
    let bytes: Vec<u8> = (0..24).collect();
    client.session.store(1, bytes.clone().into()).await.unwrap();
    client.make(1, DType::U8, &[4, 6], &tiled(&[1, 2])).await.unwrap();
    assert_eq!(&client.get(1, 90).await.unwrap()[..], &bytes[..]);
    let request = requests::disassemble(1, vec![2, 3]);
    client.ask(Request::DisassembleIntoSingleDeviceArraysRequest(request)).await.unwrap();
    let left: Vec<u8> = (0..24).filter(|at| at % 6 < 3).collect();
    assert_eq!(&client.get(2, 91).await.unwrap()[..], &left[..]);
    let spec = ArraySpec::new(DType::U8, Shape::new([8, 3]).unwrap(), tiled(&[2, 1]));
    let request = requests::assemble(&spec, vec![2, 3], 4, SerDesVersion::current()).unwrap();
    client.ask(Request::AssembleArrayFromSingleDeviceArraysRequest(request)).await.unwrap();
    let right = (0..24).filter(|at| at % 6 >= 3);
    let both: Vec<u8> = left.iter().copied().chain(right).collect();
    assert_eq!(&client.get(4, 92).await.unwrap()[..], &both[..]);
    // The same array, by rows instead of by columns, and on one device.
    for (handle, sharding) in [(5, tiled(&[2, 1])), (6, on(&[1])), (7, on(&[0, 1]))] {
        let spec = ArraySpec::new(DType::U8, Shape::new([4, 6]).unwrap(), sharding);
        let request = ReshardArraysRequest {
            array_handles: vec![1],
            array_specs: vec![spec.to_proto(SerDesVersion::current()).unwrap()],
            copy_semantics: ArrayCopySemantics::ReuseInput.number(),
            result_handles: vec![handle],
        };
        client.ask(Request::ReshardArraysRequest(request)).await.unwrap();
        assert_eq!(&client.get(handle, 93).await.unwrap()[..], &bytes[..]);
    }
    let spec = ArraySpec::new(DType::U16, Shape::new([12]).unwrap(), on(&[1]));
    let request = BitcastArraysRequest {
        array_handles: vec![6],
        array_specs: vec![spec.to_proto(SerDesVersion::current()).unwrap()],
        copy_semantics: ArrayCopySemantics::DonateInput.number(),
        result_handles: vec![8],
    };
    client.ask(Request::BitcastArraysRequest(request)).await.unwrap();
    assert_eq!(&client.get(8, 94).await.unwrap()[..], &bytes[..]);
    assert_eq!(client.get(6, 95).await, Err(StatusCode::InvalidArgument));
}

/// Returns a nested message of the real systems.
fn vector(name: &str) -> Vec<u8> {
    let directory =
        std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/data/ifrt/golden");
    std::fs::read(directory.join(name)).unwrap()
}

#[tokio::test]
async fn values_in_our_answers_are_the_vectors() {
    let directory = tempfile::tempdir().unwrap();
    let plugin = Plugin::open("host:devices=2", LayoutChoice::Detect).unwrap();
    let open = || {
        Server::builder(&plugin)
            .state(directory.path().join("state.sds"))
            .state_versions(Versions::current())
            .build()
            .unwrap()
    };
    let before = open();
    let mut client = Client::new(&before);
    client.session.store(1, vec![3; 64].into()).await.unwrap();
    client.make(1, DType::F32, &[4, 4], &tiled(&[2, 1])).await.unwrap();
    assert_eq!(before.save().await.unwrap(), 1);
    drop((client, before));

    let after = open();
    let ranges = Ranges::supported().with_serdes(VersionRange::new(0, 3).unwrap());
    let mut client = Client::with_ranges(&after, ranges);
    let Ok(Response::InitResponse(init)) = client.ask(Request::InitRequest(InitRequest {})).await
    else {
        panic!("another answer")
    };
    let attributes = init.client_attributes.unwrap().attributes;
    let mut specs = attributes.into_iter();
    let spec = specs.find(|entry| entry.key == "serdes.state.spec.session-1/1");
    let spec = spec.and_then(|entry| entry.value).unwrap().value;
    let expected =
        vector("serdes3.F32_4x4_HloSharding_dev0_1_t2x1_device.xla.ifrt.ArraySpecProto.binpb");
    assert_eq!(spec, Some(Value::StringValue(expected.into())));

    let version = SerDesAnyVersionAccessor::get(3).unwrap();
    let bytes = vector("serdes3.three_kinds.xla.ifrt.AttributeMapProto.binpb");
    let mut proto = AttributeMapProto::decode(&bytes[..]).unwrap();
    let map = AttributeMap::from_proto(&proto, &DeserializeOptions::new()).unwrap();
    let init = after.registry.context.devices.describe(1, version, &map).unwrap();
    // The real writer uses the order of a hash, ours the order of the keys.
    proto.attributes.sort_by(|a, b| a.key.cmp(&b.key));
    assert_eq!(init.client_attributes, Some(proto));
}

#[tokio::test]
async fn error_arrays_are_errors() {
    let mut client = Client::new(&server(1));
    let spec = ArraySpec::new(DType::F32, Shape::new([2]).unwrap(), on(&[0]));
    let request = MakeErrorArraysRequest {
        error: Some(StatusProto {
            code: StatusCode::Aborted.number(),
            message: "gone".into(),
            ..Default::default()
        }),
        array_specs: vec![spec.to_proto(SerDesVersion::current()).unwrap()],
        array_handles: vec![1],
    };
    client.ask(Request::MakeErrorArraysRequest(request)).await.unwrap();
    assert_eq!(client.get(1, 2).await, Err(StatusCode::Aborted));
    client.delete(1).await.unwrap();
    client.destruct(1).await.unwrap();
}
