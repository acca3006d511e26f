//! Tests of a proxy client's programs on the devices of a plug-in: every request, and the failures
//! that the client sees.

use bytes::Bytes;
use serdes::{
    codec::{StatusCode, ToProto as _},
    ifrt::{
        DType, DeviceList, HloSharding, HostCallbackArgument, MemoryKind, Shape, Sharding,
        XlaHostCallback,
        xla::{self, OpSharding, TileAssignment},
    },
    proto::{
        tensorflow::StatusProto,
        xla::ifrt::{
            ExecuteOptionsProto, Serialized,
            proxy::{
                CheckFutureRequest, CheckValueReadyRequest, CompileRequest, CompileResponse,
                CopyToHostBufferRequest, GetDefaultDeviceAssignmentRequest, IfrtRequest,
                InitRequest, IsArrayDeletedRequest, LoadedExecutableCostAnalysisRequest,
                LoadedExecutableDeleteRequest, LoadedExecutableDestructRequest,
                LoadedExecutableExecuteRequest, LoadedExecutableExecuteResponse,
                LoadedExecutableFetchExecuteResultRequest, LoadedExecutableIsDeletedRequest,
                LoadedExecutableMetadataRequest, MakeArrayFromHostBufferRequest, RequestMetadata,
                ifrt_request::Request, ifrt_response::Response,
            },
        },
    },
    version::SerDesVersion,
};
use serdes_pjrt::Client;
use serdes_proxy::{Limits, LocalSession, Ranges, Server};

use super::plugins::Library;

type Answer = Result<Response, (StatusCode, String)>;

/// A server over a test plug-in, and a client of it. The plug-in has the devices 7 and 8.
pub(super) struct Served {
    server: Server,
    session: LocalSession,
    host_buffers: u64,
}

impl Served {
    fn new(library: &Library, limits: Limits) -> Self {
        let client: Client = library.load().unwrap().create_client(&[]).unwrap();
        Self::of(Server::builder(&client).limits(limits).build().unwrap())
    }

    /// Connects another client to that server.
    pub(super) fn of(server: Server) -> Self {
        let session = server.local_session(Ranges::supported()).unwrap();
        Self { server, session, host_buffers: 1000 }
    }

    async fn ask(&mut self, request: Request) -> Answer {
        let request_metadata = Some(RequestMetadata { op_id: 1, ..Default::default() });
        let request = IfrtRequest { request_metadata, request: Some(request) };
        let answer = self.session.request(request).await;
        match answer.response_metadata.unwrap().status {
            Some(StatusProto { code, message, .. }) => {
                Err((StatusCode::from_number(code).unwrap(), message))
            }
            None => Ok(answer.response.unwrap()),
        }
    }

    /// Puts eight bytes over both devices.
    pub(super) async fn put(&mut self, handle: u64, bytes: [u8; 8]) {
        self.session.store(handle, Bytes::copy_from_slice(&bytes)).await.unwrap();
        let version = SerDesVersion::current();
        let request = MakeArrayFromHostBufferRequest {
            dtype: Some(DType::U8.to_proto(version).unwrap()),
            shape: Some(Shape::new([8]).unwrap().to_proto(version).unwrap()),
            sharding: Some(over_both().to_proto(version).unwrap()),
            host_buffer_handle: handle,
            array_handle: Some(handle),
            ..Default::default()
        };
        self.ask(Request::MakeArrayFromHostBufferRequest(request)).await.unwrap();
    }

    pub(super) async fn get(&mut self, array_handle: u64) -> Result<Bytes, (StatusCode, String)> {
        self.host_buffers += 1;
        let host_buffer_handle = self.host_buffers;
        let request =
            CopyToHostBufferRequest { array_handle, host_buffer_handle, byte_strides: None };
        self.ask(Request::CopyToHostBufferRequest(request)).await?;
        Ok(self.session.look_up(host_buffer_handle).await.unwrap())
    }

    pub(super) async fn compile(
        &mut self,
        code: &str,
    ) -> Result<CompileResponse, (StatusCode, String)> {
        let request = compile_request(code);
        match self.ask(Request::CompileRequest(request)).await? {
            Response::CompileResponse(answer) => Ok(answer),
            other => panic!("another answer: {other:?}"),
        }
    }

    pub(super) async fn execute(
        &mut self,
        request: LoadedExecutableExecuteRequest,
    ) -> Result<LoadedExecutableExecuteResponse, (StatusCode, String)> {
        match self.ask(Request::LoadedExecutableExecuteRequest(request)).await? {
            Response::LoadedExecutableExecuteResponse(answer) => Ok(answer),
            other => panic!("another answer: {other:?}"),
        }
    }

