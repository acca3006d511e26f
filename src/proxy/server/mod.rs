//! The server: sessions of clients over the devices of a plug-in.

mod array;
mod devices;
mod element;
mod grpc;
mod host_buffer;
mod limits;
mod local;
mod make;
mod memory;
mod metrics;
mod read;
mod rearrange;
mod region;
mod remap;
mod reshard;
mod session;
mod state;
mod stream;
mod strings;
mod transfer;

#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod network_tests;
#[cfg(test)]
mod session_tests;

use std::{
    collections::HashMap,
    fmt,
    future::Future,
    path::PathBuf,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
};

use tokio::{
    net::TcpListener,
    sync::{Semaphore, watch},
};
use tonic::transport::{Identity, ServerTlsConfig, server::TcpIncoming};

pub use limits::Limits;
pub use local::LocalSession;
pub use metrics::Metrics;

use self::{
    devices::Devices, grpc::Service, limits::Budget, metrics::Gauges, session::Session,
    state::State,
};
use super::{Agreement, ProxyError, Ranges, status::status};
use crate::{codec::Status, ifrt::AttributeMap, stream_executor::Plugin};

/// Makes a [`Server`].
#[derive(Clone)]
pub struct ServerBuilder {
    plugin: Plugin,
    ranges: Ranges,
    limits: Limits,
    tls: Option<Identity>,
    transfer_directory: Option<PathBuf>,
    state: Option<PathBuf>,
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder")
            .field("ranges", &self.ranges)
            .field("limits", &self.limits)
            .field("tls", &self.tls.is_some())
            .finish_non_exhaustive()
    }
}

impl ServerBuilder {
    /// Speaks these versions only.
    #[must_use]
    pub fn ranges(mut self, ranges: Ranges) -> Self {
        self.ranges = ranges;
        self
    }

    /// Lets clients hold this much.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// Takes encrypted connections only, with this certificate chain and key in PEM.
    #[must_use]
    pub fn tls(mut self, certificate: impl AsRef<[u8]>, key: impl AsRef<[u8]>) -> Self {
        self.tls = Some(Identity::from_pem(certificate, key));
        self
    }

    /// Reads large host buffers from this directory, where clients that see it may leave them. Without it they come over the network.
    #[must_use]
    pub fn transfer_directory(mut self, directory: impl Into<PathBuf>) -> Self {
        self.transfer_directory = Some(directory.into());
        self
    }

    /// Restores the arrays of the device state at `path` when the server is built, if there is one, and saves arrays into it on
    /// [`Server::save`] and when the server stops.
    ///
    /// A client that sends `serdes.state.name` in its initialization data has its arrays saved as `<name>/<handle>`, and leaves them to the
    /// server when it goes; with `serdes.state.name.<handle>` it names one array. Arrays of other clients are saved as `session-<id>/<handle>`
    /// while their session is open. Clients find what was restored in the attributes of the server.
    #[must_use]
    pub fn state(mut self, path: impl Into<PathBuf>) -> Self {
        self.state = Some(path.into());
        self
    }

    /// The server; it does nothing yet.
    ///
    /// # Errors
    /// [`ProxyError::Configuration`] for ranges that this build does not speak, a certificate that cannot be used, and a plug-in without
    /// devices; [`ProxyError::Device`] if a device cannot be used.
    pub fn build(self) -> Result<Server, ProxyError> {
        let ranges = self.ranges.check_supported()?;
        let devices = Devices::of(&self.plugin)?;
        let tls = self.tls.map(|identity| ServerTlsConfig::new().identity(identity));
        if let Some(tls) = &tls {
            // Said now, not when the first client comes.
            let checked = tonic::transport::Server::builder().tls_config(tls.clone());
            checked.map_err(|error| {
                ProxyError::configuration("the certificate", "given", describe(&error))
            })?;
        }
        let gauges = Arc::default();
        let state = State::open(self.state, &devices, &gauges)?;
        let budget = || Budget::new("the server's host buffers", self.limits.total_host_bytes);
        let lanes = devices.len().saturating_mul(2).clamp(4, 64);
        Ok(Server {
            shared: Arc::new(Shared {
                ranges,
                budgets: [budget(), budget()],
                limits: self.limits,
                devices: Arc::new(devices),
                gauges,
                state,
                sessions: Mutex::default(),
                next_session: AtomicU64::new(1),
                lanes: Semaphore::new(lanes),
                stop: watch::Sender::new(false),
                transfer_directory: self.transfer_directory,
            }),
            tls,
        })
    }
}

