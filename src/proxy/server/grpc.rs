//! The six calls of the service: who may, how many at a time, and what they are answered.

use std::{
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
};

use bytes::Bytes;
use prost::Message;
use tokio_stream::{Stream, StreamExt as _};
use tonic::{
    body::Body,
    codec::{Codec as _, EncodeBody},
    codegen::{
        Body as HttpBody,
        http::{HeaderMap, HeaderValue, Request, Response, header::CONTENT_TYPE},
    },
};
use tonic_prost::ProstCodec;

use super::{
    Shared,
    access::Shown,
    budget::{Account, Budget, Holding},
    connections::{Busy, Connection},
    frames::{binary, only},
    peers::{Identity, Peer},
    stream::ifrt_session,
    transfer::{delete, look_up, read_from_disk, store},
};
use crate::{
    codec::Status,
    proto::xla::ifrt::proxy::{GrpcGetVersionRequest, GrpcGetVersionResponse},
    proxy::{
        Ranges, service,
        status::{status, to_grpc},
    },
};

/// Who makes a call, and over which connection.
#[derive(Clone)]
pub(super) struct Caller {
    pub(super) identity: Identity,
    pub(super) peer: Arc<Peer>,
    /// Sessions of the connection.
    pub(super) sessions: Budget,
    /// A token is to come with the session.
    pub(super) token_to_come: bool,
}

/// A call: its metadata, its body, and who makes it.
pub(super) struct Call {
    pub(super) caller: Caller,
    pub(super) headers: HeaderMap,
    pub(super) body: Body,
}

/// What a call is answered.
pub(super) type Answered = Result<Response<Body>, Status>;

/// The answer to a call of a connection. Never fails: what is wrong is in the answer.
pub(super) async fn answer(
    shared: Arc<Shared>,
    connection: Arc<Connection>,
    request: Request<impl HttpBody<Data = Bytes, Error: Into<Error>> + Send + 'static>,
) -> Response<Body> {
    let busy = connection.begin();
    let (parts, body) = request.into_parts();
    let path = parts.uri.path();
    let admitted = admit(&shared, &connection, &parts.headers, path);
    let answered = match admitted {
        Ok((caller, held)) => {
            let call = Call { caller, headers: parts.headers, body: Body::new(body) };
            dispatch(shared, path, call).await.map(|answer| (answer, held))
        }
        Err(status) => Err(status),
    };
    match answered {
        Ok((answer, held)) => answer.map(|body| Body::new(Held { body, _held: held, _busy: busy })),
        Err(status) => to_grpc(&status).into_http(),
    }
}

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Lets a call in.
///
/// # Errors
/// UNAUTHENTICATED; RESOURCE_EXHAUSTED for too many calls.
fn admit(
    shared: &Arc<Shared>,
    connection: &Connection,
    headers: &HeaderMap,
    path: &str,
) -> Result<(Caller, Holding), Status> {
    let mut identity = connection.identity;
    let shown = shared.access.check(headers).inspect_err(|status| {
        shared.gauges.unauthenticated.fetch_add(1, Ordering::Relaxed);
        tracing::info!(peer = ?identity, path = path.escape_debug().to_string(), message = status.message(), "call refused");
        connection.refuse();
    })?;
    if let Shown::Token(digest) = shown {
        identity.token = Some(digest);
    }
    let peer = shared.peers.of(&identity, &shared.limits);
    let levels = vec![peer.calls.clone(), shared.budgets.calls.clone()];
    let held = Account::new(levels, Some(Arc::clone(&peer))).take_now(1)?;
    let sessions = connection.sessions.clone();
    Ok((Caller { identity, peer, sessions, token_to_come: shown == Shown::Later }, held))
}

async fn dispatch(shared: Arc<Shared>, path: &str, call: Call) -> Answered {
    match path {
        service::GET_VERSION => get_version(shared, call).await,
        service::IFRT_SESSION => ifrt_session(shared, call),
        service::HOST_BUFFER_STORE => store(shared, call).await,
        service::HOST_BUFFER_LOOKUP => look_up(shared, call).await,
        service::HOST_BUFFER_DELETE => delete(shared, call).await,
        service::HOST_BUFFER_READ_FROM_DISK => read_from_disk(shared, call).await,
        path => Err(status!(
            Unimplemented,
            "there is no call `{}`; this is xla.ifrt.proxy.GrpcIfrtService",
            path.chars().take(100).collect::<String>().escape_debug()
        )),
    }
}

async fn get_version(shared: Arc<Shared>, call: Call) -> Answered {
    let request: GrpcGetVersionRequest = only(call.body, shared.limits.handshake_timeout).await?;
    let (peer, client) = (call.caller.identity, Ranges::from_request(&request)?);
    let answer = shared.ranges.answer(client).inspect_err(|_| {
        tracing::warn!(?peer, %client, ranges = %shared.ranges, "handshake refused");
    })?;
    tracing::debug!(?peer, %client, %answer, "handshake");
    Ok(one(GrpcGetVersionResponse { version: Some(answer.to_proto()) }))
}

/// The answer of a call that has one.
pub(super) fn one<M: Message + Default + Send + 'static>(message: M) -> Response<Body> {
    many(tokio_stream::once(Ok(message)))
}

/// The answer of a call that has many.
pub(super) fn many<M: Message + Default + Send + 'static>(
    messages: impl Stream<Item = Result<M, Status>> + Send + 'static,
) -> Response<Body> {
    let encoder = ProstCodec::<M, M>::default().encoder();
    let messages = messages.map(|message| message.map_err(|status| to_grpc(&status)));
    let body = EncodeBody::new_server(encoder, messages, None, Default::default(), None);
    let mut response = Response::new(Body::new(body));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
    response
}

/// The message of a metadata entry.
pub(super) fn metadata<M: Message + Default>(
    headers: &HeaderMap,
    key: &'static str,
    missing: impl FnOnce() -> Status,
    damaged: impl FnOnce(String) -> Status,
) -> Result<M, Status> {
    match binary(headers, key).ok_or_else(missing)? {
        Err(error) => Err(damaged(format!("not in base64 ({error})"))),
        Ok(bytes) => M::decode(bytes).map_err(|error| damaged(error.to_string())),
    }
}

/// An answer on its way, which counts as a call in progress until it is there or given up.
struct Held {
    body: Body,
    _held: Holding,
    _busy: Busy,
}

impl HttpBody for Held {
    type Data = Bytes;
    type Error = tonic::Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, tonic::Status>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> http_body::SizeHint {
        self.body.size_hint()
    }
}
