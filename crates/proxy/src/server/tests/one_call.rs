//! Tests of transfers by this crate's client that include the request that uses their host buffer.

use std::{future::Future as _, task::Context, time::Duration};

use bytes::Bytes;
use prost::Message as _;
use serdes::{
    ifrt::{DType, DeviceId, Shape},
    proto::xla::ifrt::proxy::{
        CopyToHostBufferRequest, GrpcHostBufferLookupRequest, GrpcHostBufferLookupResponse,
        GrpcHostBufferStoreRequest, GrpcHostBufferStoreResponse, IfrtRequest,
        ifrt_request::Request,
    },
};
use tonic::{Code, Request as Call, codegen::http::uri::PathAndQuery, metadata::MetadataValue};
use tonic_prost::ProstCodec;

use super::network::{Running, channel, plugin, test};
use crate::{Client, Server, requests, service};

async fn running() -> Running {
    Running::start(Server::builder(&plugin()).build().unwrap()).await
}

/// Sizes: empty, one message, the largest that counts as small, several pieces, and the amount that
/// a device takes at a time.
const SIZES: [i64; 6] = [0, 1000, 64 << 10, (64 << 10) + 1, 1 << 20, 9 << 20];

async fn there_and_back(client: &Client) {
    for size in SIZES {
        let bytes: Bytes = (0..size).map(|at| (at % 251) as u8).collect();
        let shape = Shape::new([size]).unwrap();
        let array = client.put(DType::U8, &shape, DeviceId(1), bytes.clone()).await.unwrap();
        for _ in 0..2 {
            assert!(client.get(&array).await.unwrap() == bytes, "{size}");
        }
    }
}

#[test]
fn a_put_and_a_get_are_the_same_with_requests_and_without() {
    test(|| async {
        let running = running().await;
        let with = Client::connect(&running.address).await.unwrap();
        there_and_back(&with).await;
        // As with a server that does not announce support for them, or has no stream of small
        // arrays.
        let without = Client::connect_as_to_others(&running.address, false).await.unwrap();
        there_and_back(&without).await;
        let in_calls = Client::connect_as_to_others(&running.address, true).await.unwrap();
        there_and_back(&in_calls).await;
        let found = running.server.metrics();
        assert_eq!((found.failed_requests, found.host_buffers), (0, 0));
        drop((with, without, in_calls));
        assert!(running.is_empty().await);
        running.stop().await.unwrap();
    });
}

#[test]
fn abandoned_put_leaves_nothing() {
    test(|| async {
        let running = running().await;
        let client = Client::connect(&running.address).await.unwrap();
        let shape = Shape::new([100]).unwrap();
        for _ in 0..50 {
            let put = client.put(DType::U8, &shape, DeviceId(0), vec![7; 100]);
            let mut put = Box::pin(put);
            let mut context = Context::from_waker(std::task::Waker::noop());
            assert!(put.as_mut().poll(&mut context).is_pending());
            drop(put);
        }
        let mut left = 50;
        for _ in 0..500 {
            let found = running.server.metrics();
            // All requests were begun, and have succeeded or failed.
            left = found.arrays + found.host_buffers + found.tasks;
            if left == 0 && found.requests >= 50 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(left, 0);
        running.stop().await.unwrap();
    });
}

#[test]
fn store_is_answered_by_a_status_alone_if_asked() {
    test(|| async {
        let running = running().await;
        let client = Client::connect(&running.address).await.unwrap();
        for (handle, is_brief) in [(5, false), (6, true)] {
            let chunks = [GrpcHostBufferStoreRequest { data: Bytes::from_static(b"abc") }];
            let mut call = Call::new(tokio_stream::iter(chunks));
            let metadata = requests::store_metadata(client.session_id(), handle, 3);
            let metadata = MetadataValue::from_bytes(&metadata.encode_to_vec());
            call.metadata_mut().insert_bin(service::STORE_METADATA, metadata);
            if is_brief {
                call.metadata_mut().insert(service::BRIEF, MetadataValue::from_static("yes"));
            }
            let codec: ProstCodec<GrpcHostBufferStoreRequest, GrpcHostBufferStoreResponse> =
                ProstCodec::default();
            let path = PathAndQuery::from_static(service::HOST_BUFFER_STORE);
            let answer = channel(&running.address).await.streaming(call, path, codec).await;
            let mut messages = answer.unwrap().into_inner();
            let mut found = 0;
            while messages.message().await.unwrap().is_some() {
                found += 1;
            }
            assert_eq!(found, usize::from(!is_brief));
        }
        drop(client);
        assert!(running.is_empty().await);
        running.stop().await.unwrap();
    });
}

fn with<T>(message: T, request: &IfrtRequest) -> Call<T> {
    let mut call = Call::new(message);
    let value = MetadataValue::from_bytes(&request.encode_to_vec());
    call.metadata_mut().insert_bin(service::REQUEST, value);
    call
}

#[test]
fn transfer_brings_only_the_request_of_its_buffer() {
    test(|| async {
        let running = running().await;
        let client = Client::connect(&running.address).await.unwrap();
        let session = client.session_id();
        let copied = |host_buffer_handle| {
            Request::CopyToHostBufferRequest(CopyToHostBufferRequest {
                array_handle: 1,
                host_buffer_handle,
                byte_strides: None,
            })
        };
        let gone = Request::DestructArrayRequest(requests::destruct(vec![1]));
        for request in [copied(3), gone] {
            let request = requests::numbered(0, 1, request);
            let codec: ProstCodec<GrpcHostBufferLookupRequest, GrpcHostBufferLookupResponse> =
                ProstCodec::default();
            let call = with(requests::look_up(session, 2), &request);
            let path = PathAndQuery::from_static(service::HOST_BUFFER_LOOKUP);
            let answer = channel(&running.address).await.server_streaming(call, path, codec).await;
            let status = answer.unwrap_err();
            assert_eq!(status.code(), Code::InvalidArgument, "{status:?}");
            assert!(status.message().contains("not for it"), "{status:?}");

            let chunks = tokio_stream::iter([GrpcHostBufferStoreRequest { data: Bytes::new() }]);
            let mut call = with(chunks, &request);
            let metadata = requests::store_metadata(session, 2, 0).encode_to_vec();
            let metadata = MetadataValue::from_bytes(&metadata);
            call.metadata_mut().insert_bin(service::STORE_METADATA, metadata);
            let codec: ProstCodec<GrpcHostBufferStoreRequest, GrpcHostBufferStoreResponse> =
                ProstCodec::default();
            let path = PathAndQuery::from_static(service::HOST_BUFFER_STORE);
            let answer = channel(&running.address).await.client_streaming(call, path, codec).await;
            assert_eq!(answer.unwrap_err().code(), Code::InvalidArgument);
        }
        // Nor may it fail: its error is that of the call, and no buffer is left.
        let codec: ProstCodec<GrpcHostBufferLookupRequest, GrpcHostBufferLookupResponse> =
            ProstCodec::default();
        let call = with(requests::look_up(session, 2), &requests::numbered(0, 1, copied(2)));
        let path = PathAndQuery::from_static(service::HOST_BUFFER_LOOKUP);
        let answer = channel(&running.address).await.server_streaming(call, path, codec).await;
        let status = answer.unwrap_err();
        assert_eq!(status.code(), Code::NotFound);
        assert!(status.message().contains("no array 1"), "{status:?}");
        drop(client);
        assert!(running.is_empty().await);
        running.stop().await.unwrap();
    });
}
