//! Requests over HTTP, for the clients of object storage and for files of the web.
//!
//! Built on the stack of the proxy's server: an HTTP client with another stack would take longer to
//! build than the rest of this module.

use std::{
    io,
    sync::{Arc, OnceLock},
    time::Duration,
};

use async_trait::async_trait;
use bytes::{Bytes, BytesMut};
use http::{Response, header};
use http_body_util::{BodyExt, Limited};
use hyper::body::{Body, Incoming};
use hyper_rustls::HttpsConnector;
use hyper_util::{
    client::{
        legacy::{self, connect::HttpConnector},
        proxy::matcher::Matcher,
    },
    rt::{TokioExecutor, TokioTimer},
};
use object_store::{
    ClientConfigKey, ClientOptions,
    client::{
        HttpClient, HttpConnector as ConnectsStores, HttpError, HttpErrorKind, HttpRequest,
        HttpRequestBody, HttpResponse, HttpService,
    },
};
use serdes_files::object::with_causes;
use tokio::time::timeout;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::ring};

use super::http_proxy::ProxyConnector;

/// Longest time for a request with its answer, which may be the upload of a part over a slow line.
const LONGEST_REQUEST: Duration = Duration::from_secs(5 * 60);
/// Longest time until a connection is established.
const LONGEST_CONNECT: Duration = Duration::from_secs(10);
/// Longest time that an unused connection is kept.
const IDLE: Duration = Duration::from_secs(30);
/// Maximum size in bytes of an answer to a request without a range: lists and errors.
const LONGEST_ANSWER: usize = 16 << 20;

/// An HTTP client that reuses connections.
#[derive(Clone)]
pub(super) struct Client {
    client: legacy::Client<HttpsConnector<ProxyConnector>, HttpRequestBody>,
    via: ProxyConnector,
    /// True if unencrypted requests are permitted.
    allow_plain: bool,
    limit: Duration,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").finish_non_exhaustive()
    }
}

/// Returns the system's trusted certificates, or those of the files that `SSL_CERT_FILE` and
/// `SSL_CERT_DIR` name.
fn trusted() -> Arc<RootCertStore> {
    static TRUSTED: OnceLock<Arc<RootCertStore>> = OnceLock::new();
    let load = || {
        let mut roots = RootCertStore::empty();
        // Certificates that cannot be parsed are ignored; connections that need them fail.
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        Arc::new(roots)
    };
    Arc::clone(TRUSTED.get_or_init(load))
}

impl Client {
    /// Creates a client that uses these proxies.
    ///
    /// # Errors
    /// If TLS is unavailable, which is a mistake of the build.
    pub(super) fn new(proxies: Matcher, allow_plain: bool, connect: Duration) -> io::Result<Self> {
        let tls = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(trusted())
            .with_no_client_auth();
        let mut direct = HttpConnector::new();
        direct.enforce_http(false);
        direct.set_nodelay(true);
        direct.set_connect_timeout(Some(connect));
        let via = ProxyConnector { direct, proxies: Arc::new(proxies) };
        let client = legacy::Client::builder(TokioExecutor::new())
            .pool_idle_timeout(IDLE)
            .pool_timer(TokioTimer::new())
            .build(HttpsConnector::from((via.clone(), tls)));
        Ok(Self { client, via, allow_plain, limit: LONGEST_REQUEST })
    }

    /// Creates a client for files of the web, which permits unencrypted requests.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(super) fn of_web() -> io::Result<Self> {
        Self::new(Matcher::from_env(), true, LONGEST_CONNECT)
    }

    /// Sends a request; returns the head of the answer, whose body is still to be read.
    ///
    /// # Errors
    /// If there is no answer.
    pub(super) async fn send(
        &self,
        mut request: HttpRequest,
    ) -> Result<Response<Incoming>, HttpError> {
        if request.uri().scheme_str() == Some("http") && !self.allow_plain {
            let reason = "the endpoint is http://, which is not encrypted; AWS_ALLOW_HTTP=true, \
                GOOGLE_ALLOW_HTTP=true or AZURE_ALLOW_HTTP=true takes it all the same";
            return Err(HttpError::new(HttpErrorKind::Unknown, io::Error::other(reason)));
        }
        if let Some(authorization) = self.via.authorization(request.uri()) {
            request.headers_mut().insert(header::PROXY_AUTHORIZATION, authorization);
        }
        self.client.request(request).await.map_err(|error| {
            let kind =
                if error.is_connect() { HttpErrorKind::Connect } else { HttpErrorKind::Request };
            HttpError::new(kind, io::Error::other(with_causes(&error)))
        })
    }
}

