//! Tests of servers and clients over the loopback.

use std::{future::Future, sync::Arc, time::Duration};

use prost::Message;
use serdes::{
    codec::StatusCode,
    ifrt::{
        ArraySpec, AttributeMap, DType, DeviceId, DeviceList, HloSharding, MemoryKind, Shape,
        xla::{OpSharding, TileAssignment},
    },
    proto::xla::ifrt::proxy::{
        GrpcGetVersionRequest, GrpcGetVersionResponse, GrpcHostBufferStoreMetadata,
        GrpcHostBufferStoreRequest, GrpcHostBufferStoreResponse, GrpcIfrtSessionMetadata,
        IfrtProxyVersion, IfrtRequest, IfrtResponse, ifrt_request::Request,
    },
    version::{SerDesVersion, VersionRange},
};
use serdes_device_state::Versions;
use serdes_stream_executor::{LayoutChoice, Plugin};
use tokio::{net::TcpListener, sync::oneshot, task::JoinHandle};
use tonic::{
    Code, Request as Call,
    client::Grpc,
    codegen::http::uri::PathAndQuery,
    metadata::MetadataValue,
    transport::{Channel, Endpoint},
};
use tonic_prost::ProstCodec;

use crate::{
    Client, ClientOptions, ProxyError, Ranges, negotiate, requests,
    server::{
        Limits, Server,
        peers::{Caller, Identity},
        requests::{Answer, Reply, begin},
        sessions::Session,
    },
    service,
};

pub(crate) struct Running {
    pub(crate) server: Server,
    pub(crate) address: String,
    stop: oneshot::Sender<()>,
    task: JoinHandle<Result<(), ProxyError>>,
}