/// What all sessions share.
pub(crate) struct Shared {
    ranges: Ranges,
    limits: Limits,
    devices: Arc<Devices>,
    gauges: Arc<Gauges>,
    /// For stores, and for results.
    budgets: [Budget; 2],
    sessions: Mutex<HashMap<u64, Arc<Session>>>,
    next_session: AtomicU64,
    /// Calls into the plug-in at a time.
    lanes: Semaphore,
    stop: watch::Sender<bool>,
    state: State,
    transfer_directory: Option<PathBuf>,
}

impl Shared {
    fn sessions(&self) -> std::sync::MutexGuard<'_, HashMap<u64, Arc<Session>>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens a session.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if there are too many.
    fn open(
        self: &Arc<Self>,
        agreement: Agreement,
        initialization: AttributeMap,
    ) -> Result<Arc<Session>, Status> {
        let mut sessions = self.sessions();
        if sessions.len() >= self.limits.sessions {
            return Err(status!(
                ResourceExhausted,
                "the server has {} sessions, as many as it may; try again later",
                sessions.len()
            ));
        }
        let id = self.next_session.fetch_add(1, Ordering::Relaxed);
        let session = Arc::new(Session::new(Arc::clone(self), id, agreement, initialization));
        self.gauges.sessions_opened.fetch_add(1, Ordering::Relaxed);
        sessions.insert(id, Arc::clone(&session));
        Ok(session)
    }

    /// # Errors
    /// NOT_FOUND.
    fn session(&self, id: u64) -> Result<Arc<Session>, Status> {
        self.sessions()
            .get(&id)
            .cloned()
            .ok_or_else(|| status!(NotFound, "there is no session {id}; it never was, or is over"))
    }

    /// Ends a session and frees what it holds.
    fn end(&self, session: &Session) {
        if self.sessions().remove(&session.id).is_some() {
            self.state.keep(session);
        }
        session.close();
    }

    /// Runs something that waits for a device, beside the tasks that wait for peers.
    ///
    /// # Errors
    /// Those of `work`; INTERNAL if it panics.
    async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> Result<T, Status> + Send + 'static,
    ) -> Result<T, Status> {
        let _lane = self.lanes.acquire().await;
        tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
            Err(status!(Internal, "a call into the plug-in failed: {error}"))
        })
    }
}

/// A proxy server over all devices of a plug-in. Clones are the same server.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
    tls: Option<ServerTlsConfig>,
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("ranges", &self.shared.ranges)
            .field("metrics", &self.metrics())
            .finish_non_exhaustive()
    }
}

impl Server {
    /// A server over the devices of `plugin`: all versions, the default limits, no encryption.
    #[must_use]
    pub fn builder(plugin: &Plugin) -> ServerBuilder {
        ServerBuilder {
            plugin: plugin.clone(),
            ranges: Ranges::supported(),
            limits: Limits::default(),
            tls: None,
            transfer_directory: None,
            state: None,
        }
    }

    /// What it holds at the moment.
    #[must_use]
    pub fn metrics(&self) -> Metrics {
        self.shared.gauges.read()
    }

    /// What it speaks.
    #[must_use]
    pub fn ranges(&self) -> Ranges {
        self.shared.ranges
    }

