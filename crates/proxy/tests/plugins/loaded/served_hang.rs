//! Tests of a plug-in that hangs in a call that had always been quick: the caller's session still
//! ends when its client disconnects, and other sessions are served.

use std::time::Duration;

use bytes::Bytes;
use prost::Message as _;
use serdes::{
    codec::StatusCode,
    ifrt::{DType, Shape},
    proto::xla::ifrt::{
        Serialized,
        proxy::{
            CompileRequest, GrpcHostBufferStoreMetadata, GrpcHostBufferStoreRequest,
            GrpcHostBufferStoreResponse, GrpcIfrtSessionMetadata, IfrtProxyVersion, IfrtRequest,
            IfrtResponse, InitRequest, LoadedExecutableExecuteRequest, RequestMetadata,
            ifrt_request::Request, ifrt_response::Response,
        },
    },
    version::SerDesVersion,
};
use serdes_proxy::{Client, Limits, Server};
use tokio::{net::TcpListener, sync::mpsc};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{
    Streaming,
    client::Grpc,
    codegen::http::uri::PathAndQuery,
    metadata::MetadataValue,
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;

use super::{plugins::Library, served_array::four_bytes_on_each};

/// Longer than any successful step takes.
const LONG: Duration = Duration::from_secs(30);

/// A client that implements the protocol over gRPC itself, without the client of this crate.
struct WireClient {
    channel: Channel,
    requests: mpsc::UnboundedSender<IfrtRequest>,
    answers: Streaming<IfrtResponse>,
    op_id: u64,
}

async fn ready(channel: &Channel) -> Grpc<Channel> {
    let mut grpc = Grpc::new(channel.clone());
    grpc.ready().await.unwrap();
    grpc
}

fn path(call: &str) -> PathAndQuery {
    format!("/xla.ifrt.proxy.GrpcIfrtService/{call}").parse().unwrap()
}

impl WireClient {
    async fn connect(address: &str) -> Self {
        let endpoint = Endpoint::from_shared(format!("http://{address}")).unwrap();
        let channel = endpoint.connect().await.unwrap();
        let version = IfrtProxyVersion {
            protocol_version: 25,
            ifrt_serdes_version_number: SerDesVersion::current().number(),
        };
        let metadata =
            GrpcIfrtSessionMetadata { version: Some(version), initialization_data: None };
        let (requests, outgoing) = mpsc::unbounded_channel();
        let mut call = tonic::Request::new(UnboundedReceiverStream::new(outgoing));
        let value = MetadataValue::from_bytes(&metadata.encode_to_vec());
        call.metadata_mut().insert_bin("ifrt-proxy-grpc-ifrt-session-metadata-bin", value);
        let codec = ProstCodec::<IfrtRequest, IfrtResponse>::default();
        let mut grpc = ready(&channel).await;
        let answers = grpc.streaming(call, path("IfrtSession"), codec).await.unwrap().into_inner();
        Self { channel, requests, answers, op_id: 0 }
    }

    fn send(&mut self, request: Request) {
        self.op_id += 1;
        let request_metadata = Some(RequestMetadata { op_id: self.op_id, ..Default::default() });
        self.requests.send(IfrtRequest { request_metadata, request: Some(request) }).unwrap();
    }

    /// Sends a request and waits for its answer; no other request is in progress.
    async fn ask(&mut self, request: Request) -> Response {
        self.send(request);
        let answer = self.answers.message().await.unwrap().unwrap();
        let metadata = answer.response_metadata.unwrap();
        assert_eq!((metadata.op_id, metadata.status), (self.op_id, None));
        answer.response.unwrap()
    }

    /// Puts eight bytes over both devices.
    async fn put(&mut self, session_id: u64, handle: u64) {
        let bytes = GrpcHostBufferStoreRequest { data: Bytes::from_static(&[1; 8]) };
        let mut call = tonic::Request::new(tokio_stream::once(bytes));
        let metadata = GrpcHostBufferStoreMetadata { session_id, handle, buffer_size: 8 };
        let value = MetadataValue::from_bytes(&metadata.encode_to_vec());
        call.metadata_mut().insert_bin("ifrt-proxy-grpc-host-buffer-store-metadata-bin", value);
        let codec =
            ProstCodec::<GrpcHostBufferStoreRequest, GrpcHostBufferStoreResponse>::default();
        let mut grpc = ready(&self.channel).await;
        grpc.client_streaming(call, path("HostBufferStore"), codec).await.unwrap();
        self.ask(four_bytes_on_each(handle)).await;
    }

    async fn compile(&mut self) -> u64 {
        let value = |type_name: &str, data: &'static [u8]| {
            let data = Bytes::from_static(data);
            Some(Serialized { type_name: format!("xla::ifrt::{type_name}"), data })
        };
        let request = CompileRequest {
            program: value("XlaProgram", b"outputs 1 donates -1"),
            // One replica of two partitions.
            compile_options: value("XlaCompileOptions", &[0x0a, 6, 0x1a, 4, 0x20, 1, 0x28, 2]),
            host_callbacks: Vec::new(),
        };
        match self.ask(Request::CompileRequest(request)).await {
            Response::CompileResponse(answer) => answer.loaded_executable_handle,
            other => panic!("another answer: {other:?}"),
        }
    }
}