    async fn is_deleted(&mut self, array_handle: u64) -> bool {
        let request = IsArrayDeletedRequest { array_handle };
        match self.ask(Request::IsArrayDeletedRequest(request)).await.unwrap() {
            Response::IsArrayDeletedResponse(answer) => answer.deleted,
            other => panic!("another answer: {other:?}"),
        }
    }

    async fn check(&mut self, future_handle: u64) -> Result<(), (StatusCode, String)> {
        let request = CheckFutureRequest { future_handle };
        self.ask(Request::CheckFutureRequest(request)).await.map(drop)
    }
}

fn over_both() -> Sharding {
    let tiles = OpSharding::tiled(TileAssignment::iota([2], [2], [0]).unwrap());
    HloSharding::new(DeviceList::from([7, 8]), MemoryKind::new("device"), tiles).unwrap().into()
}

/// One replica of two partitions.
fn compile_request(code: &str) -> CompileRequest {
    let value = |type_name: &str, data: Vec<u8>| {
        Some(Serialized { type_name: format!("xla::ifrt::{type_name}"), data: data.into() })
    };
    let options = [0x0a, 6, 0x1a, 4, 0x20, 1, 0x28, 2];
    CompileRequest {
        program: value("XlaProgram", code.as_bytes().to_vec()),
        compile_options: value("XlaCompileOptions", options.to_vec()),
        host_callbacks: Vec::new(),
    }
}

pub(super) fn run(
    handle: u64,
    arguments: &[u64],
    results: &[u64],
) -> LoadedExecutableExecuteRequest {
    LoadedExecutableExecuteRequest {
        loaded_executable_handle: handle,
        args_handles: arguments.to_vec(),
        result_array_handle: results.to_vec(),
        ..Default::default()
    }
}

pub(super) const BYTES: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];
pub(super) const AFTER: [u8; 8] = [2, 3, 4, 5, 6, 7, 8, 9];

#[tokio::test]
async fn a_program_of_a_client_runs_on_the_devices_that_it_names() {
    // With events, and without them, which uses another function.
    for switches in [&["MODULE"][..], &["MODULE", "NULL_COMPLETE"]] {
        let library = Library::new(106, switches);
        let mut served = Served::new(&library, Limits::default());
        let compiled = served.compile("outputs 2 donates 0").await.unwrap();
        assert_eq!((compiled.num_devices, &compiled.device_ids[..]), (2, &[7, 8][..]));
        assert_eq!(compiled.addressable_device_ids, [7, 8]);
        served.check(compiled.ready_future_handle.unwrap()).await.unwrap();
        let handle = compiled.loaded_executable_handle;
        served.put(1, BYTES).await;
        let answer = served.execute(run(handle, &[1], &[])).await.unwrap();
        assert_eq!((answer.status_handle, answer.outputs.len()), (0, 2));
        for output in &answer.outputs {
            assert_eq!(output.shape.as_ref().unwrap().dims, [8]);
            assert_eq!(served.get(output.array_handle).await.unwrap()[..], AFTER);
        }
        // The donated argument is deleted; the argument that must not be donated is not.
        assert!(served.is_deleted(1).await);
        served.put(2, BYTES).await;
        let options =
            ExecuteOptionsProto { non_donatable_input_indices: vec![0], ..Default::default() };
        let request = LoadedExecutableExecuteRequest {
            execute_options: Some(options),
            ..run(handle, &[2], &[3, 4])
        };
        assert!(served.execute(request).await.unwrap().outputs.is_empty());
        assert!(!served.is_deleted(2).await);
        assert_eq!(served.get(2).await.unwrap()[..], BYTES);
        // The result of a run is an argument of the next one before it is ready.
        served.execute(run(handle, &[3], &[5, 6])).await.unwrap();
        assert_eq!(served.get(6).await.unwrap()[..], AFTER.map(|byte| byte + 1));
        assert!(served.is_deleted(3).await);
        let metrics = served.server.metrics();
        assert_eq!((metrics.programs, metrics.programs_compiled, metrics.executions), (1, 1, 0));
        assert_eq!(metrics.executions_begun, 3);
        drop(served);
        assert!(library.is_empty_soon());
    }
}

