//! A session's stream: requests in their order, answers to those who wait for them.

use std::{
    collections::HashMap,
    future::poll_fn,
    hash::{BuildHasher as _, RandomState},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use prost::Message;
use tokio::{
    sync::{mpsc, oneshot},
    task::AbortHandle,
};
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{
    Request as Call, Streaming,
    body::Body,
    client::Grpc,
    codegen::{
        Service as _,
        http::{self, HeaderValue, uri::PathAndQuery},
    },
    metadata::{Ascii, MetadataValue},
    transport::{Certificate, Channel, ClientTlsConfig, Endpoint, Identity},
};
use tonic_prost::ProstCodec;

use super::{ClientOptions, unexpected};
use crate::{
    codec::{Status, StatusCode},
    proto::xla::ifrt::proxy::{
        CheckValueReadyRequest, GrpcGetVersionResponse, IfrtRequest, IfrtResponse,
        ifrt_request::Request, ifrt_response::Response,
    },
    proxy::{
        Agreement, ProxyError,
        error::with_causes,
        requests, service,
        status::{from_grpc, from_proto, status},
    },
};

/// A connection, and what every call over it says of the client.
#[derive(Clone)]
pub(super) struct Transport {
    channel: Channel,
    authorization: Option<MetadataValue<Ascii>>,
}

impl Transport {
    /// A message as a call.
    pub(super) fn call<T>(&self, message: T) -> Call<T> {
        let mut call = Call::new(message);
        if let Some(authorization) = &self.authorization {
            call.metadata_mut().insert("authorization", authorization.clone());
        }
        call
    }

    /// A call with a body that is written by hand; its answer.
    ///
    /// # Errors
    /// UNAVAILABLE if the connection is gone; the status of the call where its answer has no body.
    pub(super) async fn send<T>(
        &self,
        path: &'static str,
        call: Call<T>,
        body: Body,
    ) -> Result<http::Response<Body>, Status> {
        let mut request = http::Request::new(body);
        *request.method_mut() = http::Method::POST;
        *request.uri_mut() = http::Uri::from_static(path);
        *request.version_mut() = http::Version::HTTP_2;
        *request.headers_mut() = call.into_parts().0.into_headers();
        request.headers_mut().insert(http::header::TE, HeaderValue::from_static("trailers"));
        request
            .headers_mut()
            .insert(http::header::CONTENT_TYPE, HeaderValue::from_static("application/grpc"));
        let mut channel = self.channel.clone();
        let gone = |error| status!(Unavailable, "{}", with_causes(&error));
        poll_fn(|context| channel.poll_ready(context)).await.map_err(gone)?;
        let answer = channel.call(request).await.map_err(gone)?;
        if let Some(status) = tonic::Status::from_header_map(answer.headers()) {
            if status.code() != tonic::Code::Ok {
                return Err(from_grpc(&status));
            }
        } else if answer.status() != http::StatusCode::OK {
            return Err(status!(Unavailable, "the answer is HTTP's {}", answer.status()));
        }
        Ok(answer)
    }
}

/// The most data that the server may put in a frame: as much as a message of a host buffer has.
/// Frames of 16 KiB, which is what HTTP/2 begins with, cost a call of the system each.
const FRAME_BYTES: u32 = service::CHUNK_BYTES as u32;

/// Connects. Nothing is asked of the server yet.
///
/// # Errors
/// [`ProxyError::Configuration`] for the address, a certificate or a token;
/// [`ProxyError::Connection`] if nobody answers in time.
pub(super) async fn open(address: &str, options: &ClientOptions) -> Result<Transport, ProxyError> {
    let invalid = |reason: String| ProxyError::configuration("the address", address, reason);
    let rest = address.strip_prefix("grpc://").or_else(|| address.strip_prefix("http://"));
    let encrypted = address.starts_with("https://");
    let uri = match rest {
        Some(rest) => format!("http://{rest}"),
        None if encrypted => address.to_owned(),
        None if address.contains("://") => {
            return Err(invalid(
                "expected HOST:PORT, grpc://HOST:PORT, http://HOST:PORT or https://HOST:PORT"
                    .to_owned(),
            ));
        }
        None => format!("http://{address}"),
    };
    let mut endpoint = Endpoint::from_shared(uri)
        .map_err(|error| invalid(with_causes(&error)))?
        .connect_timeout(options.timeout)
        .tcp_nodelay(true)
        .initial_stream_window_size(1 << 20)
        .initial_connection_window_size(64 << 20)
        .max_frame_size(FRAME_BYTES)
        .http2_max_header_list_size(256 << 10);
    if encrypted {
        let authority = options.certificate_authority.as_ref().ok_or_else(|| {
            invalid(
                "an encrypted connection needs the certificates to trust; give them in the options"
                    .to_owned(),
            )
        })?;
        let mut tls = ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authority));
        if let Some(name) = &options.server_name {
            tls = tls.domain_name(name);
        }
        if let Some((certificate, key)) = &options.credentials.certificate {
            tls = tls.identity(Identity::from_pem(certificate, key));
        }
        endpoint = endpoint.tls_config(tls).map_err(|error| {
            ProxyError::configuration("the certificate", "given", with_causes(&error))
        })?;
    }
    let authorization = options.credentials.authorization()?;
    let channel = endpoint.connect().await.map_err(|error| ProxyError::Connection {
        address: address.to_owned(),
        reason: with_causes(&error),
    })?;
    Ok(Transport { channel, authorization })
}

