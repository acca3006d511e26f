//! Transfers of host buffers to and from the server.

use bytes::Bytes;
use prost::Message as _;
use serdes::{
    codec::StatusCode,
    proto::xla::ifrt::proxy::{
        GrpcHostBufferDeleteRequest, GrpcHostBufferDeleteResponse, GrpcHostBufferLookupRequest,
        GrpcHostBufferLookupResponse, GrpcHostBufferStoreResponse, IfrtRequest,
        ifrt_request::Request,
    },
};
use tonic::{Request as Call, body::Body, metadata::MetadataValue};

use super::{
    connection::Connection,
    transport::{is_over, unary},
};
use crate::{
    ProxyError,
    boxed::BoxFuture,
    bulk::{DataMessages, DataParts, one_message},
    requests, service,
    small_transfers::SmallTransfer,
};

impl Connection {
    /// Stores a host buffer, together with the request that uses it if the server accepts both at
    /// once.
    ///
    /// # Errors
    /// [`ProxyError::Status`].
    pub(super) fn store(
        &self,
        handle: u64,
        bytes: Bytes,
        request: Option<Request>,
    ) -> BoxFuture<'_, Result<(), ProxyError>> {
        Box::pin(self.store_bytes(handle, bytes, request))
    }

    async fn store_bytes(
        &self,
        handle: u64,
        bytes: Bytes,
        request: Option<Request>,
    ) -> Result<(), ProxyError> {
        let mut request = request.map(|request| self.beside_stream(request));
        if let Some(small) = self.small_transfers(Some(bytes.len() as u64))
            && request.is_some()
        {
            let transfer = SmallTransfer { request, data: bytes.clone() };
            if let Some(answer) = small.send(&transfer) {
                return answer.await.map(drop);
            }
            request = transfer.request;
        }
        let metadata = requests::store_metadata(self.session(), handle, bytes.len());
        let parts = (0..bytes.len()).step_by(service::CHUNK_BYTES).map(move |start| {
            Ok(bytes.slice(start..bytes.len().min(start + service::CHUNK_BYTES)))
        });
        let mut call = self.transport.call(());
        insert_once(&mut call, service::STORE_METADATA, &metadata.encode_to_vec());
        call.metadata_mut().insert(service::BRIEF, MetadataValue::from_static("yes"));
        if let Some(request) = request {
            bring(&mut call, &request);
        }
        let body = DataMessages::request(tokio_stream::iter(parts));
        let answer = self.transport.send(service::HOST_BUFFER_STORE, call, body).await?;
        if is_over(&answer) {
            return Ok(());
        }
        let mut answer: DataParts<GrpcHostBufferStoreResponse> =
            DataParts::new(answer.into_body(), service::ANSWER_BYTES);
        while answer.next().await?.is_some() {}
        Ok(())
    }

    /// Fetches the bytes of an array, row-major; `expected` is their number, if known.
    ///
    /// # Errors
    /// [`ProxyError::Status`]; [`ProxyError::Protocol`] for a wrong number of bytes.
    pub(super) fn fetch(
        &self,
        array_handle: u64,
        expected: Option<u64>,
    ) -> BoxFuture<'_, Result<Bytes, ProxyError>> {
        Box::pin(self.fetch_bytes(array_handle, expected))
    }

    async fn fetch_bytes(
        &self,
        array_handle: u64,
        expected: Option<u64>,
    ) -> Result<Bytes, ProxyError> {
        let (session, handle) = (self.session(), self.new_handle());
        let request = requests::copy_to_host_buffer(array_handle, handle);
        if self.takes_requests() {
            let copied = self.beside_stream(Request::CopyToHostBufferRequest(request));
            let found = self.copied(handle, copied, expected).await;
            return match found {
                Ok(bytes) => Ok(bytes),
                Err(error) => Err(self.reason(error).await),
            };
        }
        // Both are sent at once: a server may see the look-up first, when the buffer does not exist
        // yet.
        let copied = self.request(Request::CopyToHostBufferRequest(request));
        let looked_up = self.look_up(requests::look_up(session, handle), None, expected);
        let (mut copied, mut looked_up) = (std::pin::pin!(copied), std::pin::pin!(looked_up));
        let early = tokio::select! {
            biased;
            early = looked_up.as_mut() => {
                copied.await?;
                early
            }
            answer = copied.as_mut() => {
                answer?;
                looked_up.await
            }
        };
        match early {
            Err(ProxyError::Status(status)) if status.code() == StatusCode::NotFound => {
                self.look_up(requests::look_up(session, handle), None, expected).await
            }
            looked_up => looked_up,
        }
    }

    /// Fetches the bytes of the host buffer that a request fills, in one call or message.
    async fn copied(
        &self,
        handle: u64,
        request: IfrtRequest,
        expected: Option<u64>,
    ) -> Result<Bytes, ProxyError> {
        let mut transfer = SmallTransfer { request: Some(request), data: Bytes::new() };
        if let Some(small) = self.small_transfers(expected)
            && let Some(answer) = small.send(&transfer)
        {
            return checked(answer.await?, expected);
        }
        let request = requests::look_up(self.session(), handle);
        self.look_up(request, transfer.request.take(), expected).await
    }

    /// Deletes a host buffer without waiting for the answer: if the request gets lost, the end of
    /// the session deletes the buffer.
    fn forget(&self, request: GrpcHostBufferDeleteRequest) {
        let transport = self.transport.clone();
        tokio::spawn(async move {
            let handle = request.handle;
            let deleted: Result<GrpcHostBufferDeleteResponse, _> =
                unary(&transport, service::HOST_BUFFER_DELETE, request).await;
            if let Err(status) = deleted {
                tracing::debug!(handle, reason = status.message(), "host buffer not deleted");
            }
        });
    }

    /// Takes the bytes of a host buffer, which the server then removes; sends along the request
    /// that fills it if the server accepts both at once.
    async fn look_up(
        &self,
        request: GrpcHostBufferLookupRequest,
        copied: Option<IfrtRequest>,
        expected: Option<u64>,
    ) -> Result<Bytes, ProxyError> {
        let forgotten = requests::delete_host_buffer(request.session_id, request.handle);
        let body = one_message(&request);
        let mut call = self.transport.call(());
        call.metadata_mut().insert(service::TAKE, MetadataValue::from_static("take"));
        if let Some(copied) = copied {
            bring(&mut call, &copied);
        }
        let answer = self.transport.send(service::HOST_BUFFER_LOOKUP, call, body).await?;
        let is_taken = answer.headers().contains_key(service::TAKE);
        let bytes = gather(answer.into_body(), expected).await;
        if !is_taken {
            self.forget(forgotten);
        }
        bytes
    }
}

