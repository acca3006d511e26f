//! The stream of a session: receives requests in order, and sends answers when they are ready.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::Poll,
    time::Duration,
};

use prost::encoding::{WireType, decode_key, decode_varint};
use serdes::{
    codec::{DeserializeOptions, FromProto as _, Status, StatusCode},
    ifrt::AttributeMap,
    proto::xla::ifrt::proxy::{GrpcIfrtSessionMetadata, IfrtRequest, IfrtResponse},
};
use tokio::{
    sync::{mpsc, oneshot},
    task::JoinSet,
    time::{Instant, sleep_until},
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::metadata::MetadataMap;
use tracing::Instrument as _;

use super::{
    call::{Answered, Call, many, metadata},
    frames::{Messages, Received, Terms},
};
use crate::{
    handshake,
    server::{
        access::SESSION_TOKEN,
        budget::Permit,
        deadline::within,
        limits::Limits,
        metrics::Gauges,
        peers::Caller,
        registry::Registry,
        requests::{Answer, Asked, Reply, begin, respond},
        sessions::Session,
    },
    service,
    status::status,
};

pub(crate) fn ifrt_session(registry: Arc<Registry>, call: Call) -> Answered {
    let Call { caller, metadata, body } = call;
    let peer = caller.identity;
    let session = metadata_of(&metadata).and_then(|metadata| open(&registry, caller, metadata));
    let session = session.inspect_err(|status| {
        tracing::warn!(?peer, code = %status.code(), reason = status.message(), "session refused");
    })?;
    let agreement = session.agreement;
    let (protocol, serdes) = (agreement.protocol().number(), agreement.serdes().number());
    let span = tracing::info_span!("session", session = session.number, ?peer, protocol, serdes);
    let (answers, receiver) = mpsc::channel(ANSWERS);
    let ended = Ended { registry, session: Arc::clone(&session), since: Instant::now() };
    let requests =
        Messages::new(body, Terms::of(&session.quotas.messages, &session.context.limits));
    tokio::spawn(run(session, requests, answers, ended).instrument(span));
    Ok(many(ReceiverStream::new(receiver)))
}

fn metadata_of(given: &MetadataMap) -> Result<GrpcIfrtSessionMetadata, Status> {
    let key = service::SESSION_METADATA;
    metadata(
        given,
        key,
        || status!(InvalidArgument, "the session has no metadata `{key}`"),
        |error| {
            status!(
                InvalidArgument,
                "the session's metadata is no GrpcIfrtSessionMetadata: {error}"
            )
        },
    )
}

/// Opens a session for an authorised client.
///
/// # Errors
/// UNAUTHENTICATED if a required token is missing; FAILED_PRECONDITION for versions that were not
/// negotiated; RESOURCE_EXHAUSTED.
fn open(
    registry: &Registry,
    mut caller: Caller,
    metadata: GrpcIfrtSessionMetadata,
) -> Result<Arc<Session>, Status> {
    let agreement = handshake::confirmed(registry.ranges, metadata.version.unwrap_or_default())?;
    let mut initialization = match &metadata.initialization_data {
        Some(data) => AttributeMap::from_proto(data, &DeserializeOptions::new())
            .map_err(|error| error.to_status())?,
        None => AttributeMap::new(),
    };
    if caller.token_to_come {
        let checked = registry.access.check_session(&initialization).inspect_err(|_| {
            registry.context.gauges.unauthenticated.fetch_add(1, Ordering::Relaxed);
        })?;
        caller.identity.token = Some(checked);
        caller.identity.late = true;
        caller.peer = registry.peers.of(&caller.identity, &registry.context.limits);
        let others = initialization.iter().filter(|(key, _)| *key != SESSION_TOKEN);
        initialization = others.map(|(key, value)| (key.to_owned(), value.clone())).collect();
    }
    registry.open(agreement, &initialization, &caller)
}

/// Maximum number of answers queued for a client that does not read them.
const ANSWERS: usize = 128;

/// Guard that ends the session on drop, even if its task is aborted.
struct Ended {
    registry: Arc<Registry>,
    session: Arc<Session>,
    since: Instant,
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.registry.end(&self.session);
        tracing::info!(seconds = self.since.elapsed().as_secs_f64(), "session over");
    }
}

/// Longest wait at the end of a session for calls into a plug-in that hang.
const HANGS: Duration = Duration::from_secs(1);

