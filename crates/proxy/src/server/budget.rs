//! Limits on amounts in use at a time: by a session, by a peer, by all. Amounts are returned on
//! drop.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use serdes::codec::Status;
use smallvec::{SmallVec, smallvec};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, TryAcquireError};

use super::{limits::Limits, state::most_name_bytes};
use crate::status::status;

/// An amount that may be in use at a time. Clones share it.
#[derive(Clone, Debug)]
pub(crate) struct Budget {
    /// Name of the limit, for error messages.
    limit: &'static str,
    amount: u64,
    /// Units per permit: bytes are counted in pages.
    page: u64,
    pages: Arc<Semaphore>,
}

impl Budget {
    /// Bytes counted as one permit: devices allocate no less.
    const PAGE: u64 = 256;

    /// Creates a budget of bytes.
    pub(crate) fn bytes(limit: &'static str, amount: u64) -> Self {
        Self::of(limit, amount, Self::PAGE)
    }

    /// Creates a budget of countable items.
    pub(crate) fn count(limit: &'static str, amount: usize) -> Self {
        Self::of(limit, amount as u64, 1)
    }

    fn of(limit: &'static str, amount: u64, page: u64) -> Self {
        let pages = usize::try_from(amount.div_ceil(page)).unwrap_or(usize::MAX);
        let pages = Arc::new(Semaphore::new(pages.min(Semaphore::MAX_PERMITS)));
        Self { limit, amount, page, pages }
    }

    /// # Errors
    /// RESOURCE_EXHAUSTED for more than the whole budget.
    fn pages_of(&self, amount: u64) -> Result<u32, Status> {
        let pages = u32::try_from(amount.div_ceil(self.page)).ok();
        pages.filter(|_| amount <= self.amount).ok_or_else(|| {
            status!(
                ResourceExhausted,
                "{amount} is more than the limit `{}` of this server allows at all ({}); ask for less, or have it raised",
                self.limit,
                self.amount,
            )
        })
    }

    /// Takes `amount`, or all that is free if that is less; returns true if it took `amount`.
    pub(crate) fn take_what_is_there(&self, amount: u64) -> (Permit, bool) {
        let wanted = u32::try_from(amount.div_ceil(self.page)).unwrap_or(u32::MAX);
        loop {
            let free = u32::try_from(self.pages.available_permits()).unwrap_or(u32::MAX);
            let pages = wanted.min(free);
            // Another thread may have taken some meanwhile.
            if let Ok(share) = Arc::clone(&self.pages).try_acquire_many_owned(pages) {
                return (Permit { shares: smallvec![share], _peer: None }, pages == wanted);
            }
        }
    }

    fn exhausted(&self, amount: u64) -> Status {
        status!(
            ResourceExhausted,
            "the limit `{}` of this server ({}) has no room for {amount} more; give some back first, or have it raised",
            self.limit,
            self.amount,
        )
    }
}

/// Budgets of host buffers by direction: a result never waits for a store, nor the other way round.
#[derive(Clone, Debug)]
pub(crate) struct HostBudgets {
    /// Buffers to the server.
    pub(crate) stores: Budget,
    /// Buffers to the client.
    pub(crate) results: Budget,
}

impl HostBudgets {
    /// Creates budgets of this many bytes for each direction.
    pub(crate) fn bytes(limit: &'static str, amount: u64) -> Self {
        let budget = || Budget::bytes(limit, amount);
        Self { stores: budget(), results: budget() }
    }
}

/// Budgets of the resources in use at a time, by one peer or by all together.
#[derive(Debug)]
pub(crate) struct Budgets {
    pub(crate) connections: Budget,
    pub(crate) calls: Budget,
    pub(crate) sessions: Budget,
    /// Health checks.
    pub(crate) health: Budget,
    pub(crate) handles: Budget,
    /// Names of arrays in the state: half as many as handles, because a session that lists the
    /// state has a handle for each.
    pub(crate) names: Budget,
    /// Bytes of the state file's header for names and owners of arrays.
    pub(crate) name_bytes: Budget,
    pub(crate) requests: Budget,
    pub(crate) host: HostBudgets,
    pub(crate) arrays: Budget,
    pub(crate) pinned: Budget,
    pub(crate) programs: Budget,
    pub(crate) executions: Budget,
}

