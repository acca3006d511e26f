//! A session's stream: requests in their order, answers to those who wait for them.

use std::{
    collections::HashMap,
    hash::{BuildHasher as _, RandomState},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use prost::Message as _;
use serdes::{
    codec::{Status, StatusCode},
    proto::xla::ifrt::proxy::{
        CheckValueReadyRequest, IfrtRequest, IfrtResponse, ifrt_request::Request,
        ifrt_response::Response,
    },
};
use tokio::{
    runtime::Handle,
    sync::{Notify, mpsc, oneshot},
    task::AbortHandle,
};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Streaming, codegen::http::uri::PathAndQuery, metadata::MetadataValue};
use tonic_prost::ProstCodec;

use super::{
    ClientOptions,
    small_transfers::SmallTransfers,
    transport::{Extras, Transport, handshake, open, ready},
};
use crate::{
    Agreement, ProxyError,
    boxed::BoxFuture,
    requests, service,
    small_transfers::MOST_BYTES,
    status::{from_grpc, from_proto, status},
};

/// Who waits for an answer.
type Waiter = oneshot::Sender<Result<Response, Status>>;

/// The sender: requests, with numbers in the order in which they are sent.
struct Sending {
    requests: mpsc::UnboundedSender<IfrtRequest>,
    user_context: u64,
    next_op: u64,
    /// Handles of dropped arrays that the server has not been told of.
    gone: Vec<u64>,
}

impl Sending {
    /// Small arrays that may be gone before the server is told.
    const MOST_GONE: usize = 64;

    /// Returns the next request, and its number.
    fn number(&mut self, request: Request) -> (u64, IfrtRequest) {
        let op_id = self.next_op;
        self.next_op += 1;
        (op_id, requests::numbered(op_id, self.user_context, request))
    }

    /// Tells the server of the dropped arrays, without waiting for the answer: a server that is
    /// gone has none of them.
    fn tell_gone(&mut self) {
        if !self.gone.is_empty() {
            let gone = requests::destruct(std::mem::take(&mut self.gone));
            let (_, request) = self.number(Request::DestructArrayRequest(gone));
            drop(self.requests.send(request));
        }
    }
}

/// The requests of a session on their way out.
struct Outgoing {
    sending: Mutex<Sending>,
    /// Told when the first of some arrays is gone.
    first_gone: Notify,
}

impl Outgoing {
    /// Time for which news of dropped small arrays is gathered, so that many are one request.
    const GATHERING: Duration = Duration::from_millis(2);

    fn lock(&self) -> MutexGuard<'_, Sending> {
        lock(&self.sending)
    }

    /// Tells the server of arrays that are gone, a moment after the first of them.
    async fn sweep(self: Arc<Self>) {
        loop {
            self.first_gone.notified().await;
            tokio::time::sleep(Self::GATHERING).await;
            self.lock().tell_gone();
        }
    }
}

/// Pending requests by the number of their answer; or the reason why there will be no further
/// answer.
#[derive(Default)]
struct Waiting {
    by_op: HashMap<u64, Waiter>,
    over: Option<Status>,
}

