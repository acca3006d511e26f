//! Tests of the stream of a session's small arrays.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;
use serdes::{
    codec::StatusCode,
    ifrt::{DType, DeviceId, DeviceList, HloSharding, MemoryKind, Shape, Sharding},
    proto::xla::ifrt::proxy::ifrt_request::Request,
    version::SerDesVersion,
};
use tokio::{sync::mpsc, task::JoinSet};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{
    Code, Request as Call, Streaming, codegen::http::uri::PathAndQuery, metadata::MetadataValue,
};
use tonic_prost::ProstCodec;

use super::network::{Running, channel, plugin, test};
use crate::{
    Client, ProxyError, Server, requests,
    server::{
        requests::{Answer, begin},
        sessions::{Direction, HostBuffer},
    },
    service,
    small_transfers::{MOST_BYTES, SmallTransfer, SmallTransferred},
};

async fn running() -> Running {
    Running::start(Server::builder(&plugin()).build().unwrap()).await
}

fn shape(bytes: i64) -> Shape {
    Shape::new([bytes]).unwrap()
}

#[test]
fn small_arrays_round_trip_beside_other_clients() {
    test(|| async {
        let running = running().await;
        let mut tasks = JoinSet::new();
        for client in 0..3_u8 {
            let client_of = Client::connect(&running.address).await.unwrap();
            for task in 0..16_u8 {
                let own = client_of.clone();
                tasks.spawn(async move {
                    for turn in 0..40_u8 {
                        let size = usize::from(turn) * 401 + usize::from(task);
                        let bytes: Bytes = vec![client ^ task ^ turn; size].into();
                        let shape = shape(size as i64);
                        let device = DeviceId(i32::from(turn % 2));
                        let array = own.put(DType::U8, &shape, device, bytes.clone()).await;
                        assert!(own.get(&array.unwrap()).await.unwrap() == bytes);
                    }
                });
            }
        }
        while let Some(done) = tasks.join_next().await {
            done.unwrap();
        }
        assert!(running.is_empty().await);
        let found = running.server.metrics();
        assert_eq!(found.failed_requests, 0);
        running.stop().await.unwrap();
    });
}

#[test]
fn a_small_array_that_cannot_be_says_why_and_others_go_on() {
    test(|| async {
        let running = running().await;
        let client = Client::connect(&running.address).await.unwrap();
        let three = shape(3);
        let put = |device| client.put(DType::U8, &three, DeviceId(device), &b"abc"[..]);
        let array = put(0).await.unwrap();
        let Err(ProxyError::Status(status)) = put(7).await else { panic!("there are two devices") };
        assert_eq!(status.code(), StatusCode::NotFound, "{status:?}");
        client.delete(&array).await.unwrap();
        let Err(ProxyError::Status(status)) = client.get(&array).await else { panic!("deleted") };
        assert!(status.message().contains("delete"), "{status:?}");
        assert_eq!(client.get(&put(1).await.unwrap()).await.unwrap(), &b"abc"[..]);
        drop((array, client));
        assert!(running.is_empty().await);
        running.stop().await.unwrap();
    });
}

#[test]
fn small_arrays_use_single_calls_after_their_stream_ends() {
    test(|| async {
        let running = running().await;
        let client = Client::connect(&running.address).await.unwrap();
        for _ in 0..2 {
            let array = client.put(DType::U8, &shape(3), DeviceId(1), &b"abc"[..]).await.unwrap();
            assert_eq!(client.get(&array).await.unwrap(), &b"abc"[..]);
            client.end_small_transfers().await;
        }
        drop(client);
        assert!(running.is_empty().await);
        running.stop().await.unwrap();
    });
}

#[test]
fn a_server_that_stops_ends_the_stream() {
    test(|| async {
        let running = running().await;
        let client = Client::connect(&running.address).await.unwrap();
        let array = client.put(DType::U8, &shape(3), DeviceId(1), &b"abc"[..]).await.unwrap();
        running.stop().await.unwrap();
        assert!(client.get(&array).await.is_err());
    });
}

/// The client's end of a session's stream.
struct Stream {
    requests: mpsc::UnboundedSender<SmallTransfer>,
    answers: Streaming<SmallTransferred>,
    next_op: u64,
}

impl Stream {
    async fn open(running: &Running, session: u64) -> Result<Self, tonic::Status> {
        let (requests, outgoing) = mpsc::unbounded_channel();
        let mut call = Call::new(UnboundedReceiverStream::new(outgoing));
        let metadata = requests::store_metadata(session, 0, 0).encode_to_vec();
        let metadata = MetadataValue::from_bytes(&metadata);
        call.metadata_mut().insert_bin(service::STORE_METADATA, metadata);
        let codec: ProstCodec<SmallTransfer, SmallTransferred> = ProstCodec::default();
        let path = PathAndQuery::from_static(service::SMALL_TRANSFERS);
        let answers = channel(&running.address).await.streaming(call, path, codec).await?;
        Ok(Self { requests, answers: answers.into_inner(), next_op: 1 })
    }