impl Budgets {
    /// Creates the budgets of all peers together.
    pub(crate) fn of_all(limits: &Limits) -> Self {
        Self {
            connections: Budget::count("connections", limits.connections),
            calls: Budget::count("calls", limits.calls),
            sessions: Budget::count("sessions", limits.sessions),
            health: Budget::count("health-calls", limits.health_calls),
            handles: Budget::count("handles", limits.handles),
            names: Budget::count("handles", limits.handles / 2),
            name_bytes: Budget::count("handles", most_name_bytes(limits.handles, 1)),
            requests: Budget::count("requests", limits.requests),
            host: HostBudgets::bytes("host-bytes", limits.total_host_bytes),
            arrays: Budget::bytes("array-bytes", limits.total_array_bytes),
            pinned: Budget::bytes("pinned-bytes", limits.total_pinned_bytes),
            programs: Budget::count("programs", limits.programs),
            executions: Budget::count("executions", limits.executions),
        }
    }

    /// Creates the budgets of one peer.
    pub(crate) fn of_peer(limits: &Limits) -> Self {
        Self {
            connections: Budget::count("peer-connections", limits.peer_connections),
            calls: Budget::count("peer-calls", limits.peer_calls),
            sessions: Budget::count("peer-sessions", limits.peer_sessions),
            health: Budget::count("peer-health-calls", limits.peer_health_calls),
            handles: Budget::count("peer-handles", limits.peer_handles),
            names: Budget::count("peer-handles", limits.peer_handles / 2),
            name_bytes: Budget::count("peer-handles", most_name_bytes(limits.peer_handles, 2)),
            requests: Budget::count("peer-requests", limits.peer_requests),
            host: HostBudgets::bytes("peer-host-bytes", limits.peer_host_bytes),
            arrays: Budget::bytes("peer-array-bytes", limits.peer_array_bytes),
            pinned: Budget::bytes("peer-pinned-bytes", limits.peer_pinned_bytes),
            programs: Budget::count("peer-programs", limits.peer_programs),
            executions: Budget::count("peer-executions", limits.peer_executions),
        }
    }
}

/// A client with all its sessions and connections, and its share of each budget.
#[derive(Debug)]
pub(crate) struct Peer {
    /// Unique number of the peer.
    pub(crate) number: u64,
    pub(crate) budgets: Budgets,
}

/// Budgets of several levels, the smallest first, from each of which amounts are taken. Clones
/// share them.
#[derive(Clone, Debug)]
pub(crate) struct Quota {
    levels: Vec<Budget>,
    /// Keeps the peer's budgets, so that a peer that reconnects finds what it still holds.
    peer: Option<Arc<Peer>>,
}

/// Permit for an amount of a quota, returned on drop.
#[derive(Debug)]
pub(crate) struct Permit {
    shares: SmallVec<[OwnedSemaphorePermit; 3]>,
    _peer: Option<Arc<Peer>>,
}

impl Quota {
    pub(crate) fn new(levels: Vec<Budget>, peer: Option<Arc<Peer>>) -> Self {
        Self { levels, peer }
    }

    /// Takes `amount`, and waits until it is free.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if it exceeds the whole budget.
    pub(crate) async fn take(&self, amount: u64) -> Result<Permit, Status> {
        let mut shares = SmallVec::with_capacity(self.levels.len());
        for level in &self.levels {
            let pages = level.pages_of(amount)?;
            let share = Arc::clone(&level.pages).acquire_many_owned(pages).await;
            shares.push(share.map_err(|_| level.exhausted(amount))?);
        }
        Ok(Permit { shares, _peer: self.peer.clone() })
    }

    /// Takes `amount` if it is free.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if it is not.
    pub(crate) fn take_now(&self, amount: u64) -> Result<Permit, Status> {
        Permit::take_now(&self.levels, self.peer.clone(), amount)
    }

    /// Takes `amount`, and waits for it at most `limit`.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED with the name of the limit.
    pub(crate) async fn take_within(&self, amount: u64, limit: Duration) -> Result<Permit, Status> {
        match tokio::time::timeout(limit, self.take(amount)).await {
            Ok(taken) => taken,
            Err(_) => Err(self.in_the_way(amount)),
        }
    }

    /// # Errors
    /// RESOURCE_EXHAUSTED if `amount` exceeds a budget.
    pub(crate) fn can_hold(&self, amount: u64) -> Result<(), Status> {
        self.levels.iter().try_for_each(|level| level.pages_of(amount).map(drop))
    }

