//! Tests of attacks by untrusted clients: each gets its own share of the server, and no more.

use std::{
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use prost::Message as _;
use serdes::{
    codec::StatusCode,
    ifrt::{AttributeMap, DType, DeviceId, MemoryKind, Shape},
    proto::xla::ifrt::proxy::{
        GrpcHostBufferStoreMetadata, GrpcHostBufferStoreRequest, GrpcHostBufferStoreResponse,
        InitRequest, ifrt_request::Request,
    },
};
use serdes_stream_executor::{LayoutChoice, Plugin};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpSocket, TcpStream},
};
use tonic::{Code, Request as Call, codegen::http::uri::PathAndQuery, metadata::MetadataValue};
use tonic_prost::ProstCodec;

use super::{
    access::Caller,
    network::{Running, channel, plugin, test},
};
use crate::{
    Client, ProxyError,
    server::{
        Limits, Server,
        access::{Acceptor, Encryption},
        arrays::Kind,
        net::{Accept, Connections, is_final, is_of_peer},
    },
    service,
};

const SHORT: Duration = Duration::from_millis(300);
/// Short, but longer than an honest client needs to send a message on a busy machine.
const BUSY: Duration = Duration::from_secs(2);

async fn serving(limits: Limits) -> Running {
    Running::start(Server::builder(&plugin()).limits(limits).build().unwrap()).await
}

fn init() -> Vec<Request> {
    vec![Request::InitRequest(InitRequest {})]
}

fn code(error: &ProxyError) -> StatusCode {
    match error {
        ProxyError::Status(status) => status.code(),
        other => panic!("{other}"),
    }
}

/// Announces a store of that size, and sends only one byte of it.
async fn announce(address: String, session_id: u64, handle: u64, size: i64) {
    let metadata = GrpcHostBufferStoreMetadata { session_id, handle, buffer_size: size };
    let (sender, receiver) = tokio::sync::mpsc::unbounded_channel();
    sender.send(GrpcHostBufferStoreRequest { data: b"x"[..].into() }).unwrap();
    let mut call = Call::new(tokio_stream::wrappers::UnboundedReceiverStream::new(receiver));
    let value = MetadataValue::from_bytes(&metadata.encode_to_vec());
    call.metadata_mut().insert_bin(service::STORE_METADATA, value);
    let codec: ProstCodec<GrpcHostBufferStoreRequest, GrpcHostBufferStoreResponse> =
        ProstCodec::default();
    let path = PathAndQuery::from_static(service::HOST_BUFFER_STORE);
    drop(channel(&address).await.client_streaming(call, path, codec).await);
    drop(sender);
}

#[test]
fn room_is_taken_by_what_arrives_and_not_by_what_is_announced() {
    test(|| async {
        let limits = Limits {
            total_host_bytes: 1 << 20,
            peer_host_bytes: 1 << 20,
            session_host_bytes: 1 << 20,
            host_buffer_timeout: Duration::from_secs(5),
            ..Limits::default()
        };
        let running = serving(limits).await;
        let mut uploads = Vec::new();
        let mut clients = Vec::new();
        for handle in 1..=8 {
            let known: Vec<u64> = running.server.registry.sessions().keys().copied().collect();
            clients.push(Client::connect(&running.address).await.unwrap());
            let session =
                running.server.registry.sessions().keys().copied().find(|id| !known.contains(id));
            let upload = announce(running.address.clone(), session.unwrap(), handle, 1 << 20);
            uploads.push(tokio::spawn(upload));
        }
        while running.server.metrics().host_buffers < 8 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let honest = Client::connect(&running.address).await.unwrap();
        let shape = Shape::new([5]).unwrap();
        let array = honest.put(DType::U8, &shape, DeviceId(0), &b"hello"[..]).await.unwrap();
        assert_eq!(&honest.get(&array).await.unwrap()[..], b"hello");
        uploads.iter().for_each(tokio::task::JoinHandle::abort);
        drop((array, honest, clients));
        assert!(running.is_empty().await, "{:?}", running.server.metrics());
        running.stop().await.unwrap();
    });
}

#[test]
fn a_peer_has_its_share_of_sessions_and_others_get_theirs() {
    test(|| async {
        let limits = Limits { sessions: 5, peer_sessions: 3, ..Limits::default() };
        let running = serving(limits).await;
        let greedy = Caller { server: &running.address, from: "127.0.0.2", token: None };
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(greedy.session(AttributeMap::new(), init()).await.unwrap());
        }
        let refused = greedy.session(AttributeMap::new(), init()).await.unwrap_err();
        assert_eq!(refused.code(), Code::ResourceExhausted);
        assert!(refused.message().contains("`peer-sessions`"), "{}", refused.message());
        let honest = Client::connect(&running.address).await.unwrap();
        let shape = Shape::new([1]).unwrap();
        let array = honest.put(DType::U8, &shape, DeviceId(0), &b"a"[..]).await.unwrap();
        drop((array, honest, held));
        running.stop().await.unwrap();
    });
}