impl Running {
    pub(crate) async fn start(server: Server) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let (stop, stopped) = oneshot::channel();
        let serving = server.clone();
        let task =
            tokio::spawn(
                async move { serving.serve(listener, async { drop(stopped.await) }).await },
            );
        Self { server, address, stop, task }
    }

    pub(crate) async fn stop(self) -> Result<(), ProxyError> {
        drop(self.stop);
        tokio::time::timeout(Duration::from_secs(20), self.task).await.unwrap().unwrap()
    }

    /// Asks the server to stop; the returned handle gives the result.
    pub(crate) fn ask_to_stop(self) -> JoinHandle<Result<(), ProxyError>> {
        drop(self.stop);
        self.task
    }

    /// Waits until nothing of any session is left.
    pub(crate) async fn is_empty(&self) -> bool {
        for _ in 0..500 {
            let left = self.server.metrics();
            if [
                left.sessions,
                left.arrays,
                left.shards,
                left.shard_bytes,
                left.host_buffers,
                left.host_buffer_bytes,
                left.tasks,
            ] == [0; 7]
            {
                return true;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        false
    }
}

pub(crate) fn plugin() -> Plugin {
    Plugin::open("host:devices=2", LayoutChoice::Detect).unwrap()
}

fn server(ranges: Ranges) -> Server {
    let limits = Limits { stop_timeout: Duration::from_secs(2), ..Limits::default() };
    Server::builder(&plugin()).ranges(ranges).limits(limits).build().unwrap()
}

fn serdes(low: i32, high: i32) -> Ranges {
    Ranges::supported().with_serdes(VersionRange::new(low, high).unwrap())
}

pub(crate) fn test<F: Future<Output = ()>>(test: impl FnOnce() -> F) {
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    runtime.block_on(test());
}

pub(crate) async fn channel(address: &str) -> Grpc<Channel> {
    let channel =
        Endpoint::from_shared(format!("http://{address}")).unwrap().connect().await.unwrap();
    let mut grpc = Grpc::new(channel);
    grpc.ready().await.unwrap();
    grpc
}

#[test]
fn arrays_come_back_as_they_went() {
    test(|| async {
        let running = Running::start(server(Ranges::supported())).await;
        let client = Client::connect(&running.address).await.unwrap();
        assert_eq!(client.devices().len(), 2);
        assert_eq!(client.agreement().serdes().number(), 6);
        let bytes: Vec<u8> = (0..5_000_000_u32).map(|at| (at * 7) as u8).collect();
        let shape = Shape::new([1_250_000]).unwrap();
        let array = client.put(DType::F32, &shape, DeviceId(1), bytes.clone()).await.unwrap();
        client.wait(&array).await.unwrap();
        assert!(client.get(&array).await.unwrap() == bytes);
        let copy =
            client.copy(&array, &[DeviceId(0)], &MemoryKind::new("pinned_host")).await.unwrap();
        client.delete(&array).await.unwrap();
        assert!(client.get(&copy).await.unwrap() == bytes);
        let both =
            HloSharding::replicated(DeviceList::from([0, 1]), MemoryKind::new("device")).unwrap();
        let spec = ArraySpec::new(DType::U8, Shape::new([3]).unwrap(), both);
        let replicated = client.put_as(&spec, &b"abc"[..]).await.unwrap();
        assert_eq!(&client.get(&replicated).await.unwrap()[..], b"abc");
        let layout = client
            .default_layout(
                DType::F32,
                &Shape::new([2, 3]).unwrap(),
                DeviceId(0),
                &MemoryKind::unset(),
            )
            .await;
        assert_eq!(layout.unwrap(), "{1,0}");
        drop((array, copy, replicated, client));
        assert!(running.is_empty().await, "{:?}", running.server.metrics());
        running.stop().await.unwrap();
    });
}

#[test]
fn ranges_that_do_not_meet_are_refused_with_both_ranges() {
    test(|| async {
        let running = Running::start(server(serdes(0, 1))).await;
        let agreement = negotiate(&running.address, serdes(0, 6)).await.unwrap();
        assert_eq!(agreement.serdes().number(), 1);
        let error = negotiate(&running.address, serdes(2, 6)).await.unwrap_err();
        assert!(error.is_refusal());
        for part in ["0..1", "2..6", "upgrade the server"] {
            assert!(error.to_string().contains(part), "{error}");
        }
        running.stop().await.unwrap();
        let error = negotiate("127.0.0.1:1", Ranges::supported()).await.unwrap_err();
        assert!(matches!(error, ProxyError::Connection { .. }), "{error}");
    });
}

async fn open_session(address: &str, metadata: Option<&[u8]>) -> Result<(), tonic::Status> {
    let mut call = Call::new(tokio_stream::iter(Vec::<IfrtRequest>::new()));
    if let Some(metadata) = metadata {
        let value = MetadataValue::from_bytes(metadata);
        call.metadata_mut().insert_bin(service::SESSION_METADATA, value);
    }
    let codec: ProstCodec<IfrtRequest, IfrtResponse> = ProstCodec::default();
    let path = PathAndQuery::from_static(service::IFRT_SESSION);
    let answer = channel(address).await.streaming(call, path, codec).await?;
    // The client has sent nothing and closed its side, so the session ends with OK.
    assert!(answer.into_inner().message().await?.is_none());
    Ok(())
}

#[test]
fn a_session_needs_metadata_that_fits_what_was_agreed() {
    test(|| async {
        let running = Running::start(server(serdes(2, 4))).await;
        let code = async |metadata: Option<&[u8]>| {
            open_session(&running.address, metadata).await.err().map(|status| status.code())
        };
        assert_eq!(code(None).await, Some(Code::InvalidArgument));
        assert_eq!(code(Some(b"\x0a\xff")).await, Some(Code::InvalidArgument));
        assert_eq!(code(Some(b"")).await, Some(Code::FailedPrecondition));
        let metadata = |protocol_version, ifrt_serdes_version_number| {
            let version = IfrtProxyVersion { protocol_version, ifrt_serdes_version_number };
            GrpcIfrtSessionMetadata { version: Some(version), initialization_data: None }
                .encode_to_vec()
        };
        assert_eq!(code(Some(&metadata(26, 3))).await, Some(Code::FailedPrecondition));
        assert_eq!(code(Some(&metadata(25, 5))).await, Some(Code::FailedPrecondition));
        assert_eq!(code(Some(&metadata(25, 3))).await, None);
        assert!(running.is_empty().await);
        running.stop().await.unwrap();
    });
}

async fn store(
    address: &str,
    metadata: Option<&[u8]>,
    chunks: &[&'static [u8]],
) -> Result<(), Code> {
    let chunks: Vec<_> =
        chunks.iter().map(|data| GrpcHostBufferStoreRequest { data: (*data).into() }).collect();
    let mut call = Call::new(tokio_stream::iter(chunks));
    if let Some(metadata) = metadata {
        call.metadata_mut()
            .insert_bin(service::STORE_METADATA, MetadataValue::from_bytes(metadata));
    }
    let codec: ProstCodec<GrpcHostBufferStoreRequest, GrpcHostBufferStoreResponse> =
        ProstCodec::default();
    let path = PathAndQuery::from_static(service::HOST_BUFFER_STORE);
    channel(address)
        .await
        .client_streaming(call, path, codec)
        .await
        .map(drop)
        .map_err(|status| status.code())
}

#[test]
fn stores_fail_with_the_codes_of_the_protocol() {
    test(|| async {
        let running = Running::start(server(Ranges::supported())).await;
        let address = &running.address;
        let metadata = |session_id, handle, buffer_size| {
            GrpcHostBufferStoreMetadata { session_id, handle, buffer_size }.encode_to_vec()
        };
        assert_eq!(store(address, None, &[]).await, Err(Code::Internal));
        assert_eq!(store(address, Some(b"\xff"), &[]).await, Err(Code::DataLoss));
        assert_eq!(store(address, Some(&metadata(77, 1, 0)), &[]).await, Err(Code::NotFound));
        let client = Client::connect(address).await.unwrap();
        let session = *running.server.registry.sessions().keys().next().unwrap();
        assert_eq!(
            store(address, Some(&metadata(session, 1, 5)), &[b"abc"]).await,
            Err(Code::DataLoss)
        );
        assert_eq!(
            store(address, Some(&metadata(session, 1, 2)), &[b"abc"]).await,
            Err(Code::DataLoss)
        );
        assert_eq!(
            store(address, Some(&metadata(session, 1, -1)), &[]).await,
            Err(Code::InvalidArgument)
        );
        assert_eq!(
            store(address, Some(&metadata(session, 1, i64::MAX)), &[]).await,
            Err(Code::ResourceExhausted)
        );
        assert_eq!(store(address, Some(&metadata(session, 1, 6)), &[b"abc", b"def"]).await, Ok(()));
        assert_eq!(
            store(address, Some(&metadata(session, 1, 6)), &[b"abcdef"]).await,
            Err(Code::AlreadyExists)
        );
        assert_eq!(store(address, Some(&metadata(session, 2, 0)), &[]).await, Ok(()));
        drop(client);
        assert!(running.is_empty().await, "{:?}", running.server.metrics());
        running.stop().await.unwrap();
    });
}

/// A session on a server, and requests to it that are not waited for.
struct Waiting {
    running: Running,
    session: Arc<Session>,
}

impl Waiting {
    async fn start() -> Self {
        let running = Running::start(server(Ranges::supported())).await;
        let registry = &running.server.registry;
        let agreement = crate::Handshake::answer(registry.ranges, Ranges::supported()).unwrap();
        let identity = Identity::at(std::net::Ipv4Addr::LOCALHOST.into());
        let peer = registry.peers.of(&identity, &registry.context.limits);
        let caller = Caller {
            identity,
            sessions: peer.budgets.sessions.clone(),
            peer,
            token_to_come: false,
        };
        let session = registry.open(agreement, &AttributeMap::new(), &caller).unwrap();
        Self { running, session }
    }

    fn begin(&self, request: Request) -> JoinHandle<Reply> {
        match begin(&self.session, Some(&request)) {
            Answer::Now(reply) => tokio::spawn(std::future::ready(reply)),
            Answer::Later(reply) => tokio::spawn(reply),
        }
    }

    /// Creates an array of 4 bytes from host buffer 1.
    fn make(&self) -> JoinHandle<Reply> {
        let sharding =
            HloSharding::replicated(DeviceList::from([0, 1]), MemoryKind::new("device")).unwrap();
        let shape = Shape::new([4]).unwrap();
        let strides = requests::row_major_strides(DType::U8, &shape);
        let version = SerDesVersion::current();
        let request =
            requests::make_array(DType::U8, &shape, &sharding.into(), strides, 1, version);
        self.begin(Request::MakeArrayFromHostBufferRequest(request.unwrap()))
    }

    async fn store(&self, handle: u64, size: i64, chunks: &[&'static [u8]]) -> Result<(), Code> {
        let session_id = self.session.id;
        let metadata = GrpcHostBufferStoreMetadata { session_id, handle, buffer_size: size };
        store(&self.running.address, Some(&metadata.encode_to_vec()), chunks).await
    }

    async fn stop(self) {
        self.running.server.registry.end(&self.session);
        drop(self.session);
        assert!(self.running.is_empty().await, "{:?}", self.running.server.metrics());
        self.running.stop().await.unwrap();
    }
}

#[test]
fn an_array_takes_its_bytes_as_they_come() {
    test(|| async {
        let waiting = Waiting::start().await;
        let made = waiting.make();
        assert_eq!(waiting.store(1, 4, &[b"a", b"", b"bc", b"d"]).await, Ok(()));
        made.await.unwrap().unwrap();
        // The array has consumed the buffer.
        assert_eq!(
            waiting.session.host_buffers.delete(1).unwrap_err().code(),
            StatusCode::NotFound
        );
        let shard = requests::fully_replicated_shard(1, 2);
        waiting.begin(Request::FullyReplicatedShardRequest(shard)).await.unwrap().unwrap();
        let copied = Request::CopyToHostBufferRequest(requests::copy_to_host_buffer(2, 3));
        waiting.begin(copied).await.unwrap().unwrap();
        let bytes = waiting.session.host_buffers.look_up(3).await.unwrap().whole().unwrap();
        assert_eq!(&bytes[..], b"abcd");
        drop(bytes);
        waiting.stop().await;
    });
}

#[test]
fn transfer_of_a_wrong_length_fails_the_waiting_array() {
    test(|| async {
        for chunks in [&[&b"abc"[..]][..], &[b"abc", b"de"]] {
            let waiting = Waiting::start().await;
            let made = waiting.make();
            assert_eq!(waiting.store(1, 4, chunks).await, Err(Code::DataLoss));
            assert_eq!(made.await.unwrap().unwrap_err().code(), StatusCode::DataLoss);
            waiting.stop().await;
        }
    });
}

#[test]
fn a_buffer_that_no_array_can_take_is_received_to_its_end() {
    test(|| async {
        let waiting = Waiting::start().await;
        let made = waiting.make();
        assert_eq!(waiting.store(1, 6, &[b"abc", b"def"]).await, Ok(()));
        assert_eq!(made.await.unwrap().unwrap_err().code(), StatusCode::InvalidArgument);
        waiting.stop().await;
    });
}

#[test]
fn shards_may_be_sent_in_any_order() {
    test(|| async {
        let waiting = Waiting::start().await;
        let tiles = OpSharding::tiled(TileAssignment::iota([2], [2], [0]).unwrap());
        let devices = DeviceList::from([0, 1]);
        let sharding = HloSharding::new(devices, MemoryKind::new("device"), tiles).unwrap();
        let spec = ArraySpec::new(DType::U8, Shape::new([4]).unwrap(), sharding);
        let shape = Shape::new([2]).unwrap();
        let shards = [(shape.clone(), 1), (shape, 2)];
        let version = SerDesVersion::current();
        let request = requests::make_array_of_shards(&spec, &shards, 1, version).unwrap();
        let made = waiting.begin(Request::MakeArraysFromHostBufferShardsRequest(request));
        assert_eq!(waiting.store(2, 2, &[b"cd"]).await, Ok(()));
        assert_eq!(waiting.store(1, 2, &[b"ab"]).await, Ok(()));
        made.await.unwrap().unwrap();
        let copied = Request::CopyToHostBufferRequest(requests::copy_to_host_buffer(1, 3));
        waiting.begin(copied).await.unwrap().unwrap();
        let bytes = waiting.session.host_buffers.look_up(3).await.unwrap().whole().unwrap();
        assert_eq!(&bytes[..], b"abcd");
        drop(bytes);
        waiting.stop().await;
    });
}

#[test]
fn an_empty_range_and_an_unknown_call_are_refused() {
    test(|| async {
        let running = Running::start(server(Ranges::supported())).await;
        let codec: ProstCodec<GrpcGetVersionRequest, GrpcGetVersionResponse> =
            ProstCodec::default();
        let mut grpc = channel(&running.address).await;
        let path = PathAndQuery::from_static(service::GET_VERSION);
        let nothing =
            grpc.unary(Call::new(GrpcGetVersionRequest::default()), path, codec.clone()).await;
        assert_eq!(nothing.unwrap_err().code(), Code::InvalidArgument);
        grpc.ready().await.unwrap();
        let path = PathAndQuery::from_static("/xla.ifrt.proxy.GrpcIfrtService/Nothing");
        let nothing = grpc.unary(Call::new(GrpcGetVersionRequest::default()), path, codec).await;
        assert_eq!(nothing.unwrap_err().code(), Code::Unimplemented);
        running.stop().await.unwrap();
    });
}

/// Returns a part of the full number; all of it with `SERDES_PROXY_FULL=1`.
fn number(full: usize) -> usize {
    if std::env::var_os("SERDES_PROXY_FULL").is_some() { full } else { full / 10 }
}

#[test]
fn many_sessions_leave_nothing() {
    test(|| async {
        let running = Running::start(server(Ranges::supported())).await;
        let shape = Shape::new([64]).unwrap();
        let sessions = number(1000);
        for _ in 0..sessions / 50 {
            let opened = (0..50).map(|_| {
                let (address, shape) = (running.address.clone(), shape.clone());
                tokio::spawn(async move {
                    let client = Client::connect(&address).await.unwrap();
                    let array =
                        client.put(DType::U8, &shape, DeviceId(0), vec![5; 64]).await.unwrap();
                    assert_eq!(&client.get(&array).await.unwrap()[..], [5; 64]);
                })
            });
            for task in opened.collect::<Vec<_>>() {
                task.await.unwrap();
            }
        }
        assert_eq!(running.server.metrics().sessions_opened, sessions as u64);
        assert!(running.is_empty().await, "{:?}", running.server.metrics());
        running.stop().await.unwrap();
    });
}

/// Runs a client in its own thread and closes its sockets in the middle of its work, as the system
/// does for a killed process.
fn killed_client(address: &str, number: u64) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let client = Client::connect(address).await.unwrap();
        let shape = Shape::new([8 << 20]).unwrap();
        let transfer = async {
            let array = client.put(DType::U8, &shape, DeviceId(1), vec![7; 8 << 20]).await.unwrap();
            client.get(&array).await.unwrap();
            std::future::pending::<()>().await;
        };
        drop(tokio::time::timeout(Duration::from_millis(number % 40), transfer).await);
    });
    runtime.shutdown_background();
}