/// A call of the service, when the connection has room for one.
///
/// # Errors
/// UNAVAILABLE if the connection is gone.
pub(super) async fn ready(transport: &Transport) -> Result<Grpc<Channel>, Status> {
    let channel = transport.channel.clone();
    let mut grpc = Grpc::new(channel).max_decoding_message_size(service::ANSWER_BYTES);
    grpc.ready().await.map_err(|error| status!(Unavailable, "{}", with_causes(&error)))?;
    Ok(grpc)
}

/// A call with one message each way.
///
/// # Errors
/// The status of the call.
pub(super) async fn unary<T, U>(
    transport: &Transport,
    path: &'static str,
    message: T,
) -> Result<U, Status>
where
    T: Message + Send + Sync + 'static,
    U: Message + Default + Send + Sync + 'static,
{
    call(transport, path, message).await.map(tonic::Response::into_inner)
}

/// As [`unary`], with what the server says beside the message.
async fn call<T, U>(
    transport: &Transport,
    path: &'static str,
    message: T,
) -> Result<tonic::Response<U>, Status>
where
    T: Message + Send + Sync + 'static,
    U: Message + Default + Send + Sync + 'static,
{
    let mut grpc = ready(transport).await?;
    let codec: ProstCodec<T, U> = ProstCodec::default();
    let answer = grpc.unary(transport.call(message), PathAndQuery::from_static(path), codec).await;
    answer.map_err(|status| from_grpc(&status))
}

/// Asks the server for the versions of the session; also, whether it takes requests with transfers.
///
/// # Errors
/// [`ProxyError::Refused`]; [`ProxyError::Connection`]; [`ProxyError::Protocol`].
pub(super) async fn handshake(
    transport: &Transport,
    address: &str,
    options: &ClientOptions,
) -> Result<(Agreement, bool), ProxyError> {
    let asked = call(transport, service::GET_VERSION, options.ranges.to_request());
    let answer = tokio::time::timeout(options.timeout, asked).await;
    let answer: tonic::Response<GrpcGetVersionResponse> = match answer {
        Ok(Ok(answer)) => answer,
        Ok(Err(status)) if status.code() == StatusCode::Unavailable => {
            return Err(ProxyError::Connection {
                address: address.to_owned(),
                reason: status.message().to_owned(),
            });
        }
        // Who may not ask has got no answer.
        Ok(Err(status))
            if matches!(
                status.code(),
                StatusCode::Unauthenticated
                    | StatusCode::PermissionDenied
                    | StatusCode::ResourceExhausted
            ) =>
        {
            return Err(status.into());
        }
        Ok(Err(status)) => return Err(ProxyError::Refused { status, offered: options.ranges }),
        Err(_) => {
            return Err(ProxyError::Connection {
                address: address.to_owned(),
                reason: format!("no answer in {} seconds", options.timeout.as_secs_f64()),
            });
        }
    };
    let takes_requests = answer.metadata().contains_key(service::TAKES_REQUESTS);
    let version = answer.into_inner().version.unwrap_or_default();
    let agreement = options.ranges.confirm(version).map_err(|_| {
        ProxyError::Protocol(format!(
            "it chose protocol {} and serdes {}; it was offered {}",
            version.protocol_version, version.ifrt_serdes_version_number, options.ranges
        ))
    })?;
    Ok((agreement, takes_requests))
}