    /// Returns the error with the budget that lacks `amount`.
    fn in_the_way(&self, amount: u64) -> Status {
        let missing = |level: &&Budget| {
            (level.pages.available_permits() as u64) < amount.div_ceil(level.page)
        };
        let level = self.levels.iter().find(missing).or(self.levels.last());
        level.map_or_else(|| status!(ResourceExhausted, "no room"), |level| level.exhausted(amount))
    }
}

impl Permit {
    /// Takes `amount` from each of these levels if it is free.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED if it is not.
    pub(crate) fn take_now<'a>(
        levels: impl IntoIterator<Item = &'a Budget>,
        peer: Option<Arc<Peer>>,
        amount: u64,
    ) -> Result<Self, Status> {
        let mut shares = SmallVec::new();
        for level in levels {
            let pages = level.pages_of(amount)?;
            let share = Arc::clone(&level.pages).try_acquire_many_owned(pages);
            shares.push(share.map_err(|_: TryAcquireError| level.exhausted(amount))?);
        }
        Ok(Self { shares, _peer: peer })
    }

    /// Adds a permit of the same quota.
    pub(crate) fn add(&mut self, more: Self) {
        for (share, more) in self.shares.iter_mut().zip(more.shares) {
            share.merge(more);
        }
    }

    /// Splits off a permit for `count` items that are counted one by one.
    fn split(&mut self, count: usize) -> Self {
        let shares = self.shares.iter_mut().filter_map(|share| share.split(count)).collect();
        Self { shares, _peer: self._peer.clone() }
    }
}

/// Permits for the memory of a shard.
#[derive(Debug)]
pub(crate) struct Share {
    pub(crate) _arrays: Permit,
    /// Permit for a shard in pinned memory.
    pub(crate) _pinned: Option<Permit>,
}

/// Memory that programs reserve while they run.
#[derive(Debug, Default)]
pub(crate) struct ProgramMemory {
    /// Number of programs that hold memory.
    taken: AtomicUsize,
    given_back: Notify,
}

/// Memory that a program has reserved, returned on drop.
#[derive(Debug)]
pub(crate) struct Inside {
    held: Option<Permit>,
    of: Arc<ProgramMemory>,
}

impl ProgramMemory {
    /// Takes memory, and waits for it at most `limit`, and only while a running program may return
    /// some: clients, who free arrays, do not know that others wait for them.
    ///
    /// # Errors
    /// The errors of `take`.
    pub(crate) async fn take(
        self: &Arc<Self>,
        limit: Duration,
        take: impl Fn() -> Result<Permit, Status>,
    ) -> Result<Inside, Status> {
        let found = tokio::time::timeout(limit, async {
            loop {
                let mut given_back = std::pin::pin!(self.given_back.notified());
                given_back.as_mut().enable();
                let is_alone = self.taken.load(Ordering::Acquire) == 0;
                match take() {
                    Err(_) if !is_alone => given_back.await,
                    found => return found,
                }
            }
        });
        let held = match found.await {
            Ok(found) => found?,
            Err(_) => take()?,
        };
        self.taken.fetch_add(1, Ordering::AcqRel);
        Ok(Inside { held: Some(held), of: Arc::clone(self) })
    }
}

impl Drop for Inside {
    fn drop(&mut self) {
        // Return the memory before the notification.
        drop(self.held.take());
        self.of.taken.fetch_sub(1, Ordering::AcqRel);
        self.of.given_back.notify_waiters();
    }
}

/// A permit for a frequently changing number of items, adjusted in steps.
#[derive(Debug)]
pub(crate) struct Reserve {
    quota: Quota,
    held: Option<Permit>,
    room: usize,
}

impl Reserve {
    const STEP: usize = 64;

    pub(crate) fn new(quota: Quota) -> Self {
        Self { quota, held: None, room: 0 }
    }

    /// Ensures a permit for `count` items in total.
    ///
    /// # Errors
    /// RESOURCE_EXHAUSTED.
    pub(crate) fn make(&mut self, count: usize) -> Result<(), Status> {
        let missing = count.saturating_sub(self.room);
        if missing == 0 {
            return Ok(());
        }
        let step = missing.max(Self::STEP);
        let (more, taken) = match self.quota.take_now(step as u64) {
            Ok(more) => (more, step),
            Err(_) => (self.quota.take_now(missing as u64)?, missing),
        };
        self.room += taken;
        match &mut self.held {
            Some(held) => held.add(more),
            held => *held = Some(more),
        }
        Ok(())
    }