#[test]
fn killed_clients_leave_nothing() {
    test(|| async {
        let running = Running::start(server(Ranges::supported())).await;
        for turn in 0..number(200) as u64 / 10 {
            let killed = (0..10).map(|at| {
                let address = running.address.clone();
                std::thread::spawn(move || killed_client(&address, turn * 7 + at * 4))
            });
            let killed: Vec<_> = killed.collect();
            tokio::task::spawn_blocking(|| {
                for client in killed {
                    client.join().unwrap();
                }
            })
            .await
            .unwrap();
        }
        assert!(running.is_empty().await, "{:?}", running.server.metrics());
        running.stop().await.unwrap();
    });
}

#[test]
fn a_connection_is_encrypted_where_a_certificate_is_given() {
    test(|| async {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let server = Server::builder(&plugin()).tls(&certificate, &key).build().unwrap();
        let running = Running::start(server).await;
        let address = format!("https://{}", running.address);
        let options = |authority: Option<&str>| ClientOptions {
            certificate_authority: authority.map(|pem| pem.as_bytes().to_vec()),
            server_name: Some("localhost".to_owned()),
            timeout: Duration::from_secs(5),
            ..ClientOptions::default()
        };
        let client = Client::connect_with(&address, options(Some(&certificate))).await.unwrap();
        let shape = Shape::new([2 << 20]).unwrap();
        let array = client.put(DType::U8, &shape, DeviceId(0), vec![9; 2 << 20]).await.unwrap();
        assert!(client.get(&array).await.unwrap() == vec![9; 2 << 20]);

        let untrusted = Client::connect_with(&address, options(None)).await.unwrap_err();
        assert!(matches!(untrusted, ProxyError::Configuration { .. }), "{untrusted}");
        let other = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let other = Client::connect_with(&address, options(Some(&other.cert.pem()))).await;
        assert!(matches!(other, Err(ProxyError::Connection { .. })), "{other:?}");
        let plain = Client::connect_with(&running.address, options(None)).await;
        assert!(matches!(plain, Err(ProxyError::Connection { .. })), "{plain:?}");

        drop((array, client));
        assert!(running.is_empty().await, "{:?}", running.server.metrics());
        running.stop().await.unwrap();
        let broken = Server::builder(&plugin()).tls("no certificate", &key).build();
        assert!(matches!(broken, Err(ProxyError::Configuration { .. })), "{broken:?}");
    });
}

