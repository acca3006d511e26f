//! The server: accepts connections until it is stopped.

use std::{fmt, future::Future, sync::Arc, time::Duration};

use serdes::ifrt::AttributeMap;
use tokio::net::TcpListener;

use super::{
    LocalSession,
    access::{Acceptor, Encryption, Tokens},
    limits::Limits,
    metrics::Metrics,
    net::{Connections, serve_page},
    registry::Registry,
    state::{LiveArrays, Occasion},
};
use crate::{Handshake as _, ProxyError, Ranges, boxed::BoxFuture};

/// A proxy server over all devices of a plug-in. Clones are the same server.
#[derive(Clone)]
pub struct Server {
    pub(super) registry: Arc<Registry>,
    tls: Acceptor,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("ranges", &self.registry.ranges)
            .field("metrics", &self.metrics())
            .finish_non_exhaustive()
    }
}

impl Server {
    pub(super) fn new(registry: Arc<Registry>, tls: Acceptor) -> Self {
        Self { registry, tls }
    }

    /// Returns the current gauges and counters.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.registry.context.gauges.read()
    }

    /// Returns the supported protocol and format versions.
    #[must_use]
    pub fn ranges(&self) -> Ranges {
        self.registry.ranges
    }

    /// Saves all arrays into the state, including those that it has already; returns their number.
    /// Arrays whose data have not arrived are left out, which the log and the [`Metrics`] report.
    ///
    /// # Errors
    /// [`ProxyError::Configuration`] if the server has no state; [`ProxyError::State`] if the file
    /// cannot be written: the old one stays. If an array cannot be read, all others are saved, and
    /// its error is returned.
    pub async fn save(&self) -> Result<usize, ProxyError> {
        self.save_state().await
    }

    fn save_state(&self) -> BoxFuture<'_, Result<usize, ProxyError>> {
        Box::pin(async {
            let saved = self.registry.state.save(&self.live(), Occasion::Request).await;
            match &saved {
                Ok(arrays) => tracing::info!(arrays, "state saved"),
                Err(error) => tracing::error!(%error, "the state was not saved"),
            }
            saved
        })
    }

    /// Returns the limits of the server, completed by defaults from its devices.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.registry.context.limits
    }

    /// Replaces the accepted tokens. Sessions that were opened with another token end.
    pub fn replace_tokens(&self, tokens: Tokens) {
        tracing::info!(?tokens, "other tokens");
        self.registry.access.replace(tokens);
        self.registry.revoke();
    }

    /// Replaces the certificate chain, key and client authorities for new connections (all in PEM;
    /// `None` requires no client certificates). Open connections stay.
    ///
    /// # Errors
    /// [`ProxyError::Configuration`] for invalid input, and for a server of plain connections.
    /// Nothing changes then.
    pub fn replace_certificates(
        &self,
        certificate: impl AsRef<[u8]>,
        key: impl AsRef<[u8]>,
        client_authorities: Option<&[u8]>,
    ) -> Result<(), ProxyError> {
        self.tls.replace(&Encryption {
            identity: Some((certificate.as_ref().to_vec(), key.as_ref().to_vec())),
            client_authorities: client_authorities.map(<[u8]>::to_vec),
        })?;
        tracing::info!("other certificates");
        Ok(())
    }

    /// Abandons the current save and the one at the stop, for a quick exit. The previous state
    /// stays.
    pub fn abandon_save(&self) {
        self.registry.state.abandon();
    }

    /// Returns the longest time for which [`serve`](Self::serve) may continue after its `shutdown`
    /// completes.
    #[must_use]
    pub fn stop_limit(&self) -> Duration {
        let limits = &self.registry.context.limits;
        let saving =
            if self.registry.state.is_kept() { limits.save_timeout } else { Duration::ZERO };
        limits.drain_timeout.saturating_add(saving).saturating_add(limits.stop_timeout)
    }

    /// Serves the page of its [`Metrics`] at `/metrics`, in the text format of Prometheus, to every
    /// HTTP/1 client of `listener`, until [`serve`](Self::serve) stops. The page has neither
    /// identities nor data of clients.
    ///
    /// # Errors
    /// [`ProxyError::System`] if the listener fails.
    pub async fn serve_metrics(&self, listener: TcpListener) -> Result<(), ProxyError> {
        self.serve_page(listener).await
    }

    fn serve_page(&self, listener: TcpListener) -> BoxFuture<'_, Result<(), ProxyError>> {
        Box::pin(serve_page(Arc::clone(&self.registry), listener))
    }

    /// Opens a session in this process, without a network.
    ///
    /// # Errors
    /// [`ProxyError::Status`]: INVALID_ARGUMENT if the ranges do not overlap, RESOURCE_EXHAUSTED if
    /// there are too many sessions.
    pub fn local_session(&self, client: Ranges) -> Result<LocalSession, ProxyError> {
        let agreement = self.registry.ranges.answer(client)?;
        let caller = self.registry.own_caller();
        let session = self.registry.open(agreement, &AttributeMap::new(), &caller)?;
        Ok(LocalSession::new(Arc::clone(&self.registry), session))
    }

    /// Accepts no new sessions, and waits for the open ones to end.
    async fn drain(&self, limit: Duration) {
        let sessions = self.registry.context.gauges.read().sessions;
        tracing::info!(sessions, seconds = limit.as_secs_f64(), "no new sessions are taken");
        if tokio::time::timeout(limit, self.registry.drain()).await.is_err() {
            let sessions = self.registry.context.gauges.read().sessions;
            tracing::info!(sessions, "sessions that are still open end now");
        }
    }

    fn live(&self) -> Arc<dyn LiveArrays> {
        Arc::clone(&self.registry) as Arc<dyn LiveArrays>
    }

    /// Serves the clients that connect to `listener`, until `shutdown` completes. Then no new
    /// session is opened, and open ones continue until they end, for at most the limit
    /// `drain-seconds`. Then it saves the state, if it has one, and lets requests in progress
    /// finish within the limits. A failed save is retried a few times, and clients are served
    /// meanwhile.
    ///
    /// A call into the plug-in or the system that hangs stays on a thread of the runtime: shut that
    /// down with a timeout.
    ///
    /// # Errors
    /// [`ProxyError::System`] if the listener fails or saving takes too long; the errors of
    /// [`save`](Self::save).
    pub async fn serve(
        &self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), ProxyError> {
        self.serve_until(listener, Box::pin(shutdown)).await
    }

    fn serve_until<'a>(
        &'a self,
        listener: TcpListener,
        shutdown: BoxFuture<'a, ()>,
    ) -> BoxFuture<'a, Result<(), ProxyError>> {
        Box::pin(self.serve_connections(listener, shutdown))
    }

    async fn serve_connections(
        &self,
        listener: TcpListener,
        shutdown: BoxFuture<'_, ()>,
    ) -> Result<(), ProxyError> {
        let address = listener.local_addr().map_err(|error| ProxyError::System {
            doing: "asking the listener for its address",
            error,
        })?;
        let limits = &self.registry.context.limits;
        tracing::info!(%address, ranges = %self.registry.ranges, devices = self.registry.context.devices.len(), tls = self.tls.now().is_some(), "serving");
        let state = &self.registry.state;
        let stopping = self.registry.context.stop.clone();
        let mut stopped = self.registry.context.stop.subscribe();
        let mut saved = Ok(());
        let signal = async {
            shutdown.await;
            self.drain(limits.drain_timeout).await;
            // While the sessions still have their arrays.
            if state.is_kept() {
                saved = state.save_at_stop(&self.live(), limits.save_timeout).await;
            }
            stopping.send_replace(true);
        };
        let serving =
            Connections::new(Arc::clone(&self.registry), self.tls.clone()).serve(listener);
        let serving = async { tokio::join!(serving, signal).0 };
        let out_of_time = async {
            drop(stopped.wait_for(|stop| *stop).await);
            tokio::time::sleep(limits.stop_timeout).await;
        };
        let result = tokio::select! {
            result = serving => result,
            () = out_of_time => Ok(()),
        };
        self.registry.end_all();
        state.release();
        tracing::info!(%address, "stopped");
        saved?;
        result
    }
}
