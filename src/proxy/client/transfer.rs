//! Host buffers on their way to and from the server.

use bytes::Bytes;
use prost::Message as _;
use tonic::{codegen::http::uri::PathAndQuery, metadata::MetadataValue};
use tonic_prost::ProstCodec;

use super::connection::{Connection, ready, unary};
use crate::{
    proto::xla::ifrt::proxy::{
        GrpcHostBufferDeleteResponse, GrpcHostBufferLookupRequest, GrpcHostBufferLookupResponse,
        GrpcHostBufferStoreRequest, GrpcHostBufferStoreResponse, ifrt_request::Request,
    },
    proxy::{ProxyError, requests, service, status::from_grpc},
};

impl Connection {
    /// Stores a host buffer.
    ///
    /// # Errors
    /// [`ProxyError::Status`].
    pub(super) async fn store(&self, handle: u64, bytes: Bytes) -> Result<(), ProxyError> {
        let metadata = requests::store_metadata(self.session(), handle, bytes.len());
        let chunks = (0..bytes.len()).step_by(service::CHUNK_BYTES).map(move |start| {
            let end = bytes.len().min(start + service::CHUNK_BYTES);
            requests::store_chunk(bytes.slice(start..end))
        });
        let mut call = self.transport.call(tokio_stream::iter(chunks));
        let value = MetadataValue::from_bytes(&metadata.encode_to_vec());
        call.metadata_mut().insert_bin(service::STORE_METADATA, value);
        let codec: ProstCodec<GrpcHostBufferStoreRequest, GrpcHostBufferStoreResponse> =
            ProstCodec::default();
        let path = PathAndQuery::from_static(service::HOST_BUFFER_STORE);
        let stored = ready(&self.transport).await?.client_streaming(call, path, codec).await;
        stored.map_err(|status| from_grpc(&status))?;
        Ok(())
    }

    /// The bytes of an array, row-major; `expected` are their number, where it is known.
    ///
    /// # Errors
    /// [`ProxyError::Status`]; [`ProxyError::Protocol`] for another number of bytes.
    pub(super) async fn fetch(
        &self,
        array_handle: u64,
        expected: Option<u64>,
    ) -> Result<Bytes, ProxyError> {
        let (session, handle) = (self.session(), self.new_handle());
        let request = requests::copy_to_host_buffer(array_handle, handle);
        self.request(Request::CopyToHostBufferRequest(request)).await?;
        let bytes = self.look_up(requests::look_up(session, handle), expected).await;
        let deleted: Result<GrpcHostBufferDeleteResponse, _> = unary(
            &self.transport,
            service::HOST_BUFFER_DELETE,
            requests::delete_host_buffer(session, handle),
        )
        .await;
        let bytes = bytes?;
        deleted?;
        Ok(bytes)
    }

    async fn look_up(
        &self,
        request: GrpcHostBufferLookupRequest,
        expected: Option<u64>,
    ) -> Result<Bytes, ProxyError> {
        let codec: ProstCodec<GrpcHostBufferLookupRequest, GrpcHostBufferLookupResponse> =
            ProstCodec::default();
        let path = PathAndQuery::from_static(service::HOST_BUFFER_LOOKUP);
        let answer = ready(&self.transport)
            .await?
            .server_streaming(self.transport.call(request), path, codec)
            .await;
        let mut stream = answer.map_err(|status| from_grpc(&status))?.into_inner();
        let wrong = |found: usize| {
            expected.filter(|expected| *expected != found as u64).map(|expected| {
                ProxyError::Protocol(format!(
                    "the host buffer has {found} bytes; expected {expected}"
                ))
            })
        };
        // Small buffers come in one piece, which is not copied.
        let mut first = Bytes::new();
        let mut whole = Vec::new();
        while let Some(message) = stream.message().await.map_err(|status| from_grpc(&status))? {
            if first.is_empty() && whole.is_empty() {
                first = message.data;
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
            whole.extend_from_slice(&message.data);
            // More than there can be is not read to its end.
            if expected.is_some_and(|expected| whole.len() as u64 > expected)
                && let Some(error) = wrong(whole.len())
            {
                return Err(error);
            }
        }
        let bytes = if whole.is_empty() { first } else { whole.into() };
        wrong(bytes.len()).map_or(Ok(bytes), Err)
    }
}