#[test]
fn idle_session_ends_unless_it_holds_something() {
    test(|| async {
        let limits = Limits {
            handshake_timeout: BUSY,
            session_idle_timeout: BUSY,
            connection_idle_timeout: BUSY,
            ..Limits::default()
        };
        let running = serving(limits).await;
        let client = Client::connect(&running.address).await.unwrap();
        let shape = Shape::new([3]).unwrap();
        let array = client.put(DType::U8, &shape, DeviceId(0), &b"abc"[..]).await.unwrap();
        let caller = Caller { server: &running.address, from: "127.0.0.1", token: None };
        for requests in [Vec::new(), init()] {
            let (_, mut open) = caller.session(AttributeMap::new(), requests).await.unwrap();
            let ended = open.answers.message().await.unwrap_err();
            assert_eq!(ended.code(), Code::DeadlineExceeded, "{}", ended.message());
        }
        assert_eq!(&client.get(&array).await.unwrap()[..], b"abc");
        drop((array, client));
        running.stop().await.unwrap();
    });
}

#[test]
fn silent_connections_end_and_others_are_accepted_meanwhile() {
    test(|| async {
        let limits = Limits { handshake_timeout: BUSY, ..Limits::default() };
        let running = serving(limits).await;
        let mut silent = Vec::new();
        for at in 0..400 {
            let mut stream = TcpStream::connect(&running.address).await.unwrap();
            // Some have begun to send something.
            stream.write_all(&b"PRI * HTTP/2.0"[..at % 15]).await.unwrap();
            silent.push(stream);
        }
        let honest = Client::connect(&running.address).await.unwrap();
        let shape = Shape::new([1]).unwrap();
        let array = honest.put(DType::U8, &shape, DeviceId(0), &b"a"[..]).await.unwrap();
        for mut stream in silent {
            // The end, or a reset.
            let ended =
                tokio::time::timeout(Duration::from_secs(20), stream.read(&mut [0; 64])).await;
            assert!(!matches!(ended.unwrap(), Ok(1..)));
        }
        assert_eq!(&honest.get(&array).await.unwrap()[..], b"a");
        // A connection may still be counted shortly after it has ended.
        let since = Instant::now();
        while running.server.metrics().connections_refused < 400 && since.elapsed() < 4 * BUSY {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(running.server.metrics().connections_refused, 400);
        drop((array, honest));
        running.stop().await.unwrap();
    });
}

#[test]
fn a_connection_that_speaks_http_and_asks_for_nothing_ends() {
    test(|| async {
        let limits = Limits { handshake_timeout: SHORT, ..Limits::default() };
        let running = serving(limits).await;
        let mut stream = TcpStream::connect(&running.address).await.unwrap();
        stream.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0").await.unwrap();
        let all = async { while !matches!(stream.read(&mut [0; 1024]).await, Ok(0) | Err(_)) {} };
        tokio::time::timeout(Duration::from_secs(20), all).await.unwrap();
        running.stop().await.unwrap();
    });
}

#[test]
fn silent_handshakes_of_tls_end() {
    test(|| async {
        let made = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
        let (certificate, key) = (made.cert.pem(), made.signing_key.serialize_pem());
        let limits = Limits { handshake_timeout: SHORT, ..Limits::default() };
        let server =
            Server::builder(&plugin()).limits(limits).tls(certificate, key).build().unwrap();
        let running = Running::start(server).await;
        let mut stream = TcpStream::connect(&running.address).await.unwrap();
        // The header of a record with a ClientHello, and a part of it.
        stream.write_all(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03").await.unwrap();
        let ended = tokio::time::timeout(Duration::from_secs(20), stream.read(&mut [0; 64])).await;
        assert!(!matches!(ended.unwrap(), Ok(1..)));
        running.stop().await.unwrap();
    });
}

#[test]
fn peer_at_its_connection_limit_leaves_room_for_others() {
    test(|| async {
        let limits = Limits { connections: 4, peer_connections: 2, ..Limits::default() };
        let running = serving(limits).await;
        let greedy = Caller { server: &running.address, from: "127.0.0.2", token: None };
        let first = greedy.session(AttributeMap::new(), init()).await.unwrap();
        let second = greedy.session(AttributeMap::new(), init()).await.unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
        let mut third = socket.connect(running.address.parse().unwrap()).await.unwrap();
        third.write_all(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n").await.unwrap();
        let ends = async { while matches!(third.read(&mut [0; 64]).await, Ok(1..)) {} };
        tokio::time::timeout(Duration::from_secs(20), ends).await.unwrap();
        let mut refused = greedy.session(AttributeMap::new(), init()).await.unwrap_err();
        // The server waits one second for the call; a busy machine may take longer.
        for _ in 0..20 {
            if refused.code() != Code::Unknown {
                break;
            }
            refused = greedy.session(AttributeMap::new(), init()).await.unwrap_err();
        }
        assert_eq!(refused.code(), Code::ResourceExhausted, "{refused}");
        assert!(refused.message().contains("`peer-connections`"), "{refused}");
        drop(Client::connect(&running.address).await.unwrap());
        // One of two idle sessions is closed for a new one.
        drop((first, second));
        while running.server.metrics().sessions > 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        assert_eq!(greedy.get_version().await, Ok(()));
        running.stop().await.unwrap();
    });
}

#[test]
fn pinned_memory_and_copies_count_for_what_a_server_may_hold() {
    test(|| async {
        let told = Plugin::open("host:devices=1,memory=1048576", LayoutChoice::Detect).unwrap();
        let running = Running::start(Server::builder(&told).build().unwrap()).await;
        let client = Client::connect(&running.address).await.unwrap();
        let shape = Shape::new([128 << 10]).unwrap();
        let array = client.put(DType::U8, &shape, DeviceId(0), vec![7; 128 << 10]).await.unwrap();
        let mut copies = Vec::new();
        let error = loop {
            assert!(copies.len() < 100);
            let pinned = MemoryKind::new("pinned_host");
            match client.copy(&array, &[DeviceId(0)], &pinned).await {
                Ok(copy) => copies.push(copy),
                Err(error) => break error,
            }
        };
        assert_eq!((copies.len(), code(&error)), (7, StatusCode::ResourceExhausted));
        assert!(error.to_string().contains("array-bytes"), "{error}");
        assert_eq!(running.server.metrics().shard_bytes, 1 << 20);
        drop((array, copies, client));
        assert!(running.is_empty().await, "{:?}", running.server.metrics());
        running.stop().await.unwrap();
    });
}

#[test]
fn peer_cannot_take_all_memory_of_the_devices() {
    test(|| async {
        let limits =
            Limits { total_array_bytes: 4096, peer_array_bytes: 3072, ..Limits::default() };
        let running = serving(limits).await;
        let honest = Client::connect(&running.address).await.unwrap();
        let shape = Shape::new([1024]).unwrap();
        let mut held = Vec::new();
        for _ in 0..3 {
            held.push(honest.put(DType::U8, &shape, DeviceId(0), vec![1; 1024]).await.unwrap());
        }
        let error = honest.put(DType::U8, &shape, DeviceId(0), vec![1; 1024]).await.unwrap_err();
        assert!(error.to_string().contains("array-bytes`"), "{error}");
        let own = running.server.local_session(crate::Ranges::supported()).unwrap();
        assert!(own.session().quotas.shard(Kind::Device, 1024).is_ok());
        drop((held, honest, own));
        running.stop().await.unwrap();
    });
}

#[test]
fn a_client_that_does_not_name_limits_is_told_which_one_it_met() {
    test(|| async {
        let limits = Limits { handles_per_session: 2, ..Limits::default() };
        let running = serving(limits).await;
        let client = Client::connect(&running.address).await.unwrap();
        let shape = Shape::new([1]).unwrap();
        let mut held = Vec::new();
        for _ in 0..2 {
            held.push(client.put(DType::U8, &shape, DeviceId(0), &b"a"[..]).await.unwrap());
        }
        let error = client.put(DType::U8, &shape, DeviceId(0), &b"a"[..]).await.unwrap_err();
        assert!(error.to_string().contains("`session-handles`"), "{error}");
        drop((held, client));
        running.stop().await.unwrap();
    });
}

/// A listener that gets no descriptors from the system for a while.
struct Starved {
    listener: TcpListener,
    refusals: AtomicUsize,
}

impl Accept for Starved {
    async fn accept(&self) -> std::io::Result<(TcpStream, SocketAddr)> {
        let left = self.refusals.load(Ordering::Relaxed);
        if left > 0 {
            self.refusals.store(left - 1, Ordering::Relaxed);
            return Err(rustix::io::Errno::MFILE.into());
        }
        self.listener.accept().await
    }
}

#[test]
fn listener_without_descriptors_backs_off_and_recovers() {
    test(|| async {
        const REFUSALS: usize = 6;
        let server = Server::builder(&plugin()).build().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let starved = Starved { listener, refusals: AtomicUsize::new(REFUSALS) };
        let since = Instant::now();
        let plain = Acceptor::new(&Encryption::default()).unwrap();
        let serving = Connections::new(Arc::clone(&server.registry), plain).serve(starved);
        let serving = tokio::spawn(serving);
        drop(Client::connect(&address).await.unwrap());
        // 5 milliseconds, doubled each time.
        assert!(since.elapsed() >= Duration::from_millis(5 * ((1 << REFUSALS) - 1)));
        server.registry.context.stop.send_replace(true);
        serving.await.unwrap().unwrap();
    });
}

#[test]
fn errors_of_a_listener_are_told_apart() {
    {
        for (errno, of_peer, last) in [
            (rustix::io::Errno::MFILE, false, false),
            (rustix::io::Errno::NFILE, false, false),
            (rustix::io::Errno::NOBUFS, false, false),
            (rustix::io::Errno::NOMEM, false, false),
            (rustix::io::Errno::CONNABORTED, true, false),
            (rustix::io::Errno::INTR, true, false),
            (rustix::io::Errno::INVAL, false, true),
        ] {
            let error = std::io::Error::from(errno);
            assert_eq!(is_of_peer(&error), of_peer, "{error}");
            assert_eq!(is_final(&error), last, "{error}");
        }
    }
}
