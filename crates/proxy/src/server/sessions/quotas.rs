//! Quotas of a session's resources: its own, its peer's and the server's.

use std::sync::Arc;

use serdes::codec::Status;

use crate::server::{
    arrays::Kind,
    budget::{Budget, HostBudgets, Peer, Permit, Quota, Share},
    context::Context,
    peers::Caller,
    state::NameReservation,
};

/// Quotas of a session's resources.
#[derive(Debug)]
pub(crate) struct Quotas {
    /// Announced stores: limited per session only, so that it can finish what it has started.
    pub(crate) announced: Quota,
    /// Received bytes of stores, counted for its peer and for all.
    pub(crate) arrived: Quota,
    /// Large requests.
    pub(crate) messages: Quota,
    pub(crate) results: Quota,
    pub(crate) requests: Quota,
    /// Handles of every kind, counted for its peer and for all.
    pub(crate) handles: Quota,
    /// Names of arrays in the state, counted for its peer and for all.
    names: Quota,
    /// Bytes of such names in the header of its file, counted for its peer and for all.
    pub(crate) name_bytes: Quota,
    /// Loaded programs.
    pub(crate) programs: Quota,
    /// Running programs.
    pub(crate) executions: Quota,
    arrays: Quota,
    pinned: Quota,
    /// The client, with all its sessions.
    pub(crate) peer: Arc<Peer>,
}

impl Quotas {
    pub(crate) fn new(context: &Context, caller: &Caller) -> Self {
        let (limits, all, peer) = (&context.limits, &context.budgets, &caller.peer.budgets);
        let quota = |levels: &[&Budget]| {
            let levels = levels.iter().map(|level| (*level).clone()).collect();
            Quota::new(levels, Some(Arc::clone(&caller.peer)))
        };
        let host = HostBudgets::bytes("session-host-bytes", limits.session_host_bytes);
        let arrays = Budget::bytes("session-array-bytes", limits.session_array_bytes);
        let requests = Budget::count("session-requests", limits.requests_per_session.max(1));
        let programs = Budget::count("session-programs", limits.programs_per_session);
        let executions = Budget::count("session-executions", limits.executions_per_session);
        Self {
            announced: quota(&[&host.stores]),
            arrived: quota(&[&peer.host.stores, &all.host.stores]),
            messages: quota(&[&host.stores, &peer.host.stores, &all.host.stores]),
            results: quota(&[&host.results, &peer.host.results, &all.host.results]),
            requests: quota(&[&requests, &peer.requests, &all.requests]),
            handles: quota(&[&peer.handles, &all.handles]),
            names: quota(&[&peer.names, &all.names]),
            name_bytes: quota(&[&peer.name_bytes, &all.name_bytes]),
            programs: quota(&[&programs, &peer.programs, &all.programs]),
            executions: quota(&[&executions, &peer.executions, &all.executions]),
            arrays: quota(&[&arrays, &peer.arrays, &all.arrays]),
            pinned: quota(&[&peer.pinned, &all.pinned]),
            peer: Arc::clone(&caller.peer),
        }
    }

    /// Takes a permit for a shard's bytes.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if they exceed the quota: arrays are freed by the client, which does not
    /// know that others wait.
    pub(crate) fn shard(&self, kind: Kind, bytes: u64) -> Result<Share, Status> {
        let pinned = match kind {
            // Both are host memory.
            Kind::PinnedHost | Kind::UnpinnedHost => Some(self.pinned.take_now(bytes)?),
            Kind::Device => None,
        };
        Ok(Share { _arrays: self.arrays.take_now(bytes)?, _pinned: pinned })
    }

    /// Takes a permit for the memory that a program needs while it runs.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if it exceeds the quota.
    pub(crate) fn inside(&self, bytes: u64) -> Result<Permit, Status> {
        self.arrays.take_now(bytes)
    }

    /// Takes a permit for a program while it is loaded.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if it exceeds the quota.
    pub(crate) fn loaded(&self, bytes: u64) -> Result<Permit, Status> {
        self.arrays.take_now(bytes)
    }

    /// Takes a permit for a name in the state: one name for each 256 bytes of it, its bytes in the
    /// header, and the bytes of an array that the state has under another name as well.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if it exceeds the quota.
    pub(crate) fn kept_name(
        &self,
        name: &str,
        header_bytes: usize,
        bytes: Option<u64>,
    ) -> Result<NameReservation, Status> {
        let names = self.names.take_now(1 + name.len() as u64 / 256)?;
        let bytes = bytes.map(|bytes| self.arrays.take_now(bytes)).transpose()?;
        let header = Some(self.name_bytes.take_now(header_bytes as u64)?);
        Ok(NameReservation { names: Some(names), header, bytes })
    }

    /// # Errors
    /// RESOURCE_EXHAUSTED if `bytes` exceed the limit of device memory, so that waiting would not
    /// help.
    pub(crate) fn can_hold(&self, bytes: u64) -> Result<(), Status> {
        self.arrays.can_hold(bytes)
    }
}
