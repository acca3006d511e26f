//! The server: sessions of clients over the devices of a plug-in.

mod access;
mod array;
mod budget;
mod connections;
mod devices;
mod directory;
mod element;
mod frames;
mod grpc;
mod host_buffer;
mod limits;
mod local;
mod make;
mod memory;
mod metrics;
mod peers;
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
mod turns;

#[cfg(test)]
mod access_tests;
#[cfg(test)]
mod model_tests;
#[cfg(test)]
mod network_tests;
#[cfg(test)]
mod session_tests;
#[cfg(test)]
mod strangers_tests;

use std::{
    collections::HashMap,
    fmt,
    future::Future,
    path::PathBuf,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use tokio::{net::TcpListener, sync::watch};
use tokio_rustls::TlsAcceptor;

pub use access::Tokens;
pub use limits::Limits;
pub use local::LocalSession;
pub use metrics::Metrics;

use self::{
    access::{Access, Encryption, unguessable},
    budget::{Account, Budget},
    connections::Connections,
    devices::Devices,
    grpc::Caller,
    metrics::Gauges,
    peers::{Identity, Peers},
    session::Session,
    state::{Occasion, Room, State, StateOptions},
    turns::{Turn, Turns},
};
use super::{Agreement, ProxyError, Ranges, status::status};
use crate::{codec::Status, device_state::Versions, ifrt::AttributeMap, stream_executor::Plugin};

/// Makes a [`Server`].
#[derive(Clone)]
pub struct ServerBuilder {
    plugin: Plugin,
    ranges: Ranges,
    limits: Limits,
    encryption: Encryption,
    tokens: Option<Tokens>,
    session_tokens: bool,
    transfer_directory: Option<PathBuf>,
    state: Option<PathBuf>,
    previous_states: u32,
    state_versions: Versions,
}

impl fmt::Debug for ServerBuilder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerBuilder")
            .field("ranges", &self.ranges)
            .field("limits", &self.limits)
            .field("tls", &self.encryption.identity.is_some())
            .field("client_certificates", &self.encryption.client_authorities.is_some())
            .field("tokens", &self.tokens)
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
        self.encryption.identity = Some((certificate.as_ref().to_vec(), key.as_ref().to_vec()));
        self
    }

    /// Takes connections only from clients with a certificate that one of these authorities (PEM) has signed. Needs [`tls`](Self::tls).
    #[must_use]
    pub fn client_authorities(mut self, authorities: impl AsRef<[u8]>) -> Self {
        self.encryption.client_authorities = Some(authorities.as_ref().to_vec());
        self
    }

    /// Answers only calls with one of these tokens in their metadata: `authorization: Bearer TOKEN`.
    #[must_use]
    pub fn tokens(mut self, tokens: Tokens) -> Self {
        self.tokens = Some(tokens);
        self
    }

    /// Where tokens are wanted, also takes sessions that give theirs in the initialization data, under `serdes.token`: the clients of jaxlib
    /// cannot send metadata. The server then tells anyone its versions, and the host buffers of such a session are for whoever knows its
    /// id, which cannot be guessed, and comes from the same address.
    #[must_use]
    pub fn session_tokens(mut self) -> Self {
        self.session_tokens = true;
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
    /// server when it goes; with `serdes.state.name.<handle>` it names one array. Arrays of other clients are saved as
    /// `session-<number>/<handle>` if their session is open at that moment. What was saved once stays in the state until a client deletes
    /// it, or the client to whom its name belongs saves another array under it. Clients find what was restored in the attributes of the
    /// server.
    #[must_use]
    pub fn state(mut self, path: impl Into<PathBuf>) -> Self {
        self.state = Some(path.into());
        self
    }

    /// Keeps this many states before the last one, as `PATH.1` (the newest), `PATH.2` and so on; 1 by default.
    #[must_use]
    pub fn previous_states(mut self, states: u32) -> Self {
        self.previous_states = states;
        self
    }

    /// Writes states that builds of these versions read; those of now by default. An array that cannot be described at such a version is
    /// left out, and saving ends with its error.
    #[must_use]
    pub fn state_versions(mut self, versions: Versions) -> Self {
        self.state_versions = versions;
        self
    }

    /// The server; it does nothing yet.
    ///
    /// # Errors
    /// [`ProxyError::Configuration`] for ranges that this build does not speak, a certificate or a key that cannot be used, a place where
    /// no state can be written or another server has its state, and a plug-in without devices; [`ProxyError::State`] for a state that cannot be restored;
    /// [`ProxyError::Device`] if a device cannot be used.
    pub fn build(self) -> Result<Server, ProxyError> {
        let ranges = self.ranges.check_supported()?;
        let devices = Devices::of(&self.plugin)?;
        // Said now, not when the first client comes.
        let tls = self.encryption.acceptor()?;
        let gauges = Arc::default();
        let previous = self.previous_states;
        let state =
            self.state.map(|path| StateOptions { path, previous, versions: self.state_versions });
        let limits = self.limits.resolved(devices.memory());
        let budgets = Budgets::new(&limits);
        let room = Room::new(budgets.arrays.clone(), budgets.pinned.clone());
        let state = State::open(state, &devices, &gauges, &room)?;
        let lanes = devices.len().saturating_mul(2).clamp(4, 64);
        Ok(Server {
            shared: Arc::new(Shared {
                ranges,
                budgets,
                limits,
                access: Access::new(self.tokens, self.session_tokens),
                peers: Peers::default(),
                devices: Arc::new(devices),
                gauges,
                state,
                sessions: Mutex::default(),
                turns: Turns::new(lanes),
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
    access: Access,
    peers: Peers,
    budgets: Budgets,
    sessions: Mutex<HashMap<u64, Arc<Session>>>,
    /// Calls into the plug-in at a time.
    turns: Arc<Turns>,
    stop: watch::Sender<bool>,
    state: State,
    transfer_directory: Option<PathBuf>,
}

/// What all sessions may hold together.
struct Budgets {
    connections: Budget,
    calls: Budget,
    sessions: Budget,
    handles: Budget,
    requests: Budget,
    /// Host buffers: for stores, and for results.
    host: [Budget; 2],
    arrays: Budget,
    pinned: Budget,
}

impl Budgets {
    fn new(limits: &Limits) -> Self {
        let host = || Budget::bytes("host-bytes", limits.total_host_bytes);
        Self {
            connections: Budget::count("connections", limits.connections),
            calls: Budget::count("calls", limits.calls),
            sessions: Budget::count("sessions", limits.sessions),
            handles: Budget::count("handles", limits.handles),
            requests: Budget::count("requests", limits.requests),
            host: [host(), host()],
            arrays: Budget::bytes("array-bytes", limits.total_array_bytes),
            pinned: Budget::bytes("pinned-bytes", limits.total_pinned_bytes),
        }
    }
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
        caller: &Caller,
    ) -> Result<Arc<Session>, Status> {
        let peer = &caller.peer;
        let levels =
            vec![caller.sessions.clone(), peer.sessions.clone(), self.budgets.sessions.clone()];
        let held = Account::new(levels, Some(Arc::clone(peer))).take_now(1)?;
        let mut sessions = self.sessions();
        let id = loop {
            let id = unguessable()?;
            if !sessions.contains_key(&id) {
                break id;
            }
        };
        let session = Session::new(Arc::clone(self), id, agreement, &initialization, caller, held);
        let session = Arc::new(session);
        sessions.insert(id, Arc::clone(&session));
        Ok(session)
    }

    /// A session of the client that makes a call.
    ///
    /// # Errors
    /// NOT_FOUND, the same for no session as for another one's.
    fn session(&self, id: u64, caller: &Caller) -> Result<Arc<Session>, Status> {
        let session = self.sessions().get(&id).cloned();
        session
            .filter(|session| session.identity.admits(&caller.identity))
            .ok_or_else(|| status!(NotFound, "there is no session {id}; it never was, or is over"))
    }

    /// The program that the server is a part of, as a client.
    fn own_caller(&self) -> Caller {
        let identity = Identity::own();
        let peer = self.peers.of(&identity, &self.limits);
        Caller { identity, sessions: peer.sessions.clone(), peer, token_to_come: false }
    }

    /// Ends a session and frees what it holds.
    fn end(&self, session: &Session) {
        let mut sessions = self.sessions();
        if sessions.contains_key(&session.id) {
            // The state has its arrays before it is gone: a save that runs meanwhile finds them in one place or the other.
            self.state.close(session);
            sessions.remove(&session.id);
        }
        drop(sessions);
        session.close();
    }

    /// Runs something that waits for a device, beside the tasks that wait for peers, when it is its turn.
    ///
    /// # Errors
    /// Those of `work`; INTERNAL if it panics.
    async fn blocking<T: Send + 'static>(
        &self,
        turn: Turn,
        work: impl FnOnce() -> Result<T, Status> + Send + 'static,
    ) -> Result<T, Status> {
        let lane = self.turns.take(turn).await;
        let work = move || {
            // Nobody else has it until this is done, though its session may be over before.
            let _lane = lane;
            work()
        };
        tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| {
            Err(status!(Internal, "a call into the plug-in failed: {error}"))
        })
    }
}

/// A proxy server over all devices of a plug-in. Clones are the same server.
#[derive(Clone)]
pub struct Server {
    shared: Arc<Shared>,
    tls: Option<TlsAcceptor>,
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
            encryption: Encryption::default(),
            tokens: None,
            session_tokens: false,
            transfer_directory: None,
            state: None,
            previous_states: 1,
            state_versions: Versions::current(),
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

    /// Saves the arrays that it holds into its state, those that the state has already included; the number of arrays. Arrays whose data
    /// have not arrived are left out, which the log and the [`Metrics`] say.
    ///
    /// # Errors
    /// [`ProxyError::Configuration`] if it has no state; [`ProxyError::State`] if the file cannot be written: the old one stays. If an
    /// array cannot be read, all others are saved, and its error is the result.
    pub async fn save(&self) -> Result<usize, ProxyError> {
        let saved = self.shared.state.save(&self.shared, Occasion::Request).await;
        match &saved {
            Ok(arrays) => tracing::info!(arrays, "state saved"),
            Err(error) => tracing::error!(%error, "the state was not saved"),
        }
        saved
    }

    /// What clients may make it hold, with what its devices leave open.
    #[must_use]
    pub fn limits(&self) -> &Limits {
        &self.shared.limits
    }

    /// Takes other tokens from now on. Sessions that were opened with one that is not among them end.
    pub fn replace_tokens(&self, tokens: Tokens) {
        tracing::info!(?tokens, "other tokens");
        self.shared.access.replace(tokens);
        let sessions: Vec<_> = self.shared.sessions().values().cloned().collect();
        for session in sessions {
            if !self.shared.access.holds(session.identity.token.as_ref()) && !session.is_local() {
                session.revoke();
            }
        }
    }

    /// Gives up the save that is under way, and the one at the stop: for those who are in a hurry. The state before stays.
    pub fn abandon_save(&self) {
        self.shared.state.abandon();
    }

    /// How long [`serve`](Self::serve) may go on after its `shutdown` is done.
    #[must_use]
    pub fn stop_limit(&self) -> Duration {
        let limits = &self.shared.limits;
        let saving = if self.shared.state.is_kept() { limits.save_timeout } else { Duration::ZERO };
        saving.saturating_add(limits.stop_timeout)
    }

    /// Opens a session in this process, without a network between.
    ///
    /// # Errors
    /// [`ProxyError::Status`]: INVALID_ARGUMENT if the ranges have nothing in common, RESOURCE_EXHAUSTED if there are too many sessions.
    pub fn local_session(&self, client: Ranges) -> Result<LocalSession, ProxyError> {
        let agreement = self.shared.ranges.answer(client)?;
        let session =
            self.shared.open(agreement, AttributeMap::new(), &self.shared.own_caller())?;
        Ok(LocalSession::new(Arc::clone(&self.shared), session))
    }

    /// Serves the clients that connect to `listener`, until `shutdown` is done; then saves the state, if it has one, and lets requests in
    /// progress finish, for the time that the limits say. A save that fails is tried again a few times, and clients are served meanwhile.
    ///
    /// What hangs in a call into the plug-in, or in one of the system, is left behind on a thread of the runtime: shut that down with a
    /// timeout.
    ///
    /// # Errors
    /// [`ProxyError::System`] if the listener fails or saving took too long; those of [`save`](Self::save).
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
        tracing::info!(%address, ranges = %self.shared.ranges, devices = self.shared.devices.len(), tls = self.tls.is_some(), "serving");
        let stopping = self.shared.stop.clone();
        let mut stopped = self.shared.stop.subscribe();
        let mut saved = Ok(());
        let signal = async {
            shutdown.await;
            // While the sessions still have their arrays.
            if self.shared.state.is_kept() {
                saved = self.shared.state.save_at_stop(&self.shared).await;
            }
            stopping.send_replace(true);
        };
        let serving = Connections::new(Arc::clone(&self.shared), self.tls.clone()).serve(listener);
        let serving = async { tokio::join!(serving, signal).0 };
        let out_of_time = async {
            drop(stopped.wait_for(|stop| *stop).await);
            tokio::time::sleep(limits.stop_timeout).await;
        };
        let result = tokio::select! {
            result = serving => result,
            () = out_of_time => Ok(()),
        };
        let left: Vec<_> = self.shared.sessions().values().cloned().collect();
        for session in left {
            self.shared.end(&session);
        }
        self.shared.state.release();
        tracing::info!(%address, "stopped");
        saved?;
        result
    }
}

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