/// Runs a session from its first request to its end. A separate task executes its requests: if it
/// hangs in a call into the plug-in, the end of the session is still noticed.
async fn run(
    session: Arc<Session>,
    requests: Messages<IfrtRequest>,
    answers: mpsc::Sender<Result<IfrtResponse, Status>>,
    ended: Ended,
) {
    tracing::info!("session open");
    let limits = &session.context.limits;
    let ends = ended.since + limits.session_timeout;
    let answers = Answering::new(&session, answers);
    let (stop, stopped) = oneshot::channel();
    let taking = Taking::new(Arc::clone(&session), answers.clone());
    let mut taking = tokio::spawn(taking.run(requests, stopped).in_current_span());
    let last = tokio::select! {
        biased;
        last = over(&session, &answers, ends) => {
            let _ = stop.send(());
            let limit = last.as_ref().map_or(Duration::ZERO, |_| limits.stop_timeout) + HANGS;
            if tokio::time::timeout(limit, &mut taking).await.is_err() {
                tracing::warn!("a request hangs in a call into the plug-in; its session ends without it");
            }
            last
        }
        taken = &mut taking => taken.ok().flatten(),
    };
    if let Some(last) = last.filter(|last| last.code() != StatusCode::Ok) {
        drop(tokio::time::timeout(limits.stop_timeout, answers.sender.send(Err(last))).await);
    }
    taking.abort();
    drop(ended);
}

/// Executor of a session's requests, in order.
struct Taking {
    session: Arc<Session>,
    answers: Answering,
    /// Tasks of waiting requests.
    tasks: JoinSet<()>,
}

impl Taking {
    fn new(session: Arc<Session>, answers: Answering) -> Self {
        Self { session, answers, tasks: JoinSet::new() }
    }

    /// Executes requests until the client has no more, or it is told to stop; then waits for those
    /// in progress, if the client is still connected. Returns the status for the client, unless it
    /// has been told to stop.
    async fn run(
        mut self,
        mut requests: Messages<IfrtRequest>,
        mut stopped: oneshot::Receiver<()>,
    ) -> Option<Status> {
        let mut begun = false;
        let last = loop {
            let request = tokio::select! {
                biased;
                _ = &mut stopped => break None,
                request = next(&self.session, &mut requests, begun) => request,
            };
            begun = true;
            while self.tasks.try_join_next().is_some() {}
            match request {
                Ok(Some((request, permit))) => self.take_up(request, permit).await,
                Ok(None) => {
                    // The client has finished sending; pending answers are still sent, but no more
                    // data will arrive.
                    self.session.host_buffers.close();
                    break Some(Status::new(StatusCode::Ok, ""));
                }
                // A disconnecting client also ends the stream with an error.
                Err(error) => {
                    tracing::debug!(code = %error.code(), reason = error.message(), "the stream broke off");
                    break Some(error);
                }
            }
        };
        let rest = async { while self.tasks.join_next().await.is_some() {} };
        tokio::select! {
            () = rest => {}
            () = self.answers.sender.closed() => {}
            () = tokio::time::sleep(self.session.context.limits.stop_timeout) => {}
        }
        drop(tokio::time::timeout(HANGS, self.tasks.shutdown()).await);
        last
    }

    async fn take_up(&mut self, request: Received<IfrtRequest>, permit: Permit) {
        let Received { message, room } = request;
        let asked = Asked::now(&message);
        let span = span_of(&self.session, asked);
        match span.in_scope(|| begin(&self.session, message.request.as_ref())) {
            Answer::Now(reply) => self.answers.send(asked, reply).instrument(span).await,
            Answer::Later(mut reply) => {
                // A request that does not wait needs no task.
                if let Poll::Ready(reply) = at_once(&mut reply, &span).await {
                    return self.answers.send(asked, reply).instrument(span).await;
                }
                let answers = self.answers.clone();
                let counted = answers.gauges.hold(|gauges| &gauges.tasks, 1);
                let answer = async move {
                    answers.send(asked, reply.await).await;
                    drop((permit, room, counted));
                };
                self.tasks.spawn(answer.instrument(span));
            }
        }
    }
}

/// Waits until no more requests are accepted, independently of the client; returns the status for a
/// client that is still connected.
async fn over(session: &Session, answers: &Answering, ends: Instant) -> Option<Status> {
    let limits = &session.context.limits;
    let mut stop = session.context.stop.subscribe();
    tokio::select! {
        biased;
        () = answers.sender.closed() => None,
        _ = stop.wait_for(|stop| *stop) => Some(status!(Unavailable, "the server is stopping")),
        () = session.ended() => Some(status!(Unauthenticated, "the token of the session is none of this server's any more")),
        () = sleep_until(ends) => Some(status!(
            ResourceExhausted,
            "the session was open for as long as the limit `session-seconds` of this server allows ({})",
            limits.session_timeout.as_secs_f64()
        )),
    }
}

/// Polls a request once; returns the answer if it is ready.
async fn at_once(
    reply: &mut (impl Future<Output = Reply> + Unpin),
    span: &tracing::Span,
) -> Poll<Reply> {
    poll_fn(|context| Poll::Ready(span.in_scope(|| Pin::new(&mut *reply).poll(context)))).await
}

