//! Calls of a hostile client over the network, with any metadata, and bodies in any pieces.

use std::{
    collections::VecDeque,
    convert::Infallible,
    net::SocketAddr,
    pin::Pin,
    task::{Context, Poll},
    time::Duration,
};

use bytes::{Buf as _, Bytes};
use http_body::Frame;
use prost::Message;
use serdes_proxy::{Limits, Ranges, Server, Tokens};
use serdes_stream_executor::{LayoutChoice, Plugin};
use tokio::{net::TcpListener, runtime::Runtime, sync::mpsc};
use tonic::{
    body::Body,
    codegen::{
        Body as _, Service as _,
        http::{HeaderMap, HeaderName, HeaderValue, Request, Response, header},
    },
    metadata::BinaryMetadataValue,
    transport::{Channel, Endpoint},
};

/// The token that the server requires.
const TOKEN: &str = "Bearer corpus-of-all-calls";
/// Placeholder for the session's key, which is unknown before the session is open.
const SESSION: &[u8; 8] = b"_SESSION";
/// Limit on the calls that are made of an input.
const MOST_CALLS: usize = 6;

const PATHS: [&str; 6] = [
    "HostBufferStore",
    "HostBufferLookup",
    "HostBufferDelete",
    "HostBufferReadFromDisk",
    "GetVersion",
    "IfrtSession",
];

/// The stream of small arrays, which only the client of this crate uses.
const SMALL: (u8, &str) = (0xff, "/serdes.proxy.SmallTransfers/Transfer");
/// Prefix of the paths of other calls.
const SERVICE: &str = "/xla.ifrt.proxy.GrpcIfrtService/";

/// Names of metadata entries.
const KEYS: [HeaderName; 6] = [
    HeaderName::from_static("ifrt-proxy-grpc-host-buffer-store-metadata-bin"),
    HeaderName::from_static("serdes-request-bin"),
    HeaderName::from_static("serdes-take-host-buffer"),
    HeaderName::from_static("ifrt-proxy-grpc-ifrt-session-metadata-bin"),
    header::AUTHORIZATION,
    HeaderName::from_static("serdes-brief"),
];

/// The first request of a session and its answer, with the fields that the target needs.
#[derive(Clone, PartialEq, Message)]
struct SessionMetadata {
    #[prost(message, optional, tag = "1")]
    version: Option<Version>,
}

#[derive(Clone, PartialEq, Message)]
struct Version {
    #[prost(int32, tag = "1")]
    protocol: i32,
    #[prost(int32, tag = "2")]
    serdes: i32,
}

/// A request without metadata for the data that a client begins with.
const INIT: &[u8] = &[0, 0, 0, 0, 2, 0x12, 0];

#[derive(Clone, PartialEq, Message)]
struct Answer {
    #[prost(message, optional, tag = "2")]
    begun: Option<Begun>,
}

#[derive(Clone, PartialEq, Message)]
struct Begun {
    #[prost(uint64, tag = "8")]
    session: u64,
}

/// A body of the frames that a sender provides.
struct Written(mpsc::UnboundedReceiver<Bytes>);

impl http_body::Body for Written {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.0.poll_recv(context).map(|bytes| Some(Ok(Frame::data(bytes?))))
    }
}

/// A call of an input.
struct Call {
    path: String,
    headers: HeaderMap,
    body: VecDeque<Bytes>,
}

/// Returns the next call of an input. Its first byte is the path (255 is the stream of small
/// arrays), its second the number of its parts. A part is its kind, its length in two bytes (little
/// endian), and its bytes: an entry of the metadata (kinds 0 to 5; from 64 on raw in place of
/// base64), bytes of the body (6), or a message of the body (7).
fn next_call(input: &mut &[u8], session: u64) -> Option<Call> {
    let (&[path, parts], rest) = input.split_first_chunk()?;
    *input = rest;
    let path = match path {
        path if path == SMALL.0 => SMALL.1.to_owned(),
        path => format!("{SERVICE}{}", PATHS[usize::from(path) % PATHS.len()]),
    };
    let mut call = Call { path, headers: HeaderMap::new(), body: VecDeque::new() };
    for _ in 0..parts % 8 {
        let Some((&[kind, low, high], rest)) = input.split_first_chunk() else { break };
        let length = usize::from(u16::from_le_bytes([low, high])).min(rest.len());
        let (bytes, rest) = rest.split_at(length);
        *input = rest;
        let bytes = with_session(bytes, session);
        match usize::from(kind % 8) {
            6 => call.body.push_back(bytes.into()),
            7 => {
                let mut message = vec![0];
                message.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
                message.extend_from_slice(&bytes);
                call.body.push_back(message.into());
            }
            key => {
                let encoded = BinaryMetadataValue::from_bytes(&bytes);
                let value = match kind < 64 && KEYS[key].as_str().ends_with("-bin") {
                    true => HeaderValue::from_bytes(encoded.as_encoded_bytes()),
                    false => HeaderValue::from_bytes(&bytes),
                };
                // A value that HTTP cannot carry is not sent.
                if let Ok(value) = value {
                    call.headers.append(&KEYS[key], value);
                }
            }
        }
    }
    Some(call)
}

/// Returns the bytes with the key of the session in place of its placeholders.
fn with_session(bytes: &[u8], session: u64) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for at in 0..bytes.len() {
        if let Some(place) = bytes.get_mut(at..at + SESSION.len())
            && place == SESSION
        {
            place.copy_from_slice(&session.to_le_bytes());
        }
    }
    bytes
}

