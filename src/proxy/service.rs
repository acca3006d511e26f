//! The gRPC service on the wire: its paths, its metadata keys, and the codec of its messages.

use std::{
    future::Future,
    task::{Context, Poll},
};

use tonic::{Request, Response, Status, Streaming, codegen::Service};

/// A path of a call.
macro_rules! path {
    ($name:literal) => {
        concat!("/xla.ifrt.proxy.GrpcIfrtService/", $name)
    };
}

pub(super) const GET_VERSION: &str = path!("GetVersion");
pub(super) const IFRT_SESSION: &str = path!("IfrtSession");
pub(super) const HOST_BUFFER_STORE: &str = path!("HostBufferStore");
pub(super) const HOST_BUFFER_LOOKUP: &str = path!("HostBufferLookup");
pub(super) const HOST_BUFFER_DELETE: &str = path!("HostBufferDelete");
pub(super) const HOST_BUFFER_READ_FROM_DISK: &str = path!("HostBufferReadFromDisk");

/// The key of a session's metadata: a `GrpcIfrtSessionMetadata`.
pub(super) const SESSION_METADATA: &str = "ifrt-proxy-grpc-ifrt-session-metadata-bin";
/// The key of a store's metadata: a `GrpcHostBufferStoreMetadata`.
pub(super) const STORE_METADATA: &str = "ifrt-proxy-grpc-host-buffer-store-metadata-bin";

/// The most bytes of data in a message of a host-buffer call, as the real ones have it.
pub(super) const CHUNK_BYTES: usize = 1 << 20;

/// The largest request of a session. Programs can be far beyond the usual 4 MiB, and even one that is not served must not end the session.
pub(super) const SESSION_MESSAGE_BYTES: usize = 512 << 20;
/// The largest other message: a part of a host buffer.
pub(super) const MESSAGE_BYTES: usize = 64 << 20;

/// A function as the handler of a call. (A service with a stream as its request handles client-streaming calls as well.)
#[derive(Clone)]
pub(super) struct Handler<F>(pub(super) F);

impl<F, R, M, Reply> Service<Request<R>> for Handler<F>
where
    F: FnMut(Request<R>) -> Reply,
    Reply: Future<Output = Result<Response<M>, Status>>,
{
    type Response = Response<M>;
    type Error = Status;
    type Future = Reply;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<R>) -> Reply {
        (self.0)(request)
    }
}

/// The stream of messages of a request.
pub(super) type Inbound<M> = Request<Streaming<M>>;