/// Who waits for an answer.
type Waiter = oneshot::Sender<Result<Response, Status>>;

/// What goes out: requests, with numbers in the order in which they are sent.
struct Sending {
    requests: mpsc::UnboundedSender<IfrtRequest>,
    next_op: u64,
}

impl Sending {
    /// The number of the next request.
    const fn next_number(&mut self) -> u64 {
        let number = self.next_op;
        self.next_op += 1;
        number
    }
}

/// Who waits for which answer; why nobody will get one any more.
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
    sending: Mutex<Sending>,
    waiting: Arc<Mutex<Waiting>>,
    next_handle: AtomicU64,
    user_context: u64,
    /// Whether transfers may bring requests along.
    takes_requests: bool,
    reader: AbortHandle,
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Connection {
    /// Connects, shakes hands, and opens the stream of a session.
    ///
    /// # Errors
    /// As [`open`] and [`handshake`]; [`ProxyError::Status`] if the server refuses the session.
    pub(super) async fn open(address: &str, options: &ClientOptions) -> Result<Self, ProxyError> {
        let transport = open(address, options).await?;
        let (agreement, takes_requests) = handshake(&transport, address, options).await?;
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
        Ok(Self {
            transport,
            address: address.to_owned(),
            agreement,
            session: OnceLock::new(),
            sending: Mutex::new(Sending { requests, next_op: 1 }),
            waiting,
            next_handle: AtomicU64::new(1),
            user_context: RandomState::new().hash_one(address).max(1),
            takes_requests,
            reader,
        })
    }

    /// Whether transfers may bring requests along.
    pub(super) const fn takes_requests(&self) -> bool {
        self.takes_requests
    }

    /// The same, to a server that does not take requests with transfers.
    #[cfg(test)]
    pub(super) fn without_requests(self) -> Self {
        let mut own = self;
        own.takes_requests = false;
        own
    }

    /// A request that is not sent on the stream of the session; its number is one of the session's
    /// all the same, as logs know it by that.
    pub(super) fn beside_stream(&self, request: Request) -> IfrtRequest {
        let op_id = lock(&self.sending).next_number();
        requests::numbered(op_id, self.user_context, request)
    }

    /// Takes the id that the server gave the session.
    pub(super) fn start(&self, session: u64) {
        self.session.get_or_init(|| session);
    }

    /// The id of the session.
    pub(super) fn session(&self) -> u64 {
        self.session.get().copied().unwrap_or_default()
    }

    /// What both sides speak.
    pub(super) const fn agreement(&self) -> Agreement {
        self.agreement
    }

    /// A handle for an array or a host buffer.
    pub(super) fn new_handle(&self) -> u64 {
        self.next_handle.fetch_add(1, Ordering::Relaxed)
    }

    /// Sends a request; the answer comes to the receiver.
    fn send(&self, request: Request) -> oneshot::Receiver<Result<Response, Status>> {
        let (sender, receiver) = oneshot::channel();
        let mut sending = lock(&self.sending);
        let op_id = sending.next_number();
        let mut waiting = lock(&self.waiting);
        match &waiting.over {
            Some(status) => drop(sender.send(Err(status.clone()))),
            None => {
                waiting.by_op.insert(op_id, sender);
                let request = requests::numbered(op_id, self.user_context, request);
                if sending.requests.send(request).is_err() {
                    waiting.by_op.remove(&op_id);
                }
            }
        }
        receiver
    }

    /// The answer to a request. The request is sent at once, in the order of the calls, before the
    /// first `await`.
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

    /// Tells the server to forget an array; nobody waits for it.
    pub(super) fn destruct(&self, handle: u64) {
        drop(self.send(Request::DestructArrayRequest(requests::destruct(vec![handle]))));
    }

    /// Frees an array.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub(super) async fn delete(&self, handle: u64) -> Result<(), ProxyError> {
        let request = requests::delete(vec![handle]);
        let answer = self.request(Request::DeleteArrayRequest(request)).await?;
        let Response::DeleteArrayResponse(answer) = answer else {
            return Err(unexpected("a deletion"));
        };
        let request = requests::check_future(answer.deletion_future_handle);
        self.request(Request::CheckFutureRequest(request)).await.map(drop)
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.reader.abort();
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