/// Attaches a request to a call.
fn bring<T>(call: &mut Call<T>, request: &IfrtRequest) {
    insert_once(call, service::REQUEST, &request.encode_to_vec());
}

/// Adds metadata that differs from call to call and is kept out of HTTP/2's tables, where it would
/// displace the constant entries.
fn insert_once<T>(call: &mut Call<T>, key: &'static str, bytes: &[u8]) {
    let mut value = MetadataValue::from_bytes(bytes);
    value.set_sensitive(true);
    call.metadata_mut().insert_bin(key, value);
}

/// Collects the bytes of a body's messages; `expected` is their number, if known.
///
/// # Errors
/// [`ProxyError::Status`]; [`ProxyError::Protocol`] for a wrong number of bytes.
async fn gather(body: Body, expected: Option<u64>) -> Result<Bytes, ProxyError> {
    let mut parts: DataParts<GrpcHostBufferLookupResponse> =
        DataParts::new(body, service::ANSWER_BYTES);
    // Small buffers arrive in one part, which is not copied.
    let mut first = Bytes::new();
    let mut whole = Vec::new();
    while let Some(part) = parts.next().await? {
        if first.is_empty() && whole.is_empty() {
            first = part;
            continue;
        }
        if whole.is_empty() {
            let room = expected.and_then(|bytes| usize::try_from(bytes).ok()).unwrap_or(0);
            whole.try_reserve_exact(room).map_err(|error| ProxyError::System {
                doing: "making room for an array",
                error: error.into(),
            })?;
            whole.extend_from_slice(&std::mem::take(&mut first));
        }
        whole.extend_from_slice(&part);
        // Stop reading once there are too many bytes.
        if expected.is_some_and(|expected| whole.len() as u64 > expected) {
            break;
        }
    }
    checked(if whole.is_empty() { first } else { whole.into() }, expected)
}

/// # Errors
/// [`ProxyError::Protocol`] for a wrong number of bytes.
fn checked(bytes: Bytes, expected: Option<u64>) -> Result<Bytes, ProxyError> {
    match expected {
        Some(expected) if expected != bytes.len() as u64 => Err(ProxyError::Protocol(format!(
            "the host buffer has {} bytes; expected {expected}",
            bytes.len()
        ))),
        _ => Ok(bytes),
    }
}