/// Returns the number of bytes that a request asks for, if it has a range.
fn wanted_bytes(request: &HttpRequest) -> Option<usize> {
    let range = request.headers().get(header::RANGE)?.to_str().ok()?;
    let (begin, end) = range.strip_prefix("bytes=")?.split_once('-')?;
    let length = end.parse::<usize>().ok()?.checked_sub(begin.parse().ok()?)?;
    length.checked_add(1)
}

/// Returns the number of bytes to allocate before a body of an announced length arrives, of which
/// at most `most` are read.
pub(super) fn room_for(said: Option<u64>, most: u64) -> usize {
    usize::try_from(said.unwrap_or_default().min(most).min(LONGEST_ANSWER as u64)).unwrap_or(0)
}

/// Collects a body; each frame is copied into place as it arrives, since many bodies arrive at a
/// time.
async fn gathered(
    body: Incoming,
    most: usize,
) -> Result<Bytes, Box<dyn std::error::Error + Send + Sync>> {
    let room = room_for(body.size_hint().exact(), most as u64);
    let mut bytes = BytesMut::with_capacity(room);
    let mut body = Limited::new(body, most);
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            bytes.extend_from_slice(&data);
        }
    }
    Ok(bytes.freeze())
}

#[async_trait]
impl HttpService for Client {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        let most = wanted_bytes(&request).unwrap_or_default().max(LONGEST_ANSWER);
        let answer = async {
            let (head, body) = self.send(request).await?.into_parts();
            let body = gathered(body, most).await.map_err(|error| {
                HttpError::new(HttpErrorKind::Interrupted, io::Error::other(with_causes(&*error)))
            })?;
            Ok(HttpResponse::from_parts(head, body.into()))
        };
        timeout(self.limit, answer).await.unwrap_or_else(|_| {
            let reason = format!("no whole answer within {} seconds", self.limit.as_secs());
            Err(HttpError::new(HttpErrorKind::Timeout, io::Error::other(reason)))
        })
    }
}

/// Creates the HTTP clients of stores.
#[derive(Clone, Copy, Debug)]
pub(super) struct Connector;

impl ConnectsStores for Connector {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        let value = |key| options.get_config_value(&key);
        let is_set = |key| value(key).is_some_and(|text| is_true(&text));
        if is_set(ClientConfigKey::AllowInvalidCertificates) {
            return Err(unsupported(
                "certificates are always checked; name the file of your own ones in SSL_CERT_FILE",
            ));
        }
        let proxies = match value(ClientConfigKey::ProxyUrl) {
            Some(proxy) => Matcher::builder()
                .all(proxy)
                .no(value(ClientConfigKey::ProxyExcludes).unwrap_or_default())
                .build(),
            None => Matcher::from_env(),
        };
        let connect = value(ClientConfigKey::ConnectTimeout)
            .and_then(|text| humantime::parse_duration(&text).ok())
            .unwrap_or(LONGEST_CONNECT);
        let mut client = Client::new(proxies, is_set(ClientConfigKey::AllowHttp), connect)
            .map_err(|error| unsupported(&error.to_string()))?;
        // The default of 30 s is too short for a part over a slow line.
        let limit = value(ClientConfigKey::Timeout);
        let limit = limit.and_then(|text| humantime::parse_duration(&text).ok());
        client.limit =
            limit.filter(|limit| *limit != Duration::from_secs(30)).unwrap_or(LONGEST_REQUEST);
        Ok(HttpClient::new(client))
    }
}

/// Returns true if object_store reads the setting's text as true.
fn is_true(text: &str) -> bool {
    ["1", "true", "on", "yes", "y"].iter().any(|word| text.eq_ignore_ascii_case(word))
}

fn unsupported(reason: &str) -> object_store::Error {
    object_store::Error::NotSupported { source: reason.to_owned().into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_says_yes_in_every_word_that_object_store_takes() {
        for yes in ["true", "TRUE", "1", "on", "Yes", "y"] {
            let options = ClientOptions::new().with_config(ClientConfigKey::AllowHttp, yes);
            assert!(options.get_config_value(&ClientConfigKey::AllowHttp).is_some());
            assert!(is_true(yes), "{yes}");
        }
        for no in ["false", "0", "off", "no", "n", "", "2"] {
            assert!(!is_true(no), "{no}");
        }
    }

    fn request(range: &str) -> HttpRequest {
        let request = http::Request::builder().uri("https://host/").header(header::RANGE, range);
        request.body(HttpRequestBody::empty()).unwrap()
    }

    #[test]
    fn a_request_says_how_long_its_answer_may_be() {
        assert_eq!(wanted_bytes(&request("bytes=0-0")), Some(1));
        assert_eq!(wanted_bytes(&request("bytes=100-299")), Some(200));
        for range in ["bytes=5-4", "bytes=-5", "bytes=5-", "bytes=0-99999999999999999999", "x"] {
            assert_eq!(wanted_bytes(&request(range)), None, "{range}");
        }
    }
}
