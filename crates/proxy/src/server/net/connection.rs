//! An identified connection: its calls, and its idle time.

use std::sync::{
    Arc, Mutex, MutexGuard, PoisonError,
    atomic::{AtomicU32, AtomicUsize, Ordering},
};

use tokio::{sync::Notify, time::Instant};

use crate::server::{
    budget::{Budget, Peer},
    limits::Limits,
    peers::Identity,
};

/// Maximum number of calls without a valid token, after which a connection is closed.
const MOST_REFUSALS: u32 = 8;

/// A connection whose client has identified itself and uses HTTP/2.
pub(crate) struct Connection {
    pub(crate) identity: Identity,
    /// Sessions of this connection.
    pub(crate) sessions: Budget,
    pub(crate) peer: Arc<Peer>,
    /// Calls in progress.
    calls: AtomicUsize,
    /// Number of calls without a valid token.
    refused: AtomicU32,
    /// Start of the idle time; the first call has a shorter limit.
    idle: Mutex<Idle>,
    /// Notified when the connection is to end.
    pub(crate) end: Notify,
}

#[derive(Clone, Copy)]
struct Idle {
    since: Instant,
    called: bool,
}

/// A call in progress.
pub(crate) struct Busy {
    connection: Arc<Connection>,
    /// True if the end of the call restarts the idle time of the connection.
    renews: bool,
}

impl Connection {
    pub(crate) fn new(identity: Identity, peer: Arc<Peer>, limits: &Limits) -> Arc<Self> {
        Arc::new(Self {
            identity,
            sessions: Budget::count("connection-sessions", limits.connection_sessions),
            peer,
            calls: AtomicUsize::new(0),
            refused: AtomicU32::new(0),
            idle: Mutex::new(Idle { since: Instant::now(), called: false }),
            end: Notify::new(),
        })
    }

    /// Counts a call until the result is dropped.
    pub(crate) fn begin(self: &Arc<Self>) -> Busy {
        self.busy(true)
    }

    /// Counts a call that needs no credentials: it does not extend the life of a connection without
    /// other calls.
    pub(crate) fn begin_unnamed(self: &Arc<Self>) -> Busy {
        self.busy(false)
    }

    fn busy(self: &Arc<Self>, renews: bool) -> Busy {
        self.calls.fetch_add(1, Ordering::Relaxed);
        Busy { connection: Arc::clone(self), renews }
    }

    /// Counts a call without a valid token; a guessing client is soon disconnected.
    pub(crate) fn refuse(&self) {
        if self.refused.fetch_add(1, Ordering::Relaxed) + 1 >= MOST_REFUSALS {
            self.end.notify_one();
        }
    }

    fn idle(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the start of the idle time; `None` during a call.
    pub(crate) fn idle_since(&self) -> Option<Instant> {
        let idle = *self.idle();
        (self.calls.load(Ordering::Relaxed) == 0).then_some(idle.since)
    }

    /// Returns the time at which the connection ends if no call comes.
    pub(crate) fn ends(&self, limits: &Limits) -> Instant {
        let idle = *self.idle();
        if self.calls.load(Ordering::Relaxed) > 0 {
            return Instant::now() + limits.connection_idle_timeout;
        }
        let after =
            if idle.called { limits.connection_idle_timeout } else { limits.handshake_timeout };
        idle.since + after
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        if self.renews {
            *self.connection.idle() = Idle { since: Instant::now(), called: true };
        }
        self.connection.calls.fetch_sub(1, Ordering::Relaxed);
    }
}