#[test]
fn a_client_finds_what_another_left_under_its_names() {
    test(|| async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("arrays.sds");
        let server = Server::builder(&plugin()).state(&path).state_versions(Versions::current());
        let running = Running::start(server.build().unwrap()).await;
        let options = || ClientOptions::new().with_state_names("model", ["model/w", "model/b"]);
        let client = Client::connect_with(&running.address, options()).await.unwrap();
        assert!(client.state_arrays().unwrap().is_empty());
        let shape = Shape::new([3]).unwrap();
        for bytes in [&b"abc"[..], b"def"] {
            let array = client.put(DType::U8, &shape, DeviceId(1), bytes).await.unwrap();
            client.wait(&array).await.unwrap();
            array.leave();
        }
        drop(client);
        let client = Client::connect_with(&running.address, options()).await.unwrap();
        let found = client.state_arrays().unwrap();
        let names: Vec<_> = found.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["model/b", "model/w"]);
        assert_eq!(&client.get(&found[1].1).await.unwrap()[..], b"abc");
        assert_eq!(found[1].1.sharding().devices().ids(), [DeviceId(1)]);
        client.delete(&found[0].1).await.unwrap();
        drop((found, client));
        running.stop().await.unwrap();
        let reader = serdes_device_state::Reader::open(&path).unwrap();
        assert_eq!(reader.names().collect::<Vec<_>>(), ["model/w"]);
    });
}