#[tokio::test]
async fn a_client_is_told_what_a_program_is() {
    let library = Library::new(106, &["MODULE"]);
    let mut served = Served::new(&library, Limits::default());
    let loaded_executable_handle =
        served.compile("outputs 2 donates 0").await.unwrap().loaded_executable_handle;
    let request = LoadedExecutableMetadataRequest { loaded_executable_handle };
    let answer = served.ask(Request::LoadedExecutableMetadataRequest(request)).await;
    let Ok(Response::LoadedExecutableMetadataResponse(metadata)) = answer else {
        panic!("{answer:?}")
    };
    assert_eq!(metadata.output_shardings.unwrap().shardings.len(), 2);
    assert!(metadata.parameter_shardings.is_none());
    let kinds = metadata.output_memory_kinds.unwrap().memory_kind_lists;
    assert_eq!(kinds[0].memory_kinds, ["device", "device"]);
    let text = format!("{:?}", metadata.donated_input_indices_oneof);
    assert!(text.contains("donated_input_indices: [0]"), "{text}");
    let text = format!("{:?}", metadata.output_layouts);
    assert_eq!(text.matches("minor_to_major: [0]").count(), 2, "{text}");
    let request = LoadedExecutableCostAnalysisRequest { loaded_executable_handle };
    let answer = served.ask(Request::LoadedExecutableCostAnalysisRequest(request)).await.unwrap();
    assert!(format!("{answer:?}").contains("flops"), "{answer:?}");
    let request = GetDefaultDeviceAssignmentRequest { num_replicas: 1, num_partitions: 2 };
    served.ask(Request::GetDefaultDeviceAssignmentRequest(request)).await.unwrap();
}

#[tokio::test]
async fn a_platform_is_called_as_its_server_was_told() {
    let library = Library::new(106, &["MODULE"]);
    let client = library.load().unwrap().create_client(&[]).unwrap();
    for (name, expected) in [(None, client.platform_name()), (Some("tpu"), "tpu")] {
        let mut builder = Server::builder(&client);
        if let Some(name) = name {
            builder = builder.platform_name(name);
        }
        let server = builder.build().unwrap();
        let session = server.local_session(Ranges::supported()).unwrap();
        let mut served = Served { server, session, host_buffers: 0 };
        let answer = served.ask(Request::InitRequest(InitRequest {})).await.unwrap();
        let Response::InitResponse(told) = answer else { panic!("another answer") };
        assert_eq!(told.platform_name, expected);
        assert_eq!(told.all_devices.iter().map(|device| device.id).collect::<Vec<_>>(), [7, 8]);
        assert!(told.all_devices.iter().all(|device| device.platform_name == expected));
        let attributes = told.client_attributes.unwrap().attributes;
        assert!(attributes.iter().any(|entry| entry.key == "serialize_with_sdy"));
    }
}

#[tokio::test]
async fn error_while_a_program_runs_is_in_its_results() {
    let library = Library::new(106, &["MODULE", "COMPLETE_FAILS"]);
    let mut served = Served::new(&library, Limits::default());
    let handle = served.compile("outputs 1").await.unwrap().loaded_executable_handle;
    served.put(1, BYTES).await;
    let execute_options = Some(ExecuteOptionsProto { fill_status: true, ..Default::default() });
    let request = LoadedExecutableExecuteRequest {
        execute_options,
        result_status_handle: 9,
        ..run(handle, &[1], &[2])
    };
    // The answer only says that the plug-in has accepted the program.
    assert_eq!(served.execute(request).await.unwrap().status_handle, 9);
    let request = CheckValueReadyRequest { value_handles: vec![2] };
    let (_, words) = served.ask(Request::CheckValueReadyRequest(request)).await.unwrap_err();
    assert!(words.contains("the plug-in reports"), "{words}");
    assert_eq!(served.get(2).await.unwrap_err().1, words);
    let request = LoadedExecutableFetchExecuteResultRequest { result_status_handle: 9 };
    let request = Request::LoadedExecutableFetchExecuteResultRequest(request);
    assert_eq!(served.ask(request.clone()).await.unwrap_err().1, words);
    assert_eq!(served.ask(request).await.unwrap_err().0, StatusCode::NotFound);
    // The session continues.
    assert_eq!(served.get(1).await.unwrap()[..], BYTES);
}