fn run(program: u64, result: u64) -> Request {
    Request::LoadedExecutableExecuteRequest(LoadedExecutableExecuteRequest {
        loaded_executable_handle: program,
        args_handles: vec![1],
        result_array_handle: vec![result],
        ..Default::default()
    })
}

async fn soon(is_so: impl Fn() -> bool) -> bool {
    let so = async {
        while !is_so() {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LONG, so).await.is_ok()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_session_whose_program_hangs_ends_with_its_client() {
    let library = Library::new(106, &["MODULE"]);
    let plugin = library.load().unwrap().create_client(&[]).unwrap();
    let server = Server::builder(&plugin).build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (serving, forever) = (server.clone(), std::future::pending());
    let serving = tokio::spawn(async move { serving.serve(listener, forever).await });

    let mut client = WireClient::connect(&address).await;
    let Response::InitResponse(init) = client.ask(Request::InitRequest(InitRequest {})).await
    else {
        panic!("another answer than to the first request");
    };
    client.put(init.session_id, 1).await;
    let program = client.compile().await;
    // Enough calls for the server to expect quick ones.
    for result in 10..60 {
        client.ask(run(program, result)).await;
    }
    library.hang_next();
    client.send(run(program, 60));
    assert!(soon(|| library.hangs()).await);
    assert!(server.metrics().arrays > 0);

    drop(client);
    assert!(soon(|| server.metrics().arrays == 0).await, "{:?}", server.metrics());
    assert!(library.hangs());
    let other = Client::connect(&address).await.unwrap();
    let shape = Shape::new([2]).unwrap();
    let device = other.devices()[0].id;
    let array = other.put(DType::U8, &shape, device, vec![1, 2]).await.unwrap();
    assert_eq!(other.get(&array).await.unwrap()[..], [1, 2]);

    library.let_go();
    drop((array, other));
    serving.abort();
    assert!(serving.await.unwrap_err().is_cancelled());
    drop((server, plugin));
    assert!(soon(|| library.live_objects() == 0).await);
}

impl WireClient {
    /// Connects a client, puts eight bytes over both devices, and runs a program with them.
    async fn with_program(address: &str) -> (Self, u64) {
        let mut client = Self::connect(address).await;
        let Response::InitResponse(init) = client.ask(Request::InitRequest(InitRequest {})).await
        else {
            panic!("another answer than to the first request");
        };
        client.put(init.session_id, 1).await;
        let program = client.compile().await;
        (client, program)
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_program_that_hangs_leaves_the_devices_to_others() {
    let library = Library::new(106, &["MODULE"]);
    let plugin = library.load().unwrap().create_client(&[]).unwrap();
    let mut limits = Limits::default();
    limits.set("shared-execution-seconds", "0.1").unwrap();
    let server = Server::builder(&plugin).limits(limits).build().unwrap();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let (serving, forever) = (server.clone(), std::future::pending());
    let serving = tokio::spawn(async move { serving.serve(listener, forever).await });

    let (mut hanging, program) = WireClient::with_program(&address).await;
    let (mut other, others) = WireClient::with_program(&address).await;
    library.hang_next();
    hanging.send(run(program, 60));
    assert!(soon(|| library.hangs()).await);
    // With the earlier array, program and result.
    tokio::time::timeout(LONG, other.ask(run(others, 60))).await.unwrap();
    other.ask(run(others, 61)).await;
    assert!(library.hangs());

    let answer = hanging.answers.message().await.unwrap().unwrap();
    let status = answer.response_metadata.unwrap().status.unwrap();
    assert_eq!(StatusCode::from_number(status.code), Some(StatusCode::DeadlineExceeded));
    assert!(status.message.contains("`shared-execution-seconds`"), "{}", status.message);
    // The session continues.
    hanging.ask(run(program, 62)).await;

    library.let_go();
    serving.abort();
    assert!(serving.await.unwrap_err().is_cancelled());
}
