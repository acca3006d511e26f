//! Connects to servers directly or through the proxy of the environment.

use std::{
    io,
    pin::Pin,
    task::{Context, Poll},
};

use http::{HeaderValue, Uri, uri::Scheme};
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::{
    client::{
        legacy::connect::{Connected, Connection, HttpConnector, proxy::Tunnel},
        proxy::matcher::Matcher,
    },
    rt::TokioIo,
};
use tokio::net::TcpStream;
use tower_service::Service;

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Connects to hosts, or to their proxy.
#[derive(Clone)]
pub(super) struct ProxyConnector {
    pub(super) direct: HttpConnector,
    pub(super) proxies: std::sync::Arc<Matcher>,
}

impl ProxyConnector {
    /// Returns the value of `Proxy-Authorization` for an unencrypted request, which the proxy
    /// reads.
    pub(super) fn authorization(&self, uri: &Uri) -> Option<HeaderValue> {
        let is_plain = uri.scheme() == Some(&Scheme::HTTP);
        let proxy = is_plain.then(|| self.proxies.intercept(uri)).flatten()?;
        proxy.basic_auth().cloned()
    }
}

impl Service<Uri> for ProxyConnector {
    type Response = Stream;
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, BoxError>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        self.direct.poll_ready(context).map_err(Into::into)
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let mut direct = self.direct.clone();
        let Some(proxy) = self.proxies.intercept(&uri) else {
            let connecting = direct.call(uri);
            return Box::pin(async move { Ok(Stream { io: connecting.await?, proxied: false }) });
        };
        if uri.scheme() == Some(&Scheme::HTTP) {
            let connecting = direct.call(proxy.uri().clone());
            return Box::pin(async move { Ok(Stream { io: connecting.await?, proxied: true }) });
        }
        let mut tunnel = Tunnel::new(proxy.uri().clone(), direct);
        if let Some(authorization) = proxy.basic_auth() {
            tunnel = tunnel.with_auth(authorization.clone());
        }
        let connecting = tunnel.call(uri);
        Box::pin(async move { Ok(Stream { io: connecting.await?, proxied: false }) })
    }
}

/// A connection; also records if a proxy reads its requests.
pub(super) struct Stream {
    io: TokioIo<TcpStream>,
    proxied: bool,
}

impl Stream {
    fn io(self: Pin<&mut Self>) -> Pin<&mut TokioIo<TcpStream>> {
        Pin::new(&mut self.get_mut().io)
    }
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        self.io.connected().proxy(self.proxied)
    }
}

impl Read for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        self.io().poll_read(context, buffer)
    }
}

impl Write for Stream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.io().poll_write(context, bytes)
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io().poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.io().poll_shutdown(context)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.io().poll_write_vectored(context, buffers)
    }
}
