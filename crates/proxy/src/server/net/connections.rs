//! Connections: their limits, their clients' identities, and their end.

use std::{
    collections::{HashMap, VecDeque},
    convert::Infallible,
    net::IpAddr,
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak, atomic::Ordering},
    time::Duration,
};

use hyper::{server::conn::http2, service::service_fn};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use serdes::codec::Status;
use tokio::{io::AsyncReadExt as _, net::TcpStream, sync::oneshot, task::JoinSet, time::Instant};
use tracing::Instrument as _;

use super::{
    accept::{Accept, Accepting},
    calls,
    connection::Connection,
    refusal::refuse,
    transport::{AfterPreface, Transport},
};
use crate::{
    ProxyError,
    server::{
        access::Acceptor,
        budget::{Peer, Permit, Quota},
        digest::hash,
        peers::Identity,
        registry::Registry,
    },
};

/// Maximum number of unread bytes in flight of a stream.
const STREAM_WINDOW: u32 = 512 << 10;
/// Maximum number of concurrent calls of a connection. The client queues further ones.
const STREAMS: u32 = 128;
/// Maximum number of unread bytes in flight of a connection: an unread store fills its stream's
/// window, and must leave room for other streams.
const CONNECTION_WINDOW: u32 = STREAM_WINDOW * STREAMS;
/// Maximum frame size in bytes: with HTTP/2's default of 16 KiB, arriving data must be reassembled.
const FRAME_BYTES: u32 = 256 << 10;
/// Initialization data comes in the headers of the session: the usual 16 KiB refuse data that real
/// clients may send.
const HEADER_LIST_BYTES: u32 = 256 << 10;
/// Maximum number of connections whose clients have not yet sent the HTTP/2 preface.
const MOST_PENDING: usize = 256;
/// First bytes of every HTTP/2 connection.
const PREFACE: &[u8; 24] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// The connections of a listener.
pub(crate) struct Connections {
    registry: Arc<Registry>,
    tls: Acceptor,
    pending: Mutex<Pending>,
    open: Mutex<HashMap<u64, Vec<Weak<Connection>>>>,
}

impl Connections {
    pub(crate) fn new(registry: Arc<Registry>, tls: Acceptor) -> Arc<Self> {
        Arc::new(Self { registry, tls, pending: Mutex::default(), open: Mutex::default() })
    }