#[test]
fn arrays_of_a_session_with_a_name_survive_the_server() {
    test(|| async {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("arrays.sds");
        let options = || ClientOptions {
            initialization_data: AttributeMap::from_iter([("serdes.state.name", "model".into())]),
            ..ClientOptions::default()
        };
        let stateful = || {
            Server::builder(&plugin())
                .state(&path)
                .state_versions(Versions::current())
                .build()
                .unwrap()
        };
        let running = Running::start(stateful()).await;
        let client = Client::connect_with(&running.address, options()).await.unwrap();
        let shape = Shape::new([3]).unwrap();
        let array = client.put(DType::U8, &shape, DeviceId(1), &b"abc"[..]).await.unwrap();
        assert_eq!(running.server.save().await.unwrap(), 1);
        std::mem::forget(array);
        running.stop().await.unwrap();

        let running = Running::start(stateful()).await;
        let client = Client::connect(&running.address).await.unwrap();
        let handle = client.attributes().int64("serdes.state.handle.model/1").unwrap();
        assert!(handle.cast_unsigned() >= 1 << 63);
        drop(client);
        running.stop().await.unwrap();
        let reader = serdes_device_state::Reader::open(&path).unwrap();
        assert_eq!(reader.names().collect::<Vec<_>>(), ["model/1"]);
        let error = running_without_state().await;
        assert!(matches!(error, ProxyError::Configuration { .. }));
    });
}