    /// Returns what `count` items do not need.
    pub(crate) fn shrink(&mut self, count: usize) {
        let spare = self.room.saturating_sub(count);
        if spare > 2 * Self::STEP
            && let Some(held) = &mut self.held
        {
            drop(held.split(spare - Self::STEP));
            self.room -= spare - Self::STEP;
        }
    }

    /// Splits off the permit of `count` items, or of all existing ones.
    pub(crate) fn take_out(&mut self, count: usize) -> Option<Permit> {
        let count = count.min(self.room);
        self.room -= count;
        self.held.as_mut().map(|held| held.split(count))
    }

    /// Returns the whole permit.
    pub(crate) fn clear(&mut self) {
        self.held = None;
        self.room = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serdes::codec::StatusCode;

    fn quota(amount: u64) -> Quota {
        Quota::new(vec![Budget::bytes("test-bytes", amount)], None)
    }

    #[tokio::test]
    async fn amount_over_the_limit_is_refused_and_a_smaller_one_waits() {
        let quota = quota(8192);
        for amount in [8193, u64::MAX] {
            let error = quota.take(amount).await.unwrap_err();
            assert_eq!(error.code(), StatusCode::ResourceExhausted);
            assert!(error.message().contains("`test-bytes`"), "{}", error.message());
        }
        let all = quota.take(8192).await.unwrap();
        let next = tokio::spawn({
            let quota = quota.clone();
            async move { quota.take(1).await.map(drop) }
        });
        tokio::task::yield_now().await;
        assert!(!next.is_finished());
        drop(all);
        next.await.unwrap().unwrap();
    }

    #[tokio::test]
    async fn insides_wait_only_for_running_programs() {
        let (quota, program_memory) = (quota(8192), Arc::new(ProgramMemory::default()));
        let limit = Duration::from_secs(60);
        let array = quota.take_now(4096).unwrap();
        let error = program_memory.take(limit, || quota.take_now(8192)).await.unwrap_err();
        assert!(error.message().contains("`test-bytes`"), "{}", error.message());
        let first = program_memory.take(limit, || quota.take_now(4096)).await.unwrap();
        let next = tokio::spawn({
            let (quota, program_memory) = (quota.clone(), Arc::clone(&program_memory));
            async move { program_memory.take(limit, || quota.take_now(4096)).await.map(drop) }
        });
        tokio::task::yield_now().await;
        assert!(!next.is_finished());
        drop(first);
        next.await.unwrap().unwrap();
        // No holder remains that could return the rest.
        assert!(program_memory.take(limit, || quota.take_now(8192)).await.is_err());
        drop(array);
        assert!(program_memory.take(limit, || quota.take_now(8192)).await.is_ok());
    }

    #[test]
    fn room_for_many_things_is_taken_and_given_back_in_steps() {
        let quota = Quota::new(vec![Budget::count("things", 200)], None);
        let mut reserve = Reserve::new(quota.clone());
        for count in 1..=200 {
            reserve.make(count).unwrap();
        }
        assert!(reserve.make(201).unwrap_err().message().contains("`things`"));
        assert!(quota.take_now(1).is_err());
        reserve.shrink(10);
        let held = quota.take_now(126).unwrap();
        assert!(quota.take_now(1).is_err());
        drop(held);
        reserve.clear();
        assert!(quota.take_now(200).is_ok());
    }

    #[test]
    fn amount_is_taken_from_all_levels_or_none() {
        let (own, all) = (Budget::bytes("own", 1024), Budget::bytes("all", 512));
        let both = Quota::new(vec![own.clone(), all], None);
        let error = both.take_now(1024).unwrap_err();
        assert!(error.message().contains("`all`"), "{}", error.message());
        let mut held = both.take_now(256).unwrap();
        held.add(both.take_now(256).unwrap());
        assert!(both.take_now(1).unwrap_err().message().contains("`all`"));
        assert!(Quota::new(vec![own.clone()], None).take_now(512).is_ok());
        drop(held);
        assert!(Quota::new(vec![own], None).take_now(1024).is_ok());
    }
}