#[tokio::test]
async fn program_that_cannot_run_leaves_its_error_in_its_results() {
    let library = Library::new(106, &["MODULE"]);
    let mut served = Served::new(&library, Limits::default());
    let handle = served.compile("outputs 1").await.unwrap().loaded_executable_handle;
    served.put(1, BYTES).await;
    for (request, code, part) in [
        (run(handle, &[], &[20]), StatusCode::InvalidArgument, "with 0 arrays; expected 1"),
        (run(handle, &[99], &[20]), StatusCode::NotFound, "no array 99"),
        (run(7, &[1], &[20]), StatusCode::NotFound, "no executable 7"),
        (run(handle, &[1], &[20, 21]), StatusCode::InvalidArgument, "found 2 result handles"),
    ] {
        let (found, words) = served.execute(request).await.unwrap_err();
        assert_eq!(found, code, "{words}");
        assert!(words.contains(part), "{words}");
        assert_eq!(served.get(20).await.unwrap_err(), (found, words));
        let gone = serdes::proto::xla::ifrt::proxy::DestructArrayRequest { array_handle: vec![20] };
        served.ask(Request::DestructArrayRequest(gone)).await.unwrap();
    }
    let request = LoadedExecutableDeleteRequest { loaded_executable_handle: handle };
    served.ask(Request::LoadedExecutableDeleteRequest(request)).await.unwrap();
    let request = LoadedExecutableIsDeletedRequest { loaded_executable_handle: handle };
    let answer = served.ask(Request::LoadedExecutableIsDeletedRequest(request)).await.unwrap();
    assert!(format!("{answer:?}").contains("is_deleted: true"), "{answer:?}");
    let (code, words) = served.execute(run(handle, &[1], &[30])).await.unwrap_err();
    assert_eq!(code, StatusCode::FailedPrecondition, "{words}");
    let request =
        LoadedExecutableDestructRequest { loaded_executable_handle: handle, ..Default::default() };
    let request = Request::LoadedExecutableDestructRequest(request);
    served.ask(request.clone()).await.unwrap();
    assert_eq!(served.ask(request).await.unwrap_err().0, StatusCode::NotFound);
    drop(served);
    assert!(library.is_empty_soon());
}

#[tokio::test]
async fn a_program_that_is_not_compiled_says_why() {
    let library = Library::new(106, &["MODULE"]);
    let mut limits = Limits::default();
    limits.set("session-programs", "1").unwrap();
    let mut served = Served::new(&library, limits);
    let (code, words) = served.compile("another language").await.unwrap_err();
    assert_eq!(code, StatusCode::Unknown);
    assert!(words.contains("no program of mine"), "{words}");
    // The refusal may be due to functions that the program calls; JAX has other names for them.
    let argument = HostCallbackArgument {
        channel_id: 1,
        shape: xla::Shape::array(xla::PrimitiveType::U8, [4]),
    };
    let callback = XlaHostCallback::new([argument], []).to_bytes(SerDesVersion::current());
    let host_callbacks = vec![callback.unwrap()];
    let called_back = CompileRequest { host_callbacks, ..compile_request("another language") };
    let (code, words) = served.ask(Request::CompileRequest(called_back)).await.unwrap_err();
    assert_eq!(code, StatusCode::Unknown);
    assert!(words.contains("no program of mine") && words.contains("pure_callback"), "{words}");
    let without_operands =
        CompileRequest { host_callbacks: vec![Bytes::new()], ..compile_request("outputs 1") };
    let (code, words) = served.ask(Request::CompileRequest(without_operands)).await.unwrap_err();
    assert_eq!(code, StatusCode::InvalidArgument);
    assert!(words.contains("no operand"), "{words}");
    let handle = served.compile("outputs 1").await.unwrap().loaded_executable_handle;
    let (code, words) = served.compile("outputs 1").await.unwrap_err();
    assert_eq!(code, StatusCode::ResourceExhausted);
    assert!(words.contains("session-programs"), "{words}");
    // A client that releases a program may load another one.
    let request =
        LoadedExecutableDestructRequest { loaded_executable_handle: handle, ..Default::default() };
    served.ask(Request::LoadedExecutableDestructRequest(request)).await.unwrap();
    served.compile("outputs 1").await.unwrap();
    // A plug-in whose program cannot be read: the donated arguments are unknown.
    let library = Library::new(106, &[]);
    let mut served = Served::new(&library, Limits::default());
    let (code, words) = served.compile("outputs 1").await.unwrap_err();
    assert_eq!(code, StatusCode::Internal, "{words}");
    assert!(words.contains("optimised program"), "{words}");
}

#[tokio::test]
async fn programs_count_as_bytes_of_their_client_while_loaded() {
    let library = Library::new(106, &["MODULE"]);
    let mut limits = Limits::default();
    limits.set("session-array-bytes", "1000").unwrap();
    let mut served = Served::new(&library, limits);
    let code = "outputs 1 donates -1";
    let mut loaded = Vec::new();
    let (status, words) = loop {
        match served.compile(code).await {
            Ok(answer) => loaded.push(answer.loaded_executable_handle),
            Err(refused) => break refused,
        }
    };
    assert_eq!(status, StatusCode::ResourceExhausted);
    assert!(words.contains("`session-array-bytes`"), "{words}");
    // Each takes memory for its source, and for code that is no shorter.
    assert!(!loaded.is_empty() && loaded.len() * 2 * code.len() <= 1000, "{}", loaded.len());
    for loaded_executable_handle in loaded {
        let request =
            LoadedExecutableDestructRequest { loaded_executable_handle, ..Default::default() };
        served.ask(Request::LoadedExecutableDestructRequest(request)).await.unwrap();
    }
    served.compile(code).await.unwrap();
}