    fn send(&mut self, request: Request, data: impl Into<Bytes>) -> u64 {
        let request = Some(requests::numbered(self.next_op, 1, request));
        self.requests.send(SmallTransfer { request, data: data.into() }).unwrap();
        self.next_op += 1;
        self.next_op - 1
    }

    async fn ask(&mut self, request: Request, data: impl Into<Bytes>) -> Result<Bytes, i32> {
        let op_id = self.send(request, data);
        let answer = self.answers.message().await.unwrap().unwrap();
        assert_eq!(answer.op_id, op_id);
        answer.status.map_or(Ok(answer.data), |status| Err(status.code))
    }
}

fn make(bytes: i64, handle: u64) -> Request {
    let devices = DeviceList::from([0]);
    let sharding = HloSharding::replicated(devices, MemoryKind::new("device")).unwrap();
    let sharding = Sharding::from(sharding);
    let strides = requests::row_major_strides(DType::U8, &shape(bytes));
    let version = SerDesVersion::current();
    let request =
        requests::make_array(DType::U8, &shape(bytes), &sharding, strides, handle, version);
    Request::MakeArrayFromHostBufferRequest(request.unwrap())
}

fn copy(array: u64, handle: u64) -> Request {
    Request::CopyToHostBufferRequest(requests::copy_to_host_buffer(array, handle))
}

#[test]
fn invalid_small_transfer_is_refused() {
    const INVALID: i32 = StatusCode::InvalidArgument as i32;
    test(|| async {
        let running = running().await;
        let client = Client::connect(&running.address).await.unwrap();
        let unknown = Stream::open(&running, client.session_id() ^ 1).await;
        assert_eq!(unknown.err().map(|status| status.code()), Some(Code::NotFound));
        let mut stream = Stream::open(&running, client.session_id()).await.unwrap();
        let gone = Request::DestructArrayRequest(requests::destruct(vec![1]));
        assert_eq!(stream.ask(gone, Bytes::new()).await, Err(INVALID));
        // Fewer and more bytes than the array has.
        for (handle, data) in [(101, &b"ab"[..]), (111, b"abcd")] {
            assert_eq!(stream.ask(make(3, handle), data).await, Err(INVALID));
            // Its handle has the reason.
            let read = stream.ask(copy(handle, handle + 1), Bytes::new()).await;
            assert_eq!(read, Err(INVALID));
        }
        assert_eq!(stream.ask(make(3, 103), &b"abc"[..]).await, Ok(Bytes::new()));
        assert_eq!(stream.ask(copy(103, 104), Bytes::new()).await, Ok(Bytes::from_static(b"abc")));
        // An array that is not small, in a message that still fits into the stream.
        let bytes = MOST_BYTES as i64 + 1;
        let data = vec![7; bytes as usize];
        assert_eq!(stream.ask(make(bytes, 105), data).await, Ok(Bytes::new()));
        assert_eq!(stream.ask(copy(105, 106), Bytes::new()).await, Err(INVALID));
        // A message that is too long.
        stream.send(make(bytes, 107), vec![7; 3 * MOST_BYTES as usize]);
        let status = stream.answers.message().await.unwrap_err();
        assert_eq!(status.code(), Code::ResourceExhausted, "{status:?}");
        drop((stream, client));
        assert!(running.is_empty().await);
        running.stop().await.unwrap();
    });
}

#[test]
fn waiting_read_delays_no_other_request() {
    test(|| async {
        let running = running().await;
        let client = Client::connect(&running.address).await.unwrap();
        let mut stream = Stream::open(&running, client.session_id()).await.unwrap();
        // An array whose data arrive later.
        let session = Arc::clone(&running.server.registry.sessions()[&client.session_id()]);
        let Answer::Later(later) = begin(&session, Some(&make(3, 201))) else {
            panic!("its data is not there")
        };
        let later = tokio::spawn(later);
        let waits = stream.send(copy(201, 202), Bytes::new());
        for turn in 0..200 {
            let handle = 300 + 2 * turn;
            assert_eq!(stream.ask(make(3, handle), &b"abc"[..]).await, Ok(Bytes::new()));
            let read = stream.ask(copy(handle, handle + 1), Bytes::new()).await;
            assert_eq!(read, Ok(Bytes::from_static(b"abc")));
        }
        let held = session.hold(3, Direction::Store).await.unwrap();
        let buffer = HostBuffer::of_bytes(Bytes::from_static(b"def"), held);
        session.host_buffers.fill(201).unwrap().finish(buffer);
        let answer = stream.answers.message().await.unwrap().unwrap();
        assert_eq!((answer.op_id, &answer.data[..]), (waits, &b"def"[..]));
        later.await.unwrap().unwrap();
        drop((stream, client, session));
        assert!(running.is_empty().await);
        running.stop().await.unwrap();
    });
}
