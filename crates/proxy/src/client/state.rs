//! Arrays in a server's state: naming the arrays of a session, and finding them again.

use prost::Message as _;
use serdes::{
    codec::FromProto as _,
    ifrt::{AnyDevice, ArraySpec, AttributeMap, AttributeValue, with_devices},
    proto::xla::ifrt::{
        ArraySpecProto,
        proxy::{
            GrpcHostBufferStoreMetadata, InitRequest, ifrt_request::Request,
            ifrt_response::Response,
        },
    },
};
use tonic::{codegen::http::uri::PathAndQuery, metadata::MetadataValue};
use tonic_prost::ProstCodec;

use super::{Client, ClientOptions, RemoteArray, devices, transport::ready};
use crate::{
    ProxyError,
    boxed::BoxFuture,
    keeping::{KeepRequest, KeepResponse, KeptArray},
    service,
    status::from_grpc,
};

/// Prefixes of the server's attributes, followed by the name of an array.
const HANDLE: &str = "serdes.state.handle.";
const SPEC: &str = "serdes.state.spec.";

impl ClientOptions {
    /// Names arrays of the session that the server keeps in its state: the first array from
    /// [`put_as`](Client::put_as) gets the first name, and so on. They belong to the clients that
    /// open a session of the name `session`, or to this client alone if the server authenticates
    /// clients.
    #[must_use]
    pub fn with_state_names<'a>(
        mut self,
        session: &str,
        arrays: impl IntoIterator<Item = &'a str>,
    ) -> Self {
        // Each session counts handles from 1.
        let names = (1_u64..).zip(arrays);
        let names = names.map(|(handle, name)| (format!("serdes.state.name.{handle}"), name));
        let own = ("serdes.state.name".to_owned(), session);
        let known = self.initialization_data.iter();
        let known = known.map(|(key, value)| (key.to_owned(), value.clone()));
        let names = std::iter::once(own).chain(names);
        let names = names.map(|(key, name)| (key, AttributeValue::from(name)));
        self.initialization_data = known.chain(names).collect();
        self
    }
}

impl Client {
    /// Returns the arrays of the server's state that this client may see, by name, as of the
    /// session's start. Dropping one does not remove it from the state; [`delete`](Self::delete)
    /// does.
    ///
    /// # Errors
    /// [`ProxyError::Decode`] if the server describes one in a form that this build cannot read.
    pub fn state_arrays(&self) -> Result<Vec<(String, RemoteArray)>, ProxyError> {
        self.arrays_of(self.attributes())
    }

    /// Like [`state_arrays`](Self::state_arrays), but returns the current arrays.
    ///
    /// # Errors
    /// As [`state_arrays`](Self::state_arrays); [`ProxyError::Status`] if the session is over.
    pub async fn current_state_arrays(&self) -> Result<Vec<(String, RemoteArray)>, ProxyError> {
        let init = self.connection.request(Request::InitRequest(InitRequest {})).await?;
        let Response::InitResponse(init) = init else {
            return Err(ProxyError::unexpected("an init response"));
        };
        self.arrays_of(&devices::attributes(init.client_attributes.as_ref())?)
    }

    /// Stores arrays of this session in the server's state, in place of all that it has there below
    /// `name`: each has a full name that begins with `name/`. Other clients with access see them at
    /// once, and the arrays outlive the session. Dropping one does not remove it from the state. On
    /// a server that identifies clients by tokens, the arrays stored with `previous_token`, which
    /// must still be one of the server's tokens, are replaced as well.
    ///
    /// Only this library's server has the call.
    ///
    /// # Errors
    /// [`ProxyError::Status`]: UNIMPLEMENTED from another server, FAILED_PRECONDITION if the server
    /// has no state file, ALREADY_EXISTS if a name belongs to another client, UNAUTHENTICATED if
    /// the previous token is unknown. The state is then unchanged.
    pub async fn keep<'a>(
        &self,
        name: &str,
        arrays: impl IntoIterator<Item = (&'a str, &'a RemoteArray)>,
        previous_token: Option<&str>,
    ) -> Result<(), ProxyError> {
        let arrays = arrays
            .into_iter()
            .map(|(name, array)| KeptArray { handle: array.handle(), name: name.to_owned() });
        let request = KeepRequest {
            name: name.to_owned(),
            arrays: arrays.collect(),
            previous_token: previous_token.unwrap_or_default().to_owned(),
        };
        self.send_keep(request).await
    }

    fn send_keep(&self, request: KeepRequest) -> BoxFuture<'_, Result<(), ProxyError>> {
        Box::pin(async move {
            let session_id = self.connection.session();
            let metadata = GrpcHostBufferStoreMetadata { session_id, ..Default::default() };
            let mut call = self.connection.transport.call(request);
            let value = MetadataValue::from_bytes(&metadata.encode_to_vec());
            call.metadata_mut().insert_bin(service::STORE_METADATA, value);
            let mut grpc = ready(&self.connection.transport).await?;
            let codec: ProstCodec<KeepRequest, KeepResponse> = ProstCodec::default();
            let kept = grpc.unary(call, PathAndQuery::from_static(service::KEEP), codec).await;
            kept.map(drop).map_err(|status| from_grpc(&status).into())
        })
    }

    fn arrays_of(
        &self,
        attributes: &AttributeMap,
    ) -> Result<Vec<(String, RemoteArray)>, ProxyError> {
        let mut arrays = Vec::new();
        for (key, value) in attributes.iter() {
            let (Some(name), AttributeValue::Int64(handle)) = (key.strip_prefix(HANDLE), value)
            else {
                continue;
            };
            let spec = attributes.get(&format!("{SPEC}{name}"))?;
            let AttributeValue::String(spec) = spec else {
                return Err(ProxyError::Protocol(format!(
                    "the spec of the array {name:?} is no text"
                )));
            };
            let spec = ArraySpecProto::decode(&spec[..])
                .map_err(|error| ProxyError::Protocol(format!("the spec of {name:?}: {error}")))?;
            // The server has resolved the devices: the ids are its own.
            let spec = ArraySpec::from_proto(&spec, &with_devices(AnyDevice))?;
            arrays.push((name.to_owned(), self.known(handle.cast_unsigned(), spec)));
        }
        Ok(arrays)
    }
}
