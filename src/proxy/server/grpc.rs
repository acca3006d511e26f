//! The six calls of the service.

use std::{
    convert::Infallible,
    future::Future,
    path::Path,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use prost::Message;
use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, body::Body, codegen::http, server::Grpc};
use tonic_prost::ProstCodec;
use tracing::Instrument as _;

use super::{
    Shared,
    host_buffer::{Filling, HostBufferBuilder},
    session::{Answer, Direction, Reply, Session, within},
};
use crate::{
    codec::{DeserializeOptions, FromProto as _, Status},
    ifrt::AttributeMap,
    proto::xla::ifrt::proxy::{
        GrpcGetVersionRequest, GrpcGetVersionResponse, GrpcHostBufferDeleteRequest,
        GrpcHostBufferDeleteResponse, GrpcHostBufferLookupRequest, GrpcHostBufferLookupResponse,
        GrpcHostBufferReadFromDiskRequest, GrpcHostBufferReadFromDiskResponse,
        GrpcHostBufferStoreMetadata, GrpcHostBufferStoreRequest, GrpcHostBufferStoreResponse,
        GrpcIfrtSessionMetadata, IfrtRequest, IfrtResponse, ResponseMetadata,
    },
    proxy::{
        Ranges,
        service::{self, Handler, Inbound},
        status::{status, to_grpc, to_proto},
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
fn metadata<M: Message + Default, T>(
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

type Answers = ReceiverStream<Result<IfrtResponse, tonic::Status>>;

async fn ifrt_session(
    shared: Arc<Shared>,
    request: Inbound<IfrtRequest>,
) -> Result<Response<Answers>, tonic::Status> {
    let peer = request.remote_addr();
    let opened = (|| {
        let key = service::SESSION_METADATA;
        let metadata: GrpcIfrtSessionMetadata = metadata(
            &request,
            key,
            || status!(InvalidArgument, "the session has no metadata `{key}`"),
            |error| {
                status!(
                    InvalidArgument,
                    "the session's metadata is no GrpcIfrtSessionMetadata: {error}"
                )
            },
        )?;
        let agreement = shared.ranges.confirm(metadata.version.unwrap_or_default())?;
        let initialization = match &metadata.initialization_data {
            Some(data) => AttributeMap::from_proto(data, &DeserializeOptions::new())
                .map_err(|error| error.to_status())?,
            None => AttributeMap::new(),
        };
        shared.open(agreement, initialization)
    })();
    let session = opened.map_err(|status: Status| {
        tracing::warn!(?peer, code = %status.code(), message = status.message(), "session refused");
        to_grpc(&status)
    })?;
    let span = tracing::info_span!("session", id = session.id, ?peer, version = %session.agreement);
    let (answers, receiver) = mpsc::channel(ANSWERS);
    let ended = Ended { shared: Arc::clone(&shared), session: Arc::clone(&session) };
    tokio::spawn(run(shared, session, request.into_inner(), answers, ended).instrument(span));
    Ok(Response::new(ReceiverStream::new(receiver)))
}

/// Answers on their way to a client that does not read them.
const ANSWERS: usize = 128;

/// Ends the session, whatever becomes of its task.
struct Ended {
    shared: Arc<Shared>,
    session: Arc<Session>,
}

impl Drop for Ended {
    fn drop(&mut self) {
        self.shared.end(&self.session);
        tracing::info!("session over");
    }
}

/// Takes requests up in their order until the client goes or the server stops.
async fn run(
    shared: Arc<Shared>,
    session: Arc<Session>,
    mut requests: tonic::Streaming<IfrtRequest>,
    answers: mpsc::Sender<Result<IfrtResponse, tonic::Status>>,
    ended: Ended,
) {
    tracing::info!("session open");
    let mut stop = shared.stop.subscribe();
    let room = Arc::new(Semaphore::new(shared.limits.requests_per_session.max(1)));
    let answers =
        Answering { shared: Arc::clone(&shared), sender: answers, answered: Arc::default() };
    let mut tasks = JoinSet::new();
    let last = loop {
        let permit = tokio::select! {
            biased;
            () = answers.sender.closed() => break None,
            _ = stop.wait_for(|stop| *stop) => break Some(status!(Unavailable, "the server is stopping")),
            permit = Arc::clone(&room).acquire_owned() => permit,
        };
        let request = tokio::select! {
            biased;
            () = answers.sender.closed() => break None,
            _ = stop.wait_for(|stop| *stop) => break Some(status!(Unavailable, "the server is stopping")),
            request = requests.message() => request,
        };
        while tasks.try_join_next().is_some() {}
        let request = match request {
            Ok(Some(request)) => request,
            Ok(None) => {
                // The client has said all that it wanted to; what still comes of it is sent, but no more data will.
                session.host_buffers.close();
                break Some(Status::new(crate::codec::StatusCode::Ok, ""));
            }
            // A client that goes away ends the stream with an error as well.
            Err(error) => {
                tracing::debug!(code = ?error.code(), message = error.message(), "the stream broke off");
                break Some(crate::proxy::status::from_grpc(&error));
            }
        };
        let op_id = request.request_metadata.map(|metadata| metadata.op_id).unwrap_or_default();
        let answer = match request.request {
            Some(request) => session.begin(request),
            None => Answer::Now(Err(status!(
                Unimplemented,
                "the request has no body that this server knows"
            ))),
        };
        match answer {
            Answer::Now(reply) => answers.send(op_id, reply).await,
            Answer::Later(reply) => {
                let (answers, counted) =
                    (answers.clone(), shared.gauges.hold(|gauges| &gauges.tasks, 1));
                tasks.spawn(
                    async move {
                        let reply = reply.await;
                        answers.send(op_id, reply).await;
                        drop((permit, counted));
                    }
                    .in_current_span(),
                );
            }
        }
    };
    if let Some(last) = last {
        let rest = async { while tasks.join_next().await.is_some() {} };
        let gone = answers.sender.closed();
        tokio::select! {
            () = rest => {}
            () = gone => {}
            () = tokio::time::sleep(shared.limits.stop_timeout) => {}
        }
        if last.code() != crate::codec::StatusCode::Ok {
            let timeout = shared.limits.stop_timeout;
            drop(tokio::time::timeout(timeout, answers.sender.send(Err(to_grpc(&last)))).await);
        }
    }
    tasks.shutdown().await;
    drop(ended);
}

/// Where answers go.
#[derive(Clone)]
struct Answering {
    shared: Arc<Shared>,
    sender: mpsc::Sender<Result<IfrtResponse, tonic::Status>>,
    /// Successful answers so far, counted in the order in which they are sent.
    answered: Arc<tokio::sync::Mutex<u64>>,
}

impl Answering {
    async fn send(&self, op_id: u64, reply: Reply) {
        if let Ok(place) = self.sender.reserve().await {
            let mut answered = self.answered.lock().await;
            place.send(Ok(respond(&self.shared, op_id, reply, &mut answered)));
        }
    }
}

/// The message of an answer.
pub(super) fn respond(
    shared: &Shared,
    op_id: u64,
    reply: Reply,
    answered: &mut u64,
) -> IfrtResponse {
    use std::sync::atomic::Ordering;
    shared.gauges.requests.fetch_add(1, Ordering::Relaxed);
    let mut metadata = ResponseMetadata { op_id, ..Default::default() };
    let response = match reply {
        Ok(response) => {
            metadata.seq_num = i64::try_from(*answered).unwrap_or(i64::MAX);
            *answered += 1;
            Some(response)
        }
        Err(status) => {
            shared.gauges.failed_requests.fetch_add(1, Ordering::Relaxed);
            tracing::debug!(op_id, code = %status.code(), message = status.message(), "request failed");
            metadata.status = Some(to_proto(&status));
            None
        }
    };
    IfrtResponse { response_metadata: Some(metadata), response }
}

/// Where a store's bytes go, and how many they are.
///
/// # Errors
/// NOT_FOUND for an unknown session; INVALID_ARGUMENT for a negative size; ALREADY_EXISTS.
fn announced(
    shared: &Arc<Shared>,
    metadata: &GrpcHostBufferStoreMetadata,
) -> Result<(Arc<Session>, Filling, u64), Status> {
    let session = shared.session(metadata.session_id)?;
    let size = u64::try_from(metadata.buffer_size).map_err(|_| {
        status!(
            InvalidArgument,
            "a host buffer of {} bytes; expected 0 or more",
            metadata.buffer_size
        )
    })?;
    let filling = session.host_buffers.fill(metadata.handle)?;
    Ok((session, filling, size))
}

async fn store(
    shared: Arc<Shared>,
    request: Inbound<GrpcHostBufferStoreRequest>,
) -> Result<Response<GrpcHostBufferStoreResponse>, tonic::Status> {
    let _counted = shared.gauges.hold(|gauges| &gauges.tasks, 1);
    let stored = async {
        let metadata: GrpcHostBufferStoreMetadata = metadata(
            &request,
            service::STORE_METADATA,
            || {
                status!(
                    Internal,
                    "HostBufferStore needs the metadata `{}`",
                    service::STORE_METADATA
                )
            },
            |error| {
                status!(
                    DataLoss,
                    "the metadata of HostBufferStore is no GrpcHostBufferStoreMetadata: {error}"
                )
            },
        )?;
        let (session, filling, size) = announced(&shared, &metadata)?;
        let received = receive(&shared, &session, size, request.into_inner()).await;
        match received {
            Ok(buffer) => filling.finish(buffer),
            Err(status) => {
                filling.fail(status.clone());
                return Err(status);
            }
        }
        Ok(())
    };
    match stored.await {
        Ok(()) => Ok(Response::new(GrpcHostBufferStoreResponse {})),
        Err(status) => {
            tracing::debug!(code = %status.code(), message = status.message(), "store failed");
            Err(to_grpc(&status))
        }
    }
}

async fn receive(
    shared: &Shared,
    session: &Session,
    size: u64,
    mut stream: tonic::Streaming<GrpcHostBufferStoreRequest>,
) -> Result<super::host_buffer::HostBuffer, Status> {
    let held = session.hold(size, Direction::Store).await?;
    let mut buffer = HostBufferBuilder::new(size, held);
    let mut stop = shared.stop.subscribe();
    loop {
        let message = async {
            stream.message().await.map_err(|error| crate::proxy::status::from_grpc(&error))
        };
        let message = within(shared.limits.idle_timeout, "the next part of a host buffer", message);
        let message = tokio::select! {
            message = message => message?,
            _ = stop.wait_for(|stop| *stop) => return Err(status!(Unavailable, "the server is stopping")),
        };
        match message {
            Some(message) => buffer.push(message.data)?,
            None => return buffer.finish(),
        }
    }
}

type Chunks = ReceiverStream<Result<GrpcHostBufferLookupResponse, tonic::Status>>;

async fn look_up(
    shared: Arc<Shared>,
    request: Request<GrpcHostBufferLookupRequest>,
) -> Result<Response<Chunks>, tonic::Status> {
    let request = request.into_inner();
    let found = async {
        let session = shared.session(request.session_id)?;
        let limit = shared.limits.host_buffer_timeout;
        within(limit, "a host buffer", session.host_buffers.look_up(request.handle)).await
    };
    let buffer = found.await.map_err(|status| to_grpc(&status))?;
    let (sender, receiver) = mpsc::channel(2);
    let counted = shared.gauges.hold(|gauges| &gauges.tasks, 1);
    let limit = shared.limits.idle_timeout;
    tokio::spawn(async move {
        let _counted = counted;
        let whole = buffer.whole();
        drop(buffer);
        let mut rest = whole;
        loop {
            let data: Bytes = rest.split_to(rest.len().min(service::CHUNK_BYTES));
            let sent = sender.send(Ok(GrpcHostBufferLookupResponse { data }));
            if !matches!(tokio::time::timeout(limit, sent).await, Ok(Ok(()))) || rest.is_empty() {
                return;
            }
        }
    });
    Ok(Response::new(ReceiverStream::new(receiver)))
}

async fn delete(
    shared: Arc<Shared>,
    request: Request<GrpcHostBufferDeleteRequest>,
) -> Result<Response<GrpcHostBufferDeleteResponse>, tonic::Status> {
    let request = request.into_inner();
    shared
        .session(request.session_id)
        .and_then(|session| session.host_buffers.delete(request.handle))
        .map_err(|status| to_grpc(&status))?;
    Ok(Response::new(GrpcHostBufferDeleteResponse {}))
}

/// A host buffer that the client has written to a directory that both see.
async fn read_from_disk(
    shared: Arc<Shared>,
    request: Request<GrpcHostBufferReadFromDiskRequest>,
) -> Result<Response<GrpcHostBufferReadFromDiskResponse>, tonic::Status> {
    let _counted = shared.gauges.hold(|gauges| &gauges.tasks, 1);
    let read = async {
        let metadata = request.into_inner().metadata;
        let metadata = metadata
            .ok_or_else(|| status!(InvalidArgument, "HostBufferReadFromDisk needs its metadata"))?;
        let directory = shared.transfer_directory.clone().ok_or_else(|| {
            status!(FailedPrecondition, "this server has no directory for large transfers; send the host buffer by HostBufferStore")
        })?;
        let (session, filling, size) = announced(&shared, &metadata)?;
        let held = session.hold(size, Direction::Store).await?;
        let path = directory.join(format!("lt_{}", metadata.handle));
        let bytes = shared.blocking(move || read_file(&path, size)).await;
        let buffer = bytes.and_then(|bytes| {
            let mut buffer = HostBufferBuilder::new(size, held);
            buffer.push(bytes.into())?;
            buffer.finish()
        });
        match buffer {
            Ok(buffer) => filling.finish(buffer),
            Err(status) => {
                filling.fail(status.clone());
                return Err(status);
            }
        }
        Ok(())
    };
    match read.await {
        Ok(()) => Ok(Response::new(GrpcHostBufferReadFromDiskResponse {})),
        Err(status) => Err(to_grpc(&status)),
    }
}

/// Reads a file of exactly that size, and removes it.
fn read_file(path: &Path, size: u64) -> Result<Vec<u8>, Status> {
    use std::io::Read as _;
    let failed = |error: std::io::Error| match error.kind() {
        std::io::ErrorKind::NotFound => {
            status!(NotFound, "there is no file `{}` for the host buffer", path.display())
        }
        _ => status!(Internal, "reading `{}`: {error}", path.display()),
    };
    let file = std::fs::File::open(path).map_err(failed)?;
    let found = file.metadata().map_err(failed)?;
    if !found.is_file() || found.len() != size {
        return Err(status!(
            DataLoss,
            "`{}` has {} bytes; expected {size}",
            path.display(),
            found.len()
        ));
    }
    let mut bytes = super::make::zeroed(size)?;
    (&file).read_exact(&mut bytes).map_err(failed)?;
    std::fs::remove_file(path).map_err(failed)?;
    Ok(bytes)
}
