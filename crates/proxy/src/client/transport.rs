//! The connection to a server: opening it, the handshake, and calls.

use std::future::poll_fn;

use prost::Message;
use serdes::{
    codec::{Status, StatusCode},
    proto::xla::ifrt::proxy::GrpcGetVersionResponse,
};
use tonic::{
    Request as Call,
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

use super::ClientOptions;
use crate::{
    Agreement, ProxyError,
    error::with_causes,
    handshake, service,
    status::{from_grpc, status},
};

/// A connection, with the metadata that every call sends.
#[derive(Clone)]
pub(super) struct Transport {
    channel: Channel,
    authorization: Option<MetadataValue<Ascii>>,
}

impl Transport {
    /// Wraps a message as a call.
    pub(super) fn call<T>(&self, message: T) -> Call<T> {
        let mut call = Call::new(message);
        if let Some(authorization) = &self.authorization {
            call.metadata_mut().insert("authorization", authorization.clone());
        }
        call
    }

    /// Sends a call with a raw body; returns its answer.
    ///
    /// # Errors
    /// UNAVAILABLE if the connection is gone; the status of the call if its answer has no body.
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
        if is_over(&answer) {
            let status = tonic::Status::from_header_map(answer.headers());
            let failed = status.filter(|status| status.code() != tonic::Code::Ok);
            return failed.map_or(Ok(answer), |status| Err(from_grpc(&status)));
        }
        if answer.status() != http::StatusCode::OK {
            return Err(status!(Unavailable, "the answer is HTTP's {}", answer.status()));
        }
        Ok(answer)
    }
}

/// Returns true if an answer has its status in the headers and no body.
pub(super) fn is_over(answer: &http::Response<Body>) -> bool {
    answer.headers().contains_key(service::GRPC_STATUS)
}

/// Maximum data of a server's frame: the data of one host buffer message. HTTP/2's default frames
/// of 16 KiB cost a system call each.
const FRAME_BYTES: u32 = service::CHUNK_BYTES as u32;

/// Connects without sending a request.
///
/// # Errors
/// [`ProxyError::Configuration`] for the address, a certificate or a token;
/// [`ProxyError::Connection`] if there is no answer in time.
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

/// Waits until the connection can take a call.
///
/// # Errors
/// UNAVAILABLE if the connection is gone.
pub(super) async fn ready(transport: &Transport) -> Result<Grpc<Channel>, Status> {
    let channel = transport.channel.clone();
    let mut grpc = Grpc::new(channel).max_decoding_message_size(service::ANSWER_BYTES);
    grpc.ready().await.map_err(|error| status!(Unavailable, "{}", with_causes(&error)))?;
    Ok(grpc)
}

/// Makes a call with one message each way.
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
    let answer = call(transport, path, message).await;
    answer.map(tonic::Response::into_inner).map_err(|failure| failure.status)
}

/// The reason why a call has no answer.
struct Failure {
    status: Status,
    /// True if the connection broke without a status from the server.
    broke: bool,
}

/// Like [`unary`], and also returns the server's metadata.
async fn call<T, U>(
    transport: &Transport,
    path: &'static str,
    message: T,
) -> Result<tonic::Response<U>, Failure>
where
    T: Message + Send + Sync + 'static,
    U: Message + Default + Send + Sync + 'static,
{
    let mut grpc = ready(transport).await.map_err(|status| Failure { status, broke: true })?;
    let codec: ProstCodec<T, U> = ProstCodec::default();
    let answer = grpc.unary(transport.call(message), PathAndQuery::from_static(path), codec).await;
    answer.map_err(|status| Failure {
        broke: std::error::Error::source(&status).is_some(),
        status: from_grpc(&status),
    })
}

/// Features of this library's server beyond the protocol.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Extras {
    /// True if transfers may carry requests.
    pub(super) takes_requests: bool,
    /// True if there is a stream of small arrays.
    pub(super) has_small_transfers: bool,
}

/// Returns the remedy to suggest for a server that closes the connection without a message.
fn remedy(address: &str, options: &ClientOptions) -> &'static str {
    let encrypted = address.starts_with("https://");
    match (encrypted, &options.credentials.certificate) {
        (false, _) => "; where the server encrypts, its address begins with https://",
        (true, None) => "; where the server wants a certificate of its clients, give it one",
        (true, Some(_)) => "",
    }
}

/// Negotiates the versions of the session with the server, and its features beyond the protocol.
///
/// # Errors
/// [`ProxyError::Refused`]; [`ProxyError::Connection`]; [`ProxyError::Protocol`].
pub(super) async fn handshake(
    transport: &Transport,
    address: &str,
    options: &ClientOptions,
) -> Result<(Agreement, Extras), ProxyError> {
    let asked = call(transport, service::GET_VERSION, handshake::to_request(options.ranges));
    let answer = tokio::time::timeout(options.timeout, asked).await;
    let answer: tonic::Response<GrpcGetVersionResponse> = match answer {
        Ok(Ok(answer)) => answer,
        Ok(Err(Failure { status, broke })) if status.code() == StatusCode::Unavailable => {
            let remedy = if broke { remedy(address, options) } else { "" };
            return Err(ProxyError::Connection {
                address: address.to_owned(),
                reason: format!("{}{remedy}", status.message()),
            });
        }
        // A client that may not ask gets no answer.
        Ok(Err(Failure { status, .. }))
            if matches!(
                status.code(),
                StatusCode::Unauthenticated
                    | StatusCode::PermissionDenied
                    | StatusCode::ResourceExhausted
            ) =>
        {
            return Err(status.into());
        }
        Ok(Err(Failure { status, .. })) => {
            return Err(ProxyError::Refused { status, offered: options.ranges });
        }
        Err(_) => {
            return Err(ProxyError::Connection {
                address: address.to_owned(),
                reason: format!("no answer in {} seconds", options.timeout.as_secs_f64()),
            });
        }
    };
    let says = |key| answer.metadata().contains_key(key);
    let extras = Extras {
        takes_requests: says(service::TAKES_REQUESTS),
        has_small_transfers: says(service::HAS_SMALL_TRANSFERS),
    };
    let version = answer.into_inner().version.unwrap_or_default();
    let agreement = handshake::confirmed(options.ranges, version).map_err(|_| {
        ProxyError::Protocol(format!(
            "it chose protocol {} and serdes {}; it was offered {}",
            version.protocol_version, version.ifrt_serdes_version_number, options.ranges
        ))
    })?;
    Ok((agreement, extras))
}