    /// Saves the arrays that it holds into its state; the number of arrays.
    ///
    /// # Errors
    /// [`ProxyError::Configuration`] if it has no state; [`ProxyError::State`] if the file cannot be written: the old one stays.
    pub async fn save(&self) -> Result<usize, ProxyError> {
        let saved = self.shared.state.save(&self.shared).await;
        match &saved {
            Ok(arrays) => tracing::info!(arrays, "state saved"),
            Err(error) => tracing::error!(%error, "the state was not saved"),
        }
        saved
    }

    /// Opens a session in this process, without a network between.
    ///
    /// # Errors
    /// [`ProxyError::Status`]: INVALID_ARGUMENT if the ranges have nothing in common, RESOURCE_EXHAUSTED if there are too many sessions.
    pub fn local_session(&self, client: Ranges) -> Result<LocalSession, ProxyError> {
        let agreement = self.shared.ranges.answer(client)?;
        let session = self.shared.open(agreement, AttributeMap::new())?;
        Ok(LocalSession::new(Arc::clone(&self.shared), session))
    }

    /// Serves the clients that connect to `listener`, until `shutdown` is done; then lets requests in progress finish, for the time that
    /// the limits say.
    ///
    /// # Errors
    /// [`ProxyError::System`] if the listener fails.
    pub async fn serve(
        &self,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send,
    ) -> Result<(), ProxyError> {
        let address = listener.local_addr().map_err(|error| ProxyError::System {
            doing: "asking the listener for its address",
            error,
        })?;
        let limits = &self.shared.limits;
        let mut builder = tonic::transport::Server::builder()
            // A store that nobody reads yet fills its stream's window; the window of the connection must leave room for the others.
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(STREAM_WINDOW * STREAMS)
            .max_concurrent_streams(STREAMS)
            .http2_max_header_list_size(HEADER_LIST_BYTES)
            .http2_keepalive_interval(Some(limits.keepalive))
            .http2_keepalive_timeout(Some(limits.keepalive));
        if let Some(tls) = &self.tls {
            builder = builder.tls_config(tls.clone()).map_err(|error| {
                ProxyError::configuration("the certificate", "given", describe(&error))
            })?;
        }
        // Small answers must not wait for more of them.
        let incoming = TcpIncoming::from(listener).with_nodelay(Some(true));
        tracing::info!(%address, ranges = %self.shared.ranges, devices = self.shared.devices.len(), tls = self.tls.is_some(), "serving");
        let stopping = self.shared.stop.clone();
        let mut stopped = self.shared.stop.subscribe();
        let has_state = self.shared.state.path().is_some();
        let mut saved = Ok(0);
        let signal = async {
            shutdown.await;
            // While the sessions still have their arrays.
            if has_state {
                saved = self.save().await;
            }
            stopping.send_replace(true);
        };
        let service = Service::new(Arc::clone(&self.shared));
        let serving = builder.serve_with_incoming_shutdown(service, incoming, signal);
        let out_of_time = async {
            drop(stopped.wait_for(|stop| *stop).await);
            tokio::time::sleep(limits.stop_timeout).await;
        };
        let result = tokio::select! {
            result = serving => result.map_err(|error| ProxyError::Connection {
                address: address.to_string(),
                reason: describe(&error),
            }),
            () = out_of_time => Ok(()),
        };
        let left: Vec<_> = self.shared.sessions().values().cloned().collect();
        for session in left {
            self.shared.end(&session);
        }
        tracing::info!(%address, "stopped");
        saved?;
        result
    }
}

/// Bytes of a stream that may be on the way unread.
const STREAM_WINDOW: u32 = 1 << 20;
/// Calls at a time on a connection.
const STREAMS: u32 = 1024;
/// Initialisation data comes in the headers of the session: the usual 16 KiB refuse what real clients may send.
const HEADER_LIST_BYTES: u32 = 256 << 10;

/// An error with what is behind it: the first line of some says nothing.
pub(super) fn describe(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        let more = error.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        source = error.source();
    }
    text
}