/// Makes a call and returns its response, whose body may still be arriving.
async fn make(channel: &Channel, path: &str, headers: HeaderMap, body: Body) -> Response<Body> {
    let path = format!("http://localhost{path}");
    let mut request = Request::post(path).body(body).expect("a request");
    *request.headers_mut() = headers;
    let headers = request.headers_mut();
    headers.entry(header::AUTHORIZATION).or_insert(HeaderValue::from_static(TOKEN));
    headers.insert(header::TE, HeaderValue::from_static("trailers"));
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    let mut channel = channel.clone();
    std::future::poll_fn(|context| channel.poll_ready(context)).await.expect("a connection");
    channel.call(request).await.expect("an answer")
}

/// Returns the next frame of an answer.
async fn frame(body: &mut Body) -> Option<Frame<Bytes>> {
    let frame = std::future::poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await;
    frame.map(|frame| frame.expect("the rest of an answer"))
}

/// Reads a response to its end, and checks that it has a status, as every call must.
async fn read(answer: Response<Body>) {
    let (head, mut body) = answer.into_parts();
    let mut has_status = head.headers.contains_key("grpc-status");
    while let Some(frame) = frame(&mut body).await {
        let trailers = frame.trailers_ref();
        has_status |= trailers.is_some_and(|trailers| trailers.contains_key("grpc-status"));
    }
    assert!(has_status, "an answer without a status");
}

/// Opens a session. Returns its key, and its two ends; it ends when they are dropped.
async fn open(channel: &Channel) -> (u64, mpsc::UnboundedSender<Bytes>, Body) {
    let agreement = Ranges::supported();
    let (protocol, serdes) = (agreement.protocol().maximum(), agreement.serdes().maximum());
    let version = Version { protocol, serdes };
    let metadata = SessionMetadata { version: Some(version) }.encode_to_vec();
    let metadata = BinaryMetadataValue::from_bytes(&metadata);
    let metadata = HeaderValue::from_bytes(metadata.as_encoded_bytes()).expect("base64");
    let (requests, body) = mpsc::unbounded_channel();
    requests.send(Bytes::from_static(INIT)).expect("a body");
    let headers = HeaderMap::from_iter([(KEYS[3].clone(), metadata)]);
    let answer =
        make(channel, &format!("{SERVICE}{}", PATHS[5]), headers, Body::new(Written(body))).await;
    let mut answers = answer.into_body();
    let mut begun = Bytes::new();
    while begun.is_empty() {
        begun =
            frame(&mut answers).await.and_then(|frame| frame.into_data().ok()).expect("an answer");
    }
    begun.advance(5);
    let begun = Answer::decode(begun).expect("an answer").begun.expect("a session");
    (begun.session, requests, answers)
}

/// A server on the loopback.
struct Served {
    runtime: Runtime,
    server: Server,
    address: SocketAddr,
}

impl Served {
    fn start() -> Self {
        let plugin = Plugin::open("host:devices=2,memory=1048576", LayoutChoice::Detect);
        let mut limits = Limits::default();
        limits.session_host_bytes = 1 << 20;
        limits.session_array_bytes = 1 << 20;
        limits.handles_per_session = 1000;
        let moment = Duration::from_millis(20);
        (limits.host_buffer_timeout, limits.idle_timeout) = (moment, moment);
        let server = Server::builder(&plugin.expect("the embedded plug-in"))
            .limits(limits)
            .tokens(Tokens::parse(TOKEN.trim_start_matches("Bearer ")).expect("a token"))
            .build()
            .expect("a server");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        let runtime = runtime.expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).expect("a listener");
        let address = listener.local_addr().expect("an address");
        let serving = server.clone();
        runtime.spawn(async move { serving.serve(listener, std::future::pending()).await });
        Self { runtime, server, address }
    }

    /// Makes the calls of an input, each after the response to the previous one.
    async fn run(&self, mut input: &[u8]) {
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address));
        let channel = endpoint.expect("an address").connect().await.expect("a connection");
        let (session, requests, mut answers) = open(&channel).await;
        for _ in 0..MOST_CALLS {
            let Some(call) = next_call(&mut input, session) else { break };
            let (sender, body) = mpsc::unbounded_channel();
            call.body.into_iter().for_each(|bytes| drop(sender.send(bytes)));
            drop(sender);
            read(make(&channel, &call.path, call.headers, Body::new(Written(body))).await).await;
        }
        drop(requests);
        while frame(&mut answers).await.is_some() {}
        drop(channel);
        self.empty().await;
    }

    /// Waits until nothing is left of an ended session.
    async fn empty(&self) {
        let mut found = self.server.metrics();
        for _ in 0..5000 {
            if [found.sessions, found.arrays, found.shards, found.host_buffers, found.tasks]
                == [0; 5]
            {
                return;
            }
            tokio::time::sleep(Duration::from_millis(1)).await;
            found = self.server.metrics();
        }
        panic!("something is left of a session that is over: {found:?}");
    }
}

/// Makes the calls of a client with a session, one after the other. Each response must have a
/// status, and nothing may be left after the session.
pub fn proxy_calls(data: &[u8]) {
    thread_local! {
        static SERVED: Served = Served::start();
    }
    SERVED.with(|served| served.runtime.block_on(served.run(data)));
}
