//! The stream of a session's small arrays, opened by our own client: each message is a request with
//! the bytes of its host buffer, and each answer is a message as well. Requests have the same
//! effects as on the session's stream.

use std::{
    future::poll_fn,
    pin::Pin,
    sync::{Arc, atomic::Ordering},
    task::{Context, Poll},
};

use bytes::Bytes;
use serdes::{
    codec::Status,
    proto::xla::ifrt::proxy::{GrpcHostBufferStoreMetadata, IfrtRequest, ifrt_request::Request},
};
use tokio::task::JoinSet;
use tonic::{body::Body, codegen::Body as HttpBody};

use super::{
    call::{Answered, Call, metadata, streamed},
    frames::{Messages, Terms},
    transfer::Taken,
    transfer_request,
};
use crate::{
    bulk::ending,
    server::{
        registry::Registry,
        sessions::{Direction, HostBuffer, HostBufferBuilder, Session},
    },
    service,
    small_transfers::{MOST_BYTES, Outbox, SmallTransfer, SmallTransferred},
    status::{status, to_proto},
};

/// Answers, each with the buffer whose bytes it carries.
type Answers = Outbox<Arc<HostBuffer>>;

pub(crate) fn small_transfers(registry: &Registry, call: Call) -> Answered {
    let Call { caller, metadata: given, body } = call;
    let key = service::STORE_METADATA;
    let metadata: GrpcHostBufferStoreMetadata = metadata(
        &given,
        key,
        || status!(InvalidArgument, "the stream of small arrays needs the metadata `{key}`"),
        |error| status!(InvalidArgument, "the metadata `{key}` cannot be read: {error}"),
    )?;
    let session = registry.session(metadata.session_id, &caller)?;
    let terms = Terms::of(&session.quotas.messages, &session.context.limits);
    let answers = Arc::new(Answers::default());
    let taking = run(session, Messages::new(body, terms), Arc::clone(&answers));
    Ok(streamed(Body::new(Stream { taking: Some(Box::pin(taking)), answers, end: None })))
}

/// The processing of messages, until there are no more.
type Taking = Pin<Box<dyn Future<Output = Result<(), Status>> + Send>>;

/// The body of the answer, which drives the processing of messages: while the client does not read
/// answers, no message is processed.
struct Stream {
    taking: Option<Taking>,
    answers: Arc<Answers>,
    end: Option<Result<(), Status>>,
}

impl HttpBody for Stream {
    type Data = Bytes;
    type Error = tonic::Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Bytes>, tonic::Status>>> {
        if let Some(taking) = &mut self.taking
            && let Poll::Ready(end) = taking.as_mut().poll(context)
        {
            self.taking = None;
            self.answers.close();
            self.end = Some(end);
        }
        Poll::Ready(match std::task::ready!(self.answers.poll_take(context)) {
            Some(bytes) => Some(Ok(http_body::Frame::data(bytes))),
            None => self.end.take().map(|end| ending(end.err().as_ref())),
        })
    }
}

/// Processes messages until the client has no more, or the session ends.
async fn run(
    session: Arc<Session>,
    messages: Messages<SmallTransfer>,
    answers: Arc<Answers>,
) -> Result<(), Status> {
    let mut stop = session.context.stop.subscribe();
    tokio::select! {
        biased;
        () = session.ended() => Err(status!(Cancelled, "the session is over")),
        _ = stop.wait_for(|stop| *stop) => Err(status!(Unavailable, "the server is stopping")),
        taken = take_all(&session, messages, &answers) => taken,
    }
}

