//! The page of metrics over HTTP/1, on a listener of its own that serves nothing else.
//!
//! All clients that reach that listener may read the page: it has no client's identity or data.
//! Each connection has one request and a few seconds; if there are too many, the oldest is closed,
//! so that idle connections keep no client out.

use std::{collections::VecDeque, convert::Infallible, sync::Arc, time::Duration};

use bytes::Bytes;
use hyper::{server::conn::http1, service::service_fn};
use hyper_util::rt::TokioIo;
use tokio::{net::TcpStream, task::JoinSet};
use tonic::{
    body::Body,
    codegen::http::{
        HeaderValue, Method, Request, Response, StatusCode,
        header::{ALLOW, CONTENT_TYPE},
    },
};

use super::accept::{Accept, Accepting};
use crate::{
    ProxyError,
    server::{
        metrics::{self, page},
        registry::Registry,
    },
};

/// Maximum number of connections.
const CONNECTIONS: usize = 64;
/// Longest life of a connection, from its first byte to its last.
const LIMIT: Duration = Duration::from_secs(5);
/// Maximum size of a request's head in bytes.
const HEAD_BYTES: usize = 16 << 10;

/// Answers requests for the page until the server stops.
///
/// # Errors
/// [`ProxyError::System`] if the listener fails for good.
pub(crate) async fn serve_page(
    registry: Arc<Registry>,
    listener: impl Accept,
) -> Result<(), ProxyError> {
    let mut stop = registry.context.stop.subscribe();
    let mut accepting = Accepting::new(listener);
    let (mut tasks, mut open) = (JoinSet::new(), VecDeque::new());
    loop {
        let accepted = tokio::select! {
            _ = stop.wait_for(|stop| *stop) => return Ok(()),
            accepted = accepting.next(|| {}) => accepted,
        };
        while tasks.try_join_next().is_some() {}
        open.retain(|task: &tokio::task::AbortHandle| !task.is_finished());
        if open.len() >= CONNECTIONS
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
        }
        let registry = Arc::clone(&registry);
        open.push_back(tasks.spawn(connection(registry, accepted?.0)));
    }
}

async fn connection(registry: Arc<Registry>, stream: TcpStream) {
    let service = service_fn(move |request| {
        let answer = answer(&registry, &request);
        async { Ok::<_, Infallible>(answer) }
    });
    let mut http = http1::Builder::new();
    let http = http.keep_alive(false).max_buf_size(HEAD_BYTES);
    let served = http.serve_connection(TokioIo::new(stream), service);
    match tokio::time::timeout(LIMIT, served).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::debug!(%error, "the request for the metrics broke off"),
        Err(_) => tracing::debug!("the request for the metrics took too long"),
    }
}

fn answer<B>(registry: &Registry, request: &Request<B>) -> Response<Body> {
    let text = |status, text: String| {
        let mut response = Response::new(Body::new(http_body_of(text)));
        *response.status_mut() = status;
        response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain"));
        response
    };
    if request.uri().path() != "/metrics" {
        return text(StatusCode::NOT_FOUND, "the metrics are at /metrics\n".to_owned());
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        let mut response =
            text(StatusCode::METHOD_NOT_ALLOWED, "the metrics can be read only\n".to_owned());
        response.headers_mut().insert(ALLOW, HeaderValue::from_static("GET, HEAD"));
        return response;
    }
    let context = &registry.context;
    let page = page(&metrics::Server {
        gauges: &context.gauges,
        limits: &context.limits.numbers(),
        devices: context.devices.len(),
        draining: *context.draining.borrow(),
    });
    let mut response = text(StatusCode::OK, page);
    let kind = HeaderValue::from_static(metrics::CONTENT_TYPE);
    response.headers_mut().insert(CONTENT_TYPE, kind);
    response
}

/// Returns a text as a complete body.
fn http_body_of(text: String) -> impl http_body::Body<Data = Bytes, Error = Infallible> {
    /// The text until it is taken.
    struct Text(Option<Bytes>);

    impl http_body::Body for Text {
        type Data = Bytes;
        type Error = Infallible;

        fn poll_frame(
            mut self: std::pin::Pin<&mut Self>,
            _: &mut std::task::Context<'_>,
        ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, Infallible>>> {
            std::task::Poll::Ready(self.0.take().map(|text| Ok(http_body::Frame::data(text))))
        }

        fn is_end_stream(&self) -> bool {
            self.0.is_none()
        }

        fn size_hint(&self) -> http_body::SizeHint {
            http_body::SizeHint::with_exact(self.0.as_ref().map_or(0, |text| text.len() as u64))
        }
    }

    Text(Some(text.into()))
}