/// The stream of a session, and the connection that it shares with the transfers of host buffers.
/// The session ends when this is dropped.
pub(super) struct Connection {
    pub(super) transport: Transport,
    address: String,
    agreement: Agreement,
    session: OnceLock<u64>,
    outgoing: Arc<Outgoing>,
    waiting: Arc<Mutex<Waiting>>,
    next_handle: AtomicU64,
    extras: Extras,
    small_transfers: OnceLock<SmallTransfers>,
    runtime: Handle,
    reader: AbortHandle,
    sweeper: AbortHandle,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connection {
    /// Connects, shakes hands, and opens the stream of a session.
    ///
    /// # Errors
    /// As [`open`] and [`handshake`]; [`ProxyError::Status`] if the server refuses the session.
    pub(super) fn open<'a>(
        address: &'a str,
        options: &'a ClientOptions,
    ) -> BoxFuture<'a, Result<Self, ProxyError>> {
        Box::pin(async move {
            let transport = open(address, options).await?;
            let (agreement, extras) = handshake(&transport, address, options).await?;
            let metadata = requests::session_metadata(agreement, &options.initialization_data)?;
            let (requests, outgoing) = mpsc::unbounded_channel();
            let mut call = transport.call(UnboundedReceiverStream::new(outgoing));
            let value = MetadataValue::from_bytes(&metadata.encode_to_vec());
            call.metadata_mut().insert_bin(service::SESSION_METADATA, value);
            let mut grpc = ready(&transport).await?;
            let codec: ProstCodec<IfrtRequest, IfrtResponse> = ProstCodec::default();
            let path = PathAndQuery::from_static(service::IFRT_SESSION);
            let answers = grpc.streaming(call, path, codec).await;
            let answers = answers.map_err(|status| from_grpc(&status))?.into_inner();
            let waiting = Arc::new(Mutex::new(Waiting::default()));
            let reader = tokio::spawn(read(answers, Arc::clone(&waiting))).abort_handle();
            let user_context = RandomState::new().hash_one(address).max(1);
            let sending = Sending { requests, user_context, next_op: 1, gone: Vec::new() };
            let outgoing = Outgoing { sending: Mutex::new(sending), first_gone: Notify::new() };
            let outgoing = Arc::new(outgoing);
            let sweeper = tokio::spawn(Arc::clone(&outgoing).sweep()).abort_handle();
            Ok(Self {
                transport,
                address: address.to_owned(),
                agreement,
                session: OnceLock::new(),
                outgoing,
                waiting,
                next_handle: AtomicU64::new(1),
                extras,
                small_transfers: OnceLock::new(),
                runtime: Handle::current(),
                reader,
                sweeper,
            })
        })
    }

    /// Returns the runtime that the connection lives on.
    pub(super) fn runtime(&self) -> Handle {
        self.runtime.clone()
    }

    /// Returns true if transfers may bring requests along.
    pub(super) const fn takes_requests(&self) -> bool {
        self.extras.takes_requests
    }

    /// Returns the stream for small arrays, if one of `bytes` bytes is small enough for it.
    pub(super) fn small_transfers(&self, bytes: Option<u64>) -> Option<&SmallTransfers> {
        let is_small = bytes.is_some_and(|bytes| bytes <= MOST_BYTES);
        (is_small && self.extras.has_small_transfers).then(|| {
            self.small_transfers.get_or_init(|| {
                SmallTransfers::open(&self.transport, self.session(), &self.runtime)
            })
        })
    }

    /// Sets the features beyond the protocol that the connection uses.
    #[cfg(test)]
    pub(super) fn with_extras(self, extras: Extras) -> Self {
        let mut own = self;
        own.extras = extras;
        own
    }

    /// Returns a request that is not sent on the stream of the session; its number is one of the
    /// session's all the same, as logs know it by that.
    pub(super) fn beside_stream(&self, request: Request) -> IfrtRequest {
        self.outgoing.lock().number(request).1
    }

    /// Takes the id that the server gave the session.
    pub(super) fn start(&self, session: u64) {
        self.session.get_or_init(|| session);
    }

    /// Returns the id of the session.
    pub(super) fn session(&self) -> u64 {
        self.session.get().copied().unwrap_or_default()
    }

    /// Versions that both sides have agreed upon.
    pub(super) const fn agreement(&self) -> Agreement {
        self.agreement
    }

    /// Returns a handle for an array or a host buffer.
    pub(super) fn new_handle(&self) -> u64 {
        self.next_handle.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends a request; the answer comes to the receiver.
    fn send(&self, request: Request) -> oneshot::Receiver<Result<Response, Status>> {
        let (sender, receiver) = oneshot::channel();
        let mut sending = self.outgoing.lock();
        // What is gone gives its room to what comes.
        sending.tell_gone();
        let (op_id, request) = sending.number(request);
        let mut waiting = lock(&self.waiting);
        match &waiting.over {
            Some(status) => drop(sender.send(Err(status.clone()))),
            None => {
                waiting.by_op.insert(op_id, sender);
                // Where requests are no longer taken, the stream of answers ends as well, and says
                // why to all that wait.
                drop(sending.requests.send(request));
            }
        }
        receiver
    }

    /// Returns the answer to a request. The request is sent at once, in the order of the calls,
    /// before the first `await`.
    ///
    /// # Errors
    /// [`ProxyError::Status`] as the server says; [`ProxyError::Connection`] if it is gone.
    pub(super) fn request(
        &self,
        request: Request,
    ) -> impl Future<Output = Result<Response, ProxyError>> + Send + use<> {
        let receiver = self.send(request);
        let address = self.address.clone();
        async move {
            match receiver.await {
                Ok(answer) => Ok(answer?),
                Err(_) => Err(ProxyError::Connection {
                    address,
                    reason: "the session is over".to_owned(),
                }),
            }
        }
    }

    /// Why a transfer failed: where its session is over, that has a reason of its own.
    pub(super) async fn reason(&self, error: ProxyError) -> ProxyError {
        const OF_SESSIONS: [StatusCode; 3] =
            [StatusCode::NotFound, StatusCode::Cancelled, StatusCode::Unavailable];
        if !matches!(&error, ProxyError::Status(status) if OF_SESSIONS.contains(&status.code())) {
            return error;
        }
        // Of no array, and so answered at once by a session that goes on.
        let question = CheckValueReadyRequest { value_handles: Vec::new() };
        let question = Request::CheckValueReadyRequest(question);
        match self.request(question).await {
            Ok(_) => error,
            Err(over) => over,
        }
    }

    /// Tells the server to delete an array of `bytes` bytes, if the size is known: a large one at
    /// once, a small one with others that are dropped in the same moment.
    pub(super) fn destruct(&self, handle: u64, bytes: Option<u64>) {
        /// Bytes of an array whose room is not missed for a moment.
        const SMALL: u64 = 64 << 10;
        let mut sending = self.outgoing.lock();
        sending.gone.push(handle);
        let small = bytes.is_some_and(|bytes| bytes <= SMALL);
        if !small || sending.gone.len() >= Sending::MOST_GONE {
            sending.tell_gone();
        } else if sending.gone.len() == 1 {
            self.outgoing.first_gone.notify_one();
        }
    }

    /// Frees an array.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub(super) async fn delete(&self, handle: u64) -> Result<(), ProxyError> {
        let request = requests::delete(vec![handle]);
        let answer = self.request(Request::DeleteArrayRequest(request)).await?;
        let Response::DeleteArrayResponse(answer) = answer else {
            return Err(ProxyError::unexpected("a deletion"));
        };
        let request = requests::check_future(answer.deletion_future_handle);
        self.request(Request::CheckFutureRequest(request)).await.map(drop)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.reader.abort();
        self.sweeper.abort();
    }
}

/// Gives answers to those who wait for them, until the stream ends.
async fn read(mut answers: Streaming<IfrtResponse>, waiting: Arc<Mutex<Waiting>>) {
    let over = loop {
        let message = match answers.message().await {
            Ok(Some(message)) => message,
            Ok(None) => break status!(Unavailable, "the server ended the session"),
            Err(error) => break from_grpc(&error),
        };
        let metadata = message.response_metadata.unwrap_or_default();
        let Some(waiter) = lock(&waiting).by_op.remove(&metadata.op_id) else { continue };
        let error = metadata.status.as_ref().and_then(from_proto);
        let answer = match (error, message.response) {
            (Some(error), _) => Err(error),
            (None, Some(response)) => Ok(response),
            (None, None) => {
                Err(status!(Internal, "the server's answer has neither a status nor a body"))
            }
        };
        drop(waiter.send(answer));
    };
    let mut waiting = lock(&waiting);
    waiting.over = Some(over.clone());
    for (_, waiter) in waiting.by_op.drain() {
        drop(waiter.send(Err(over.clone())));
    }
}
