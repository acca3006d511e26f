//! Host buffers on their way to and from the server.

use bytes::Bytes;
use prost::Message as _;
use tonic::{Request as Call, codegen::http::uri::PathAndQuery, metadata::MetadataValue};
use tonic_prost::ProstCodec;

use super::connection::{Connection, ready, unary};
use crate::{
    proto::xla::ifrt::proxy::{
        CopyToHostBufferRequest, GrpcHostBufferDeleteRequest, GrpcHostBufferDeleteResponse,
        GrpcHostBufferLookupRequest, GrpcHostBufferLookupResponse, GrpcHostBufferStoreMetadata,
        GrpcHostBufferStoreRequest, GrpcHostBufferStoreResponse, ifrt_request::Request,
    },
    proxy::{ProxyError, service, status::from_grpc},
};

impl Connection {
    /// Stores a host buffer.
    ///
    /// # Errors
    /// [`ProxyError::Status`].
    pub(super) async fn store(&self, handle: u64, bytes: Bytes) -> Result<(), ProxyError> {
        let buffer_size = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
        let metadata =
            GrpcHostBufferStoreMetadata { session_id: self.session(), handle, buffer_size };
        let chunks = (0..bytes.len()).step_by(service::CHUNK_BYTES).map(move |start| {
            let end = bytes.len().min(start + service::CHUNK_BYTES);
            GrpcHostBufferStoreRequest { data: bytes.slice(start..end) }
        });
        let mut call = Call::new(tokio_stream::iter(chunks));
        let value = MetadataValue::from_bytes(&metadata.encode_to_vec());
        call.metadata_mut().insert_bin(service::STORE_METADATA, value);
        let codec: ProstCodec<GrpcHostBufferStoreRequest, GrpcHostBufferStoreResponse> =
            ProstCodec::default();
        let path = PathAndQuery::from_static(service::HOST_BUFFER_STORE);
        let stored = ready(&self.channel).await?.client_streaming(call, path, codec).await;
        stored.map_err(|status| from_grpc(&status))?;
        Ok(())
    }

    /// The bytes of an array, row-major.
    ///
    /// # Errors
    /// [`ProxyError::Status`].
    pub(super) async fn fetch(&self, array_handle: u64) -> Result<Bytes, ProxyError> {
        let host_buffer_handle = self.new_handle();
        let request =
            CopyToHostBufferRequest { host_buffer_handle, array_handle, byte_strides: None };
        self.request(Request::CopyToHostBufferRequest(request)).await?;
        let (session_id, handle) = (self.session(), host_buffer_handle);
        let bytes = self.look_up(GrpcHostBufferLookupRequest { session_id, handle }).await;
        let deleted = GrpcHostBufferDeleteRequest { session_id, handle };
        let deleted: Result<GrpcHostBufferDeleteResponse, _> =
            unary(&self.channel, service::HOST_BUFFER_DELETE, deleted).await;
        let bytes = bytes?;
        deleted?;
        Ok(bytes)
    }

    async fn look_up(&self, request: GrpcHostBufferLookupRequest) -> Result<Bytes, ProxyError> {
        let codec: ProstCodec<GrpcHostBufferLookupRequest, GrpcHostBufferLookupResponse> =
            ProstCodec::default();
        let path = PathAndQuery::from_static(service::HOST_BUFFER_LOOKUP);
        let answer =
            ready(&self.channel).await?.server_streaming(Call::new(request), path, codec).await;
        let mut stream = answer.map_err(|status| from_grpc(&status))?.into_inner();
        let mut pieces: Vec<Bytes> = Vec::new();
        while let Some(message) = stream.message().await.map_err(|status| from_grpc(&status))? {
            pieces.push(message.data);
        }
        Ok(match pieces.len() {
            1 => pieces.swap_remove(0),
            _ => pieces.concat().into(),
        })
    }
}