    fn open(&self) -> MutexGuard<'_, HashMap<u64, Vec<Weak<Connection>>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pending(&self) -> MutexGuard<'_, Pending> {
        self.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts connections until the server stops; returns when all have ended.
    ///
    /// # Errors
    /// [`ProxyError::System`] if the listener fails for good.
    pub(crate) async fn serve(self: Arc<Self>, listener: impl Accept) -> Result<(), ProxyError> {
        let mut stop = self.registry.context.stop.subscribe();
        let mut tasks = JoinSet::new();
        let mut accepting = Accepting::new(listener);
        loop {
            // If there are too many, a connection that has sent nothing is closed.
            let accepted = tokio::select! {
                _ = stop.wait_for(|stop| *stop) => break,
                Some(_) = tasks.join_next() => continue,
                accepted = accepting.next(|| self.pending().evict()) => accepted,
            };
            let (stream, address) = accepted?;
            let gauges = &self.registry.context.gauges;
            gauges.connections_accepted.fetch_add(1, Ordering::Relaxed);
            let address = address.ip();
            let cancelled = self.pending().add(address);
            let span = tracing::debug_span!("connection", %address);
            tasks.spawn(Arc::clone(&self).connection(stream, address, cancelled).instrument(span));
        }
        drop(accepting);
        self.pending().evict_all();
        while tasks.join_next().await.is_some() {}
        Ok(())
    }

    /// Handles a connection from its first byte to its last.
    async fn connection(
        self: Arc<Self>,
        stream: TcpStream,
        address: IpAddr,
        cancelled: (u64, oneshot::Receiver<Infallible>),
    ) {
        let (number, cancelled) = cancelled;
        let limit = self.registry.context.limits.handshake_timeout;
        let opened = tokio::select! {
            opened = tokio::time::timeout(limit, self.greet(stream, address)) => opened.ok().flatten(),
            _ = cancelled => None,
        };
        self.pending().remove(address, number);
        let Some((io, connection, held)) = opened else {
            self.registry.context.gauges.connections_refused.fetch_add(1, Ordering::Relaxed);
            return;
        };
        let _counted = self.registry.context.gauges.hold(|gauges| &gauges.connections, 1);
        let peer = connection.peer.number;
        self.run(io, connection).await;
        drop(held);
        let mut open = self.open();
        if let Some(of_peer) = open.get_mut(&peer) {
            of_peer.retain(|other| other.strong_count() > 0);
            if of_peer.is_empty() {
                open.remove(&peer);
            }
        }
    }

    /// Performs the handshakes. Returns `None` for a client that is not admitted.
    async fn greet(
        &self,
        stream: TcpStream,
        address: IpAddr,
    ) -> Option<(AfterPreface, Arc<Connection>, Permit)> {
        // Send small answers at once.
        stream.set_nodelay(true).ok()?;
        let mut identity = Identity::at(address);
        let mut transport = match self.tls.now() {
            None => Transport::Plain(stream),
            Some(acceptor) => {
                let accepted = acceptor.accept(stream).await;
                let stream = accepted
                    .inspect_err(|error| tracing::debug!(%error, "the handshake of TLS failed"))
                    .ok()?;
                let certificates = stream.get_ref().1.peer_certificates();
                identity.certificate =
                    certificates.and_then(<[_]>::first).map(|certificate| hash(certificate));
                Transport::Encrypted(Box::new(stream))
            }
        };
        let mut preface = [0; PREFACE.len()];
        let mut read = 0;
        while let Some(rest) = preface.get_mut(read..).filter(|rest| !rest.is_empty()) {
            let more = transport.read(rest).await.ok().filter(|more| *more > 0)?;
            read += more;
            if preface.get(..read) != PREFACE.get(..read) {
                tracing::debug!("the client does not speak HTTP/2");
                return None;
            }
        }
        let peer = self.registry.peers.of(&identity, &self.registry.context.limits);
        let held = match self.room(&peer).await {
            Ok(held) => held,
            Err(status) => {
                tracing::debug!(reason = status.message(), "connection refused");
                refuse(AfterPreface { preface: PREFACE, transport }, &status).await;
                return None;
            }
        };
        let connection =
            Connection::new(identity, Arc::clone(&peer), &self.registry.context.limits);
        let mut open = self.open();
        let of_peer = open.entry(peer.number).or_default();
        of_peer.retain(|other| other.strong_count() > 0);
        of_peer.push(Arc::downgrade(&connection));
        Some((AfterPreface { preface: PREFACE, transport }, connection, held))
    }

    /// Reserves a connection of a peer. If there is none left, one of its own idle connections is
    /// closed.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if no connection can be reserved.
    async fn room(&self, peer: &Arc<Peer>) -> Result<Permit, Status> {
        /// Maximum number of attempts to close an idle connection for a new one.
        const TRIES: usize = 20;
        let levels = vec![
            peer.budgets.connections.clone(),
            self.registry.context.budgets.connections.clone(),
        ];
        let quota = Quota::new(levels, Some(Arc::clone(peer)));
        let mut room = quota.take_now(1);
        for _ in 1..TRIES {
            if room.is_ok() || !self.end_idle(peer) {
                break;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
            room = quota.take_now(1);
        }
        room
    }

    /// Closes the peer's connection that has been idle for longest; returns false if none is idle.
    fn end_idle(&self, peer: &Peer) -> bool {
        let open = self.open();
        let own = open.get(&peer.number).into_iter().flatten().filter_map(Weak::upgrade);
        let idle = own.filter_map(|connection| Some((connection.idle_since()?, connection)));
        let oldest = idle.min_by_key(|(since, _)| *since);
        oldest.inspect(|(_, connection)| connection.end.notify_one()).is_some()
    }

    /// Serves a connection until its client disconnects, it is idle for too long, or the server
    /// stops.
    async fn run(&self, io: AfterPreface, connection: Arc<Connection>) {
        let limits = &self.registry.context.limits;
        let mut stop = self.registry.context.stop.subscribe();
        let service = service_fn({
            let (registry, connection) = (Arc::clone(&self.registry), Arc::clone(&connection));
            move |request| {
                let answer = calls::answer(Arc::clone(&registry), Arc::clone(&connection), request);
                async { Ok::<_, Infallible>(answer.await) }
            }
        });
        let serving = self.http().serve_connection(TokioIo::new(io), service);
        let mut serving = std::pin::pin!(serving);
        let mut end = std::pin::pin!(async {
            loop {
                let ends = connection.ends(limits);
                tokio::select! {
                    _ = stop.wait_for(|stop| *stop) => return,
                    () = connection.end.notified() => return,
                    () = tokio::time::sleep_until(ends) => {}
                }
                if connection.idle_since().is_some() && connection.ends(limits) <= Instant::now() {
                    return;
                }
            }
        });
        tokio::select! {
            served = serving.as_mut() => {
                if let Err(error) = served {
                    tracing::debug!(%error, "the connection broke off");
                }
                return;
            }
            () = end.as_mut() => serving.as_mut().graceful_shutdown(),
        }
        // Calls in progress continue; a client that does not acknowledge the shutdown is not waited
        // for.
        loop {
            let wait = tokio::time::sleep(limits.handshake_timeout);
            tokio::select! {
                _ = serving.as_mut() => return,
                () = wait => {
                    if connection.idle_since().is_some() {
                        return;
                    }
                }
            }
        }
    }

    fn http(&self) -> http2::Builder<TokioExecutor> {
        let limits = &self.registry.context.limits;
        let mut builder = http2::Builder::new(TokioExecutor::new());
        builder
            .timer(TokioTimer::new())
            .initial_stream_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_frame_size(FRAME_BYTES)
            .max_concurrent_streams(STREAMS)
            .max_header_list_size(HEADER_LIST_BYTES)
            .keep_alive_interval(limits.keepalive)
            .keep_alive_timeout(limits.keepalive);
        builder
    }
}

/// Connections that have sent nothing yet, by address, oldest first.
#[derive(Default)]
struct Pending {
    next: u64,
    count: usize,
    by_address: HashMap<IpAddr, VecDeque<(u64, oneshot::Sender<Infallible>)>>,
}

impl Pending {
    /// Adds a connection; if there are too many, closes the oldest of the address with the most of
    /// them, whose receiver then completes.
    fn add(&mut self, address: IpAddr) -> (u64, oneshot::Receiver<Infallible>) {
        let number = self.next;
        self.next += 1;
        let (sender, receiver) = oneshot::channel();
        self.by_address.entry(address).or_default().push_back((number, sender));
        self.count += 1;
        if self.count > MOST_PENDING {
            self.evict();
        }
        (number, receiver)
    }

    fn evict(&mut self) {
        let most = self.by_address.iter().max_by_key(|(_, waiting)| waiting.len());
        let Some(address) = most.map(|(address, _)| *address) else { return };
        if let Some(number) = self
            .by_address
            .get(&address)
            .and_then(|waiting| waiting.front())
            .map(|(number, _)| *number)
        {
            self.remove(address, number);
        }
    }

    fn remove(&mut self, address: IpAddr, number: u64) {
        let Some(waiting) = self.by_address.get_mut(&address) else { return };
        let before = waiting.len();
        waiting.retain(|(other, _)| *other != number);
        self.count -= before - waiting.len();
        if waiting.is_empty() {
            self.by_address.remove(&address);
        }
    }

    fn evict_all(&mut self) {
        self.by_address.clear();
        self.count = 0;
    }
}
