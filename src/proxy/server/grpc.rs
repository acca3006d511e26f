//! The six calls of the service.

use std::{
    convert::Infallible,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use prost::Message;
use tonic::{Request, Response, body::Body, codegen::http, server::Grpc};
use tonic_prost::ProstCodec;

use super::{
    Shared,
    stream::ifrt_session,
    transfer::{delete, look_up, read_from_disk, store},
};
use crate::{
    codec::Status,
    proto::xla::ifrt::proxy::{
        GrpcGetVersionRequest, GrpcGetVersionResponse, GrpcHostBufferDeleteRequest,
        GrpcHostBufferLookupRequest, GrpcHostBufferReadFromDiskRequest, GrpcHostBufferStoreRequest,
        IfrtRequest,
    },
    proxy::{
        Ranges,
        service::{self, Handler, Inbound},
        status::to_grpc,
    },
};

/// The service. Clones are the same.
#[derive(Clone)]
pub(super) struct Service {
    shared: Arc<Shared>,
}

impl Service {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared }
    }
}

type Call = Pin<Box<dyn Future<Output = Result<http::Response<Body>, Infallible>> + Send>>;

/// The codec of a call. Its limit is more than the usual one, but a limit: room for a message is made when its length comes.
fn grpc<T, U>(limit: usize) -> Grpc<ProstCodec<T, U>>
where
    T: Message + Send + 'static,
    U: Message + Default + Send + 'static,
{
    Grpc::new(ProstCodec::default()).max_decoding_message_size(limit)
}

impl tonic::codegen::Service<http::Request<Body>> for Service {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Call;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Call {
        let shared = Arc::clone(&self.shared);
        let limit = match request.uri().path() {
            service::IFRT_SESSION => service::SESSION_MESSAGE_BYTES,
            _ => service::MESSAGE_BYTES,
        };
        // A handler for each call; the codec knows the messages by the handler's types.
        macro_rules! answer {
            ($kind:ident, $handler:ident, $message:ty) => {
                Box::pin(async move {
                    let handler = move |request: $message| $handler(Arc::clone(&shared), request);
                    Ok(grpc(limit).$kind(Handler(handler), request).await)
                })
            };
        }
        match request.uri().path() {
            service::GET_VERSION => answer!(unary, get_version, Request<GrpcGetVersionRequest>),
            service::IFRT_SESSION => answer!(streaming, ifrt_session, Inbound<IfrtRequest>),
            service::HOST_BUFFER_STORE => {
                answer!(client_streaming, store, Inbound<GrpcHostBufferStoreRequest>)
            }
            service::HOST_BUFFER_LOOKUP => {
                answer!(server_streaming, look_up, Request<GrpcHostBufferLookupRequest>)
            }
            service::HOST_BUFFER_DELETE => {
                answer!(unary, delete, Request<GrpcHostBufferDeleteRequest>)
            }
            service::HOST_BUFFER_READ_FROM_DISK => {
                answer!(unary, read_from_disk, Request<GrpcHostBufferReadFromDiskRequest>)
            }
            path => {
                let status = tonic::Status::unimplemented(format!(
                    "there is no call `{}`; this is xla.ifrt.proxy.GrpcIfrtService",
                    path.escape_debug()
                ));
                Box::pin(async move { Ok(status.into_http()) })
            }
        }
    }
}

async fn get_version(
    shared: Arc<Shared>,
    request: Request<GrpcGetVersionRequest>,
) -> Result<Response<GrpcGetVersionResponse>, tonic::Status> {
    let peer = request.remote_addr();
    let client = Ranges::from_request(request.get_ref()).map_err(|status| to_grpc(&status))?;
    let answer = shared.ranges.answer(client).map_err(|status| {
        tracing::warn!(?peer, %client, ranges = %shared.ranges, "handshake refused");
        to_grpc(&status)
    })?;
    tracing::debug!(?peer, %client, %answer, "handshake");
    Ok(Response::new(GrpcGetVersionResponse { version: Some(answer.to_proto()) }))
}

/// The message of a metadata entry.
pub(super) fn metadata<M: Message + Default, T>(
    request: &Request<T>,
    key: &'static str,
    missing: impl FnOnce() -> Status,
    damaged: impl FnOnce(String) -> Status,
) -> Result<M, Status> {
    let value = request.metadata().get_bin(key).ok_or_else(missing)?;
    match value.to_bytes() {
        Err(error) => Err(damaged(format!("not in base64 ({error})"))),
        Ok(bytes) => M::decode(bytes).map_err(|error| damaged(error.to_string())),
    }
}
