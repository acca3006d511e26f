//! The stream of a session: requests in their order, answers as they come.

use std::sync::Arc;

use tokio::{
    sync::{Semaphore, mpsc},
    task::JoinSet,
};
use tokio_stream::wrappers::ReceiverStream;
use tonic::Response;
use tracing::Instrument as _;

use super::{
    Shared,
    grpc::metadata,
    session::{Answer, Reply, Session},
};
use crate::{
    codec::{DeserializeOptions, FromProto as _, Status},
    ifrt::AttributeMap,
    proto::xla::ifrt::proxy::{
        GrpcIfrtSessionMetadata, IfrtRequest, IfrtResponse, ResponseMetadata,
    },
    proxy::{
        service::{self, Inbound},
        status::{status, to_grpc, to_proto},
    },
};

type Answers = ReceiverStream<Result<IfrtResponse, tonic::Status>>;

pub(super) async fn ifrt_session(
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
