//! The open sessions: opening, look-up, and the treatment of their arrays at the end.

use std::{
    collections::HashMap,
    path::PathBuf,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serdes::{codec::Status, ifrt::AttributeMap};
use tokio::sync::Notify;

use super::{
    access::Access,
    budget::Quota,
    context::Context,
    handles::unguessable,
    peers::{Caller, Identity, Peers},
    sessions::Session,
    state::{LiveArrays, NamedArrays, State},
};
use crate::{Agreement, Ranges, status::status};

/// The open sessions of a server, and the context for opening one.
pub(crate) struct Registry {
    pub(crate) context: Arc<Context>,
    pub(crate) ranges: Ranges,
    pub(crate) access: Access,
    pub(crate) peers: Peers,
    pub(crate) state: Arc<State>,
    /// Directory in which clients on this machine may leave large host buffers.
    pub(crate) transfer_directory: Option<PathBuf>,
    open: Mutex<HashMap<u64, Arc<Session>>>,
    /// Notified when a session ends.
    ended: Notify,
}

impl Registry {
    /// Creates a registry without sessions.
    pub(crate) fn new(
        context: Arc<Context>,
        ranges: Ranges,
        access: Access,
        state: Arc<State>,
        transfer_directory: Option<PathBuf>,
    ) -> Arc<Self> {
        let (peers, open, ended) = (Peers::default(), Mutex::default(), Notify::new());
        Arc::new(Self { context, ranges, access, peers, state, transfer_directory, open, ended })
    }

    /// Returns the open sessions by id.
    pub(crate) fn sessions(&self) -> MutexGuard<'_, HashMap<u64, Arc<Session>>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that new sessions are accepted.
    ///
    /// # Errors
    /// UNAVAILABLE while the server waits for its sessions to end.
    pub(crate) fn is_open(&self) -> Result<(), Status> {
        if *self.context.draining.borrow() {
            return Err(status!(
                Unavailable,
                "the server is about to stop and takes no new sessions; try again when it is back"
            ));
        }
        Ok(())
    }

    /// Opens a session.
    ///
    /// # Errors
    /// UNAVAILABLE if the server is about to stop; RESOURCE_EXHAUSTED if there are too many.
    pub(crate) fn open(
        &self,
        agreement: Agreement,
        initialization: &AttributeMap,
        caller: &Caller,
    ) -> Result<Arc<Session>, Status> {
        self.is_open()?;
        let peer = &caller.peer;
        let levels = vec![
            caller.sessions.clone(),
            peer.budgets.sessions.clone(),
            self.context.budgets.sessions.clone(),
        ];
        let held = Quota::new(levels, Some(Arc::clone(peer))).take_now(1)?;
        let mut sessions = self.sessions();
        let id = loop {
            let id = unguessable()?;
            if !sessions.contains_key(&id) {
                break id;
            }
        };
        let (context, state) = (Arc::clone(&self.context), Arc::clone(&self.state));
        let session = Session::new(context, state, id, agreement, initialization, caller, held);
        let session = Arc::new(session);
        sessions.insert(id, Arc::clone(&session));
        Ok(session)
    }

    /// Returns a session of a call's client.
    ///
    /// # Errors
    /// NOT_FOUND, also for a session of another client.
    pub(crate) fn session(&self, id: u64, caller: &Caller) -> Result<Arc<Session>, Status> {
        let session = self.sessions().get(&id).cloned();
        session
            .filter(|session| session.identity.admits(&caller.identity))
            .ok_or_else(|| status!(NotFound, "there is no session {id}; it never was, or is over"))
    }

    /// Returns the program that contains the server, as a caller.
    pub(crate) fn own_caller(&self) -> Caller {
        let identity = Identity::own();
        let peer = self.peers.of(&identity, &self.context.limits);
        let sessions = peer.budgets.sessions.clone();
        Caller { identity, sessions, peer, token_to_come: false }
    }

    /// Ends a session and frees its resources.
    pub(crate) fn end(&self, session: &Session) {
        let mut sessions = self.sessions();
        if sessions.contains_key(&session.id) {
            // The state gets the arrays before they leave the session: a concurrent save finds them
            // in one place or the other.
            let live = session.table().live();
            self.state.keep(&session.names, live, |bytes| session.live_names().leave(bytes));
            sessions.remove(&session.id);
        }
        drop(sessions);
        session.close();
        self.ended.notify_waiters();
    }

    /// Accepts no more sessions, and waits until those over the network have ended.
    pub(crate) async fn drain(&self) {
        self.context.draining.send_replace(true);
        loop {
            let ended = self.ended.notified();
            let left = self.sessions().values().filter(|session| !session.is_local()).count();
            if left == 0 {
                return;
            }
            ended.await;
        }
    }

    /// Ends all sessions.
    pub(crate) fn end_all(&self) {
        let left: Vec<_> = self.sessions().values().cloned().collect();
        for session in left {
            self.end(&session);
        }
    }

    /// Ends the sessions whose tokens are no longer valid.
    pub(crate) fn revoke(&self) {
        let sessions: Vec<_> = self.sessions().values().cloned().collect();
        for session in sessions {
            if !self.access.holds(session.identity.token.as_ref()) && !session.is_local() {
                session.revoke();
            }
        }
    }
}

impl LiveArrays for Registry {
    fn live(&self) -> Vec<NamedArrays> {
        let sessions: Vec<_> = self.sessions().values().cloned().collect();
        sessions.iter().map(|session| session.names.named(session.table().live())).collect()
    }
}