async fn running_without_state() -> ProxyError {
    server(Ranges::supported()).save().await.unwrap_err()
}

#[test]
fn a_server_stops_though_a_client_is_there() {
    test(|| async {
        let running = Running::start(server(Ranges::supported())).await;
        let client = Client::connect(&running.address).await.unwrap();
        let shape = Shape::new([1]).unwrap();
        let array = client.put(DType::U8, &shape, DeviceId(0), &b"a"[..]).await.unwrap();
        running.stop().await.unwrap();
        let error = client.get(&array).await.unwrap_err();
        let gone = match &error {
            ProxyError::Status(status) => matches!(
                status.code(),
                StatusCode::Unavailable | StatusCode::Cancelled | StatusCode::Unknown
            ),
            other => matches!(other, ProxyError::Connection { .. }),
        };
        assert!(gone, "{error:?}");
    });
}

#[test]
fn look_up_may_come_before_the_request_of_its_buffer() {
    test(|| async {
        let server = server(Ranges::supported());
        let local = server.local_session(Ranges::supported()).unwrap();
        let session = Arc::clone(local.session());
        // It waits only briefly, and on a busy machine the store may come too late.
        let mut found = None;
        for handle in 1..100 {
            let own = Arc::clone(&session);
            let early = tokio::spawn(async move {
                let buffer = own.host_buffers.look_up_early(handle).await?;
                own.blocking(move || buffer.whole()).await
            });
            tokio::time::sleep(Duration::from_millis(5)).await;
            assert!(session.host_buffers.look_up(handle).await.is_err());
            local.store(handle, b"abc"[..].into()).await.unwrap();
            if let Ok(bytes) = early.await.unwrap() {
                found = Some(bytes);
                break;
            }
        }
        assert_eq!(found.as_deref(), Some(&b"abc"[..]));
        // A buffer that never arrives, requested many times.
        let mut unknown = tokio::task::JoinSet::new();
        for _ in 0..1000 {
            let own = Arc::clone(&session);
            unknown.spawn(async move { own.host_buffers.look_up_early(1000).await.map(drop) });
        }
        while let Some(answer) = unknown.join_next().await {
            assert_eq!(answer.unwrap().unwrap_err().code(), StatusCode::NotFound);
        }
    });
}

#[test]
fn a_buffer_that_was_read_by_our_client_is_not_there_any_more() {
    test(|| async {
        let running = Running::start(server(Ranges::supported())).await;
        let client = Client::connect(&running.address).await.unwrap();
        for size in [0, 1, 1000, 64 << 10, (64 << 10) + 1, 3 << 20] {
            let bytes: bytes::Bytes = (0..size).map(|at| at as u8).collect();
            let shape = Shape::new([size]).unwrap();
            let array = client.put(DType::U8, &shape, DeviceId(0), bytes.clone()).await.unwrap();
            for _ in 0..3 {
                assert_eq!(client.get(&array).await.unwrap(), bytes, "{size}");
            }
            client.delete(&array).await.unwrap();
        }
        // The session has no buffers left, although no call deleted them.
        for _ in 0..500 {
            if running.server.metrics().host_buffers == 0 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(running.server.metrics().host_buffers, 0);
        drop(client);
        assert!(running.is_empty().await);
        running.stop().await.unwrap();
    });
}
