//! The stream of a session: sends requests in order, and hands answers to their callers.

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

/// Channel to the caller that waits for an answer.
type Waiter = oneshot::Sender<Result<Response, Status>>;

/// Sender of requests, which numbers them in the order of sending.
struct Sending {
    requests: mpsc::UnboundedSender<IfrtRequest>,
    user_context: u64,
    next_op: u64,
    /// Handles of dropped arrays that the server has not been told of.
    gone: Vec<u64>,
}

impl Sending {
    /// Maximum number of dropped small arrays of which the server has not been told.
    const MOST_GONE: usize = 64;

    /// Numbers a request; returns it with its number.
    fn number(&mut self, request: Request) -> (u64, IfrtRequest) {
        let op_id = self.next_op;
        self.next_op += 1;
        (op_id, requests::numbered(op_id, self.user_context, request))
    }

    /// Tells the server of the dropped arrays, without waiting for the answer: a server that is
    /// gone holds no arrays.
    fn tell_gone(&mut self) {
        if !self.gone.is_empty() {
            let gone = requests::destruct(std::mem::take(&mut self.gone));
            let (_, request) = self.number(Request::DestructArrayRequest(gone));
            drop(self.requests.send(request));
        }
    }
}

/// The outgoing requests of a session.
struct Outgoing {
    sending: Mutex<Sending>,
    /// Notified when the first array of a batch is dropped.
    first_gone: Notify,
}

impl Outgoing {
    /// Time for which dropped small arrays are collected, so that many are deleted in one request.
    const GATHERING: Duration = Duration::from_millis(2);

    fn lock(&self) -> MutexGuard<'_, Sending> {
        lock(&self.sending)
    }

    /// Tells the server of dropped arrays, shortly after the first of a batch.
    async fn sweep(self: Arc<Self>) {
        loop {
            self.first_gone.notified().await;
            tokio::time::sleep(Self::GATHERING).await;
            self.lock().tell_gone();
        }
    }
}

/// Pending requests by the number of their answer, or the reason why no further answer will come.
#[derive(Default)]
struct Waiting {
    by_op: HashMap<u64, Waiter>,
    over: Option<Status>,
}

/// The stream of a session, and the connection that it shares with the transfers of host buffers.
/// Dropping it ends the session.
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
    /// Connects, negotiates versions and opens the stream of a session.
    ///
    /// # Errors
    /// As [`open`] and [`handshake`]; [`ProxyError::Status`] if the server refuses the session.
    pub(super) fn open<'a>(
        address: &'a str,
        options: &'a ClientOptions,
    ) -> BoxFuture<'a, Result<Self, ProxyError>> {
        Box::pin(Self::open_session(address, options))
    }

    async fn open_session(address: &str, options: &ClientOptions) -> Result<Self, ProxyError> {
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
    }

    /// Returns the runtime of the connection.
    pub(super) fn runtime(&self) -> Handle {
        self.runtime.clone()
    }

    /// Returns true if transfers may carry requests.
    pub(super) const fn takes_requests(&self) -> bool {
        self.extras.takes_requests
    }

    /// Returns the stream for small arrays if an array of `bytes` bytes is small enough for it.
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

    /// Creates a request that is not sent on the session's stream; it is numbered as one of the
    /// session's, because logs use this number.
    pub(super) fn beside_stream(&self, request: Request) -> IfrtRequest {
        self.outgoing.lock().number(request).1
    }

    /// Sets the session's id, which the server assigned.
    pub(super) fn start(&self, session: u64) {
        self.session.get_or_init(|| session);
    }

    /// Returns the id of the session.
    pub(super) fn session(&self) -> u64 {
        self.session.get().copied().unwrap_or_default()
    }

    /// Returns the negotiated versions.
    pub(super) const fn agreement(&self) -> Agreement {
        self.agreement
    }

    /// Returns a new handle for an array or a host buffer.
    pub(super) fn new_handle(&self) -> u64 {
        self.next_handle.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends a request; the answer arrives on the receiver.
    fn send(&self, request: Request) -> oneshot::Receiver<Result<Response, Status>> {
        let (sender, receiver) = oneshot::channel();
        let mut sending = self.outgoing.lock();
        // Dropped arrays free memory for new ones.
        sending.tell_gone();
        let (op_id, request) = sending.number(request);
        let mut waiting = lock(&self.waiting);
        match &waiting.over {
            Some(status) => drop(sender.send(Err(status.clone()))),
            None => {
                waiting.by_op.insert(op_id, sender);
                // When requests are no longer accepted, the stream of answers ends as well, and
                // reports the reason to all callers.
                drop(sending.requests.send(request));
            }
        }
        receiver
    }

    /// Sends a request and waits for its answer. It is sent at once, in the order of the calls,
    /// before the first `await`.
    ///
    /// # Errors
    /// [`ProxyError::Status`] from the server; [`ProxyError::Connection`] if the server is gone.
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

    /// Returns the reason for a failed transfer: the reason for the end of the session, if it has
    /// ended.
    pub(super) async fn reason(&self, error: ProxyError) -> ProxyError {
        const OF_SESSIONS: [StatusCode; 3] =
            [StatusCode::NotFound, StatusCode::Cancelled, StatusCode::Unavailable];
        if !matches!(&error, ProxyError::Status(status) if OF_SESSIONS.contains(&status.code())) {
            return error;
        }
        // The request names no arrays, so an open session answers it at once.
        let question = CheckValueReadyRequest { value_handles: Vec::new() };
        let question = Request::CheckValueReadyRequest(question);
        match self.request(question).await {
            Ok(_) => error,
            Err(over) => over,
        }
    }

    /// Tells the server to delete an array of `bytes` bytes, if the size is known: a large one at
    /// once, a small one together with others that are dropped at nearly the same time.
    pub(super) fn destruct(&self, handle: u64, bytes: Option<u64>) {
        /// Maximum size in bytes of an array whose deletion may be delayed.
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

    /// Deletes an array.
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

/// Hands answers to the waiting callers, until the stream ends.
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