async fn take_all(
    session: &Arc<Session>,
    mut messages: Messages<SmallTransfer>,
    answers: &Arc<Answers>,
) -> Result<(), Status> {
    /// Maximum number of waiting transfers: the maximum number of calls.
    const MOST: usize = 128;
    /// Maximum size of a transfer with its array's description.
    const LIMIT: (&str, u64) = ("bytes of a small transfer", 2 * MOST_BYTES);
    let mut waiting = JoinSet::new();
    while messages.begin().await? {
        let permit = session.quotas.requests.take(1).await?;
        let Some(received) = messages.next(|_| LIMIT).await? else { break };
        let transfer = transfer(Arc::clone(session), received.message, Arc::clone(answers));
        let mut transfer = Box::pin(transfer);
        // A transfer that does not wait needs no task.
        let done = poll_fn(|context| Poll::Ready(transfer.as_mut().poll(context))).await;
        if done.is_pending() {
            waiting.spawn(async move {
                transfer.await;
                drop(permit);
            });
            while waiting.len() >= MOST && waiting.join_next().await.is_some() {}
        }
        while waiting.try_join_next().is_some() {}
    }
    while waiting.join_next().await.is_some() {}
    Ok(())
}

/// Executes a transfer and sends its answer.
async fn transfer(session: Arc<Session>, transfer: SmallTransfer, answers: Arc<Answers>) {
    let gauges = Arc::clone(&session.context.gauges);
    let _counted = gauges.hold(|gauges| &gauges.tasks, 1);
    let SmallTransfer { request, data } = transfer;
    let request = request.unwrap_or_default();
    let op_id = request.request_metadata.as_ref().map_or(0, |metadata| metadata.op_id);
    let done = match &request.request {
        Some(Request::MakeArrayFromHostBufferRequest(make)) => {
            put(&session, &request, make.host_buffer_handle, &data).await.map(|()| None)
        }
        Some(Request::CopyToHostBufferRequest(copying)) => {
            get(&session, &request, copying.host_buffer_handle).await.map(Some)
        }
        _ => Err(status!(
            InvalidArgument,
            "a small transfer came with another request than one that makes an array or reads one; send that on the stream of the session"
        )),
    };
    let mut answer = SmallTransferred { op_id, ..SmallTransferred::default() };
    let kept = match done {
        Ok(kept) => kept,
        Err(status) => {
            answer.status = Some(to_proto(&status));
            None
        }
    };
    if let Some([data]) = kept.as_ref().and_then(|buffer| buffer.pieces()) {
        gauges.sent_bytes.fetch_add(data.len() as u64, Ordering::Relaxed);
        answer.data = data.clone();
    }
    answers.push(&answer, kept);
}

/// Creates an array from a host buffer that has arrived.
async fn put(
    session: &Arc<Session>,
    request: &IfrtRequest,
    handle: u64,
    data: &Bytes,
) -> Result<(), Status> {
    let filling = session.host_buffers.fill(handle)?;
    let made = transfer_request::take_up(session, request);
    let bytes = data.len() as u64;
    session.context.gauges.received_bytes.fetch_add(bytes, Ordering::Relaxed);
    let stored = async {
        let held = session.hold(bytes, Direction::Store).await?;
        let mut buffer = HostBufferBuilder::new(bytes, held);
        if bytes > 0 {
            buffer.cover(bytes, session.arriving(bytes).await?);
        }
        // Copy the data: a slice would keep the whole message alive.
        buffer.push(Bytes::copy_from_slice(data))?;
        buffer.finish()
    };
    match stored.await {
        Ok(buffer) => filling.finish(buffer),
        Err(status) => filling.fail(status),
    }
    made.await.map(drop)
}

/// Takes the host buffer that a request fills; no other call can take it.
async fn get(
    session: &Arc<Session>,
    request: &IfrtRequest,
    handle: u64,
) -> Result<Arc<HostBuffer>, Status> {
    let taken = Taken { session, handle };
    transfer_request::take_up(session, request).await?;
    let buffer = session.host_buffers.look_up(handle).await?;
    drop(taken);
    if buffer.size() > MOST_BYTES || buffer.pieces().is_none_or(|pieces| pieces.len() > 1) {
        return Err(status!(
            InvalidArgument,
            "the array has {} bytes; the stream of small arrays has no more than {MOST_BYTES} for one",
            buffer.size()
        ));
    }
    Ok(buffer)
}
