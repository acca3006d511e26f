//! A call of the service, and the forms of its answer.

use bytes::Bytes;
use prost::Message;
use serdes::codec::Status;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{
    body::Body,
    codec::{Codec as _, EncodeBody},
    codegen::http::{HeaderValue, Response, header::CONTENT_TYPE},
    metadata::{MetadataMap, MetadataValue},
};
use tonic_prost::ProstCodec;

use crate::{bulk::DataMessages, server::peers::Caller, service, status::to_grpc};

/// A call: its metadata, its body and its caller.
pub(crate) struct Call {
    pub(crate) caller: Caller,
    pub(crate) metadata: MetadataMap,
    pub(crate) body: Body,
}

/// Answer to a call.
pub(crate) type Answered = Result<Response<Body>, Status>;

/// Creates an answer of one message.
pub(crate) fn one<M: Message + Default + Send + 'static>(message: M) -> Response<Body> {
    many(tokio_stream::once(Ok(message)))
}

/// Creates an answer without the call's message, for clients that accept this.
pub(crate) fn done() -> Response<Body> {
    let mut response = response(Body::empty());
    response.headers_mut().insert(service::GRPC_STATUS, HeaderValue::from_static("0"));
    response
}

/// Creates an answer of many messages.
pub(crate) fn many<M: Message + Default + Send + 'static>(
    messages: impl Stream<Item = Result<M, Status>> + Send + 'static,
) -> Response<Body> {
    let encoder = ProstCodec::<M, M>::default().encoder();
    let messages = messages.map(|message| message.map_err(|status| to_grpc(&status)));
    let body = EncodeBody::new_server(encoder, messages, None, Default::default(), None);
    response(Body::new(body))
}

/// Creates an answer of many messages with one data field each, which is not copied.
pub(crate) fn data(
    parts: impl Stream<Item = Result<Bytes, Status>> + Send + 'static,
) -> Response<Body> {
    response(DataMessages::answer(parts))
}

/// Creates an answer whose body ends with the status.
pub(crate) fn streamed(body: Body) -> Response<Body> {
    response(body)
}

fn response(body: Body) -> Response<Body> {
    let mut response = Response::new(body);
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}

/// Decodes the message in a metadata entry.
pub(crate) fn metadata<M: Message + Default>(
    metadata: &MetadataMap,
    key: &'static str,
    missing: impl FnOnce() -> Status,
    damaged: impl FnOnce(String) -> Status,
) -> Result<M, Status> {
    match metadata.get_bin(key).map(MetadataValue::to_bytes).ok_or_else(missing)? {
        Err(error) => Err(damaged(format!("not in base64 ({error})"))),
        Ok(bytes) => M::decode(bytes).map_err(|error| damaged(error.to_string())),
    }
}