/// Returns the tracing span of a request, with its identity `SESSION-NUMBER`, which is unique as
/// long as the server runs.
pub(super) fn span_of(session: &Session, asked: Asked) -> tracing::Span {
    let request = format_args!("{}-{}", session.number, asked.op_id);
    tracing::info_span!("request", request = %request, kind = asked.kind)
}

/// Returns the next request, with a permit among those in progress.
///
/// # Errors
/// DEADLINE_EXCEEDED if a client that has not asked for anything or holds nothing sends no request;
/// the errors of [`Messages::next`].
async fn next(
    session: &Session,
    requests: &mut Messages<IfrtRequest>,
    begun: bool,
) -> Result<Option<(Received<IfrtRequest>, Permit)>, Status> {
    let limits = &session.context.limits;
    let permit = session.quotas.requests.take(1).await?;
    let since = Instant::now();
    let limit = if begun { limits.session_idle_timeout } else { limits.handshake_timeout };
    let mut ends = since + limit;
    loop {
        tokio::select! {
            more = requests.begin() => if more? { break } else { return Ok(None) },
            () = sleep_until(ends) => {
                if !begun || session.is_empty() {
                    return Err(status!(DeadlineExceeded, "the session was open for {} seconds without a request", limit.as_secs_f64()));
                }
                ends = Instant::now() + limit;
            }
        }
    }
    let whole = requests.next(|bytes| most_bytes(limits, bytes, begun));
    let received =
        if begun { whole.await } else { within(limit, "the first request", whole).await };
    Ok(received?.map(|received| (received, permit)))
}

/// Returns the maximum size of a request by its first bytes, and the limit's name. Only programs
/// may be large: other requests, when decoded, take many times the memory of their bytes.
fn most_bytes(limits: &Limits, bytes: &[u8], begun: bool) -> (&'static str, u64) {
    /// Maximum size in bytes of a session's first request.
    const FIRST: u64 = 64 << 10;
    if !begun {
        return ("bytes of a first request", FIRST);
    }
    match kind_of(bytes) {
        Some(COMPILE_REQUEST) => ("program-bytes", limits.program_bytes),
        None if bytes.len() < FIRST as usize => ("program-bytes", limits.program_bytes),
        _ => ("request-bytes", limits.request_bytes),
    }
}

/// Number of the field for a program to compile.
const COMPILE_REQUEST: u32 = 13;

/// Returns the number of the field with the request's kind from its first bytes: the first field
/// other than the metadata.
fn kind_of(mut bytes: &[u8]) -> Option<u32> {
    /// Number of the field with the metadata.
    const METADATA: u32 = 1;
    loop {
        let (number, wire_type) = decode_key(&mut bytes).ok()?;
        if number != METADATA || wire_type != WireType::LengthDelimited {
            return Some(number);
        }
        let length = usize::try_from(decode_varint(&mut bytes).ok()?).ok()?;
        bytes = bytes.get(length..)?;
    }
}

/// The sender of answers.
#[derive(Clone)]
struct Answering {
    gauges: Arc<Gauges>,
    sender: mpsc::Sender<Result<IfrtResponse, Status>>,
    /// Number of successful answers, in the order of sending.
    answered: Arc<tokio::sync::Mutex<u64>>,
}

impl Answering {
    fn new(session: &Session, sender: mpsc::Sender<Result<IfrtResponse, Status>>) -> Self {
        Self { gauges: Arc::clone(&session.context.gauges), sender, answered: Arc::default() }
    }

    async fn send(&self, asked: Asked, reply: Reply) {
        if let Ok(place) = self.sender.reserve().await {
            let mut answered = self.answered.lock().await;
            place.send(Ok(respond(&self.gauges, asked, reply, &mut answered)));
        }
    }
}

#[cfg(test)]
mod tests {
    use prost::Message as _;

    use super::*;
    use serdes::proto::xla::ifrt::proxy::{
        CompileRequest, InitRequest, RequestMetadata, ifrt_request::Request,
    };

    #[test]
    fn the_first_bytes_of_a_request_say_whether_it_is_a_program() {
        let metadata =
            RequestMetadata { op_id: 7, user_context_id: u64::MAX, ..Default::default() };
        let bytes = |request| {
            IfrtRequest { request_metadata: Some(metadata.clone()), request: Some(request) }
                .encode_to_vec()
        };
        let program = bytes(Request::CompileRequest(CompileRequest::default()));
        assert_eq!(kind_of(&program), Some(COMPILE_REQUEST));
        assert_eq!(kind_of(&bytes(Request::InitRequest(InitRequest {}))), Some(2));
        assert_eq!(kind_of(&program[..4]), None);
        assert_eq!(kind_of(&[]), None);
        assert_eq!(kind_of(&[0xff; 20]), None);
        assert_eq!(kind_of(b"\x0a\xff\xff\xff\xff\x0f"), None);
    }
}
