//! Dispatches the calls of the services after checking access and limits.

use std::{
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
};

use bytes::Bytes;
use serdes::{
    codec::Status,
    proto::xla::ifrt::proxy::{GrpcGetVersionRequest, GrpcGetVersionResponse},
};
use tonic::{
    body::Body,
    codegen::{
        Body as HttpBody,
        http::{HeaderMap, HeaderValue, Request, Response},
    },
    metadata::MetadataMap,
};

use super::{
    call::{Answered, Call, one},
    connection::{Busy, Connection},
    frames::only,
    health,
    keep::keep,
    small_transfers::small_transfers,
    stream::ifrt_session,
    transfer::{delete, look_up, read_from_disk, store},
};
use crate::{
    Handshake as _, handshake,
    server::{access::Shown, budget::Permit, peers::Caller, registry::Registry},
    service,
    status::{status, to_grpc},
};

/// Answers a call of a connection. Never fails: errors are part of the answer.
pub(crate) async fn answer(
    registry: Arc<Registry>,
    connection: Arc<Connection>,
    request: Request<impl HttpBody<Data = Bytes, Error: Into<Error>> + Send + 'static>,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let (path, body) = (parts.uri.path(), Body::new(body));
    let (busy, answered) = if health::is_health(path) {
        let answered = match health::room(&registry, &connection.peer) {
            Ok(held) => {
                Box::pin(health::answer(registry, path, body)).await.map(|answer| (answer, held))
            }
            Err(status) => Err(status),
        };
        (connection.begin_unnamed(), answered)
    } else {
        let busy = connection.begin();
        let answered = match admit(&registry, &connection, &parts.headers, path) {
            Ok((caller, held)) => {
                let metadata = MetadataMap::from_headers(parts.headers);
                let call = Call { caller, metadata, body };
                dispatch(registry, path, call).await.map(|answer| (answer, held))
            }
            Err(status) => Err(status),
        };
        (busy, answered)
    };
    match answered {
        Ok((answer, held)) => answer.map(|body| Body::new(Held { body, _held: held, _busy: busy })),
        Err(status) => to_grpc(&status).into_http(),
    }
}

type Error = Box<dyn std::error::Error + Send + Sync>;

/// Admits a call.
///
/// # Errors
/// UNAUTHENTICATED; RESOURCE_EXHAUSTED for too many calls.
fn admit(
    registry: &Registry,
    connection: &Connection,
    headers: &HeaderMap,
    path: &str,
) -> Result<(Caller, Permit), Status> {
    let mut identity = connection.identity;
    let shown = registry.access.check(headers).inspect_err(|status| {
        registry.context.gauges.unauthenticated.fetch_add(1, Ordering::Relaxed);
        tracing::info!(peer = ?identity, path = path.escape_debug().to_string(), reason = status.message(), "call refused");
        connection.refuse();
    })?;
    if let Shown::Token(digest) = shown {
        identity.token = Some(digest);
    }
    let peer = registry.peers.of(&identity, &registry.context.limits);
    let levels = [&peer.budgets.calls, &registry.context.budgets.calls];
    let held = Permit::take_now(levels, Some(Arc::clone(&peer)), 1)?;
    let sessions = connection.sessions.clone();
    Ok((Caller { identity, peer, sessions, token_to_come: shown == Shown::Later }, held))
}

/// Dispatches a call to a boxed future. A single future would be as large as its largest variant,
/// and each call would be moved several times until its task has it.
async fn dispatch(registry: Arc<Registry>, path: &str, call: Call) -> Answered {
    match path {
        service::GET_VERSION => Box::pin(get_version(registry, call)).await,
        service::IFRT_SESSION => ifrt_session(registry, call),
        service::HOST_BUFFER_STORE => Box::pin(store(registry, call)).await,
        service::HOST_BUFFER_LOOKUP => Box::pin(look_up(registry, call)).await,
        service::HOST_BUFFER_DELETE => Box::pin(delete(registry, call)).await,
        service::HOST_BUFFER_READ_FROM_DISK => Box::pin(read_from_disk(registry, call)).await,
        service::SMALL_TRANSFERS => small_transfers(&registry, call),
        service::KEEP => Box::pin(keep(registry, call)).await,
        path => Err(status!(
            Unimplemented,
            "there is no call `{}`; this is xla.ifrt.proxy.GrpcIfrtService",
            path.chars().take(100).collect::<String>().escape_debug()
        )),
    }
}

async fn get_version(registry: Arc<Registry>, call: Call) -> Answered {
    let request: GrpcGetVersionRequest =
        only(call.body, registry.context.limits.handshake_timeout).await?;
    let (peer, client) = (call.caller.identity, handshake::from_request(&request)?);
    registry.is_open()?;
    let answer = registry.ranges.answer(client).inspect_err(|_| {
        tracing::warn!(?peer, %client, ranges = %registry.ranges, "handshake refused");
    })?;
    tracing::debug!(?peer, %client, %answer, "handshake");
    let mut answered = one(GrpcGetVersionResponse { version: Some(handshake::to_proto(answer)) });
    for key in [service::TAKES_REQUESTS, service::HAS_SMALL_TRANSFERS] {
        answered.headers_mut().insert(key, HeaderValue::from_static("yes"));
    }
    Ok(answered)
}

/// A pending answer, which counts as a call in progress until it is sent or abandoned.
struct Held {
    body: Body,
    _held: Permit,
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
