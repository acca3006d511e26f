//! Running programs, and the order in which programs get their devices.
//!
//! A plug-in executes the work of a device in order of arrival, for all sessions alike, and cannot
//! stop a program. So a program that may never end shares its devices with no other session:
//! programs of others wait here until it has ended or has delayed them for too long. Then it is
//! abandoned, and the devices of another client of the plug-in are used.
//!
//! Does not depend on what a program is.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

use serdes::codec::Status;
use tokio::sync::Notify;

use super::{
    budget::Peer,
    promise::{Promise, Promised},
};
use crate::status::status;

/// Maximum number of times that the programs of one peer may block the devices for all others; a
/// server can recover only a few times altogether.
const MOST_OF_PEER: usize = 2;

/// A program that is to run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Wanted<'a> {
    /// Number of the session.
    pub(crate) session: u64,
    pub(crate) peer: &'a Arc<Peer>,
    /// Positions of the devices.
    pub(crate) devices: &'a [usize],
    /// True if its run is unbounded.
    pub(crate) may_be_endless: bool,
}

/// Programs that run or wait for devices.
#[derive(Debug, Default)]
pub(crate) struct Runs {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    next: u64,
    /// Peer of each abandoned program; kept, so that it is recognized when it returns.
    given_up: Vec<Arc<Peer>>,
    /// Runs by number, in order of arrival.
    runs: BTreeMap<u64, Entry>,
}

#[derive(Debug)]
struct Entry {
    session: u64,
    peer: Arc<Peer>,
    devices: Vec<usize>,
    may_be_endless: bool,
    /// `None` while the program waits.
    begun: Option<Begun>,
    give_up: Promise<()>,
    is_given_up: bool,
}

#[derive(Clone, Copy, Debug)]
struct Begun {
    generation: usize,
    /// Start of the wait of another session's program for this one.
    contended: Option<Instant>,
    /// True once its client has been told that it takes too long.
    is_expired: bool,
}

/// Registration of a program, removed on drop.
#[derive(Debug)]
pub(crate) struct Run {
    runs: Arc<Runs>,
    number: u64,
    generation: usize,
    is_watched: bool,
    given_up: Promised<()>,
}

/// Result of an attempt to start.
#[derive(Debug, PartialEq, Eq)]
enum Next {
    /// The program may start; true if it is queued behind a program of its session that may be
    /// endless.
    Begun(bool),
    /// The program waits until a time, if there is one, or until a change.
    Wait(Option<Instant>),
    /// These programs have delayed it for too long.
    Overdue(Vec<u64>),
    /// The program may be endless, and its peer's programs were abandoned too often.
    Refused,
}

impl Entry {
    fn overlaps(&self, devices: &[usize]) -> bool {
        self.devices.iter().any(|device| devices.contains(device))
    }
}

impl State {
    /// Starts a program on the devices of `generation` if nothing blocks it.
    fn begin(
        &mut self,
        number: u64,
        generation: usize,
        limit: Option<Duration>,
        now: Instant,
    ) -> Next {
        let Some(own) = self.runs.get(&number) else { return Next::Wait(None) };
        let (session, devices) = (own.session, own.devices.clone());
        let may_be_endless = own.may_be_endless;
        if may_be_endless && self.times(own.peer.number) >= MOST_OF_PEER {
            return Next::Refused;
        }
        let (mut is_free, mut is_behind, mut until, mut overdue) = (true, false, None, Vec::new());
        for (other, entry) in &mut self.runs {
            if *other == number || !entry.overlaps(&devices) {
                continue;
            }
            let is_own = entry.session == session;
            match &mut entry.begun {
                Some(begun) if begun.generation == generation && entry.may_be_endless => {
                    is_behind |= is_own;
                    if is_own {
                        continue;
                    }
                    is_free = false;
                    let since = *begun.contended.get_or_insert(now);
                    let end = limit.and_then(|limit| since.checked_add(limit));
                    if begun.is_expired || end.is_some_and(|end| end <= now) {
                        overdue.push(*other);
                    } else if let Some(end) = end {
                        until = Some(until.map_or(end, |until: Instant| until.min(end)));
                    }
                }
                Some(_) => {}
                // An earlier program waits for others; it must not wait for this one, too.
                None => is_free &= is_own || !may_be_endless || *other > number,
            }
        }
        if !overdue.is_empty() {
            return Next::Overdue(overdue);
        }
        if !is_free {
            return Next::Wait(until);
        }
        if let Some(own) = self.runs.get_mut(&number) {
            own.begun = Some(Begun { generation, contended: None, is_expired: false });
        }
        Next::Begun(is_behind)
    }

    /// Returns the number of times that programs of a peer were abandoned.
    fn times(&self, peer: u64) -> usize {
        self.given_up.iter().filter(|other| other.number == peer).count()
    }

    /// Abandons programs, with those of their sessions that were started behind them. Counts once
    /// for each of their peers.
    fn give_up(&mut self, overdue: &[u64]) {
        let mut peers: Vec<Arc<Peer>> = Vec::new();
        for number in overdue {
            let Some(entry) = self.runs.get_mut(number) else { continue };
            // Several waiting programs may find the same one overdue.
            let was_given_up = std::mem::replace(&mut entry.is_given_up, true);
            if !was_given_up && peers.iter().all(|peer| peer.number != entry.peer.number) {
                peers.push(Arc::clone(&entry.peer));
            }
        }
        self.given_up.extend(peers);
        for number in overdue {
            let Some(entry) = self.runs.get(number) else { continue };
            let Some(begun) = entry.begun else { continue };
            let (session, devices) = (entry.session, entry.devices.clone());
            for entry in self.runs.range(number..).map(|(_, entry)| entry) {
                let is_same = entry.session == session && entry.overlaps(&devices);
                if is_same && entry.begun.is_some_and(|other| other.generation == begun.generation)
                {
                    entry.give_up.clone().keep(Ok(()));
                }
            }
        }
    }
}

impl Runs {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn queue(self: &Arc<Self>, wanted: Wanted<'_>) -> Run {
        let (give_up, given_up) = Promised::coming();
        let mut state = self.lock();
        let number = state.next;
        state.next += 1;
        let entry = Entry {
            session: wanted.session,
            peer: Arc::clone(wanted.peer),
            is_given_up: false,
            devices: wanted.devices.to_vec(),
            may_be_endless: wanted.may_be_endless,
            begun: None,
            give_up,
        };
        state.runs.insert(number, entry);
        let is_watched = wanted.may_be_endless;
        Run { runs: Arc::clone(self), number, generation: 0, is_watched, given_up }
    }

    /// Registers a program on the devices of the current generation, once no program of another
    /// session that may be endless is on them. After `limit` blocking programs are abandoned, and
    /// `renew` replaces the devices of that generation.
    ///
    /// # Errors
    /// The errors of `renew`; RESOURCE_EXHAUSTED for a program that may be endless, if its peer's
    /// programs were abandoned too often.
    pub(crate) async fn enter<R: Future<Output = Result<(), Status>>>(
        self: &Arc<Self>,
        wanted: Wanted<'_>,
        limit: Option<Duration>,
        generation: impl Fn() -> usize,
        renew: impl Fn(usize) -> R,
    ) -> Result<Run, Status> {
        let mut run = self.queue(wanted);
        loop {
            let changed = self.changed.notified();
            let current = generation();
            let next = self.lock().begin(run.number, current, limit, Instant::now());
            match next {
                Next::Begun(is_behind) => {
                    run.generation = current;
                    run.is_watched |= is_behind;
                    return Ok(run);
                }
                Next::Wait(None) => changed.await,
                Next::Wait(Some(until)) => {
                    // There was a change, or it is time to check again.
                    let _ = tokio::time::timeout_at(until.into(), changed).await;
                }
                Next::Refused => return Err(refused()),
                Next::Overdue(overdue) => {
                    renew(current).await?;
                    self.lock().give_up(&overdue);
                    self.changed.notify_waiters();
                }
            }
        }
    }
}

fn refused() -> Status {
    status!(
        ResourceExhausted,
        "programs of this client have kept the devices from those of others {MOST_OF_PEER} times and did not end; this server takes no more programs of it that have loops or whose parts wait for one another: run them while no other client waits, or ask the server's operator to start it again"
    )
}

impl Run {
    /// Returns the generation of devices on which the program runs.
    pub(crate) const fn generation(&self) -> usize {
        self.generation
    }

    /// Returns true if the program may be abandoned.
    pub(crate) const fn is_watched(&self) -> bool {
        self.is_watched
    }

    /// Returns a promise that is fulfilled when the program is abandoned.
    pub(crate) fn given_up(&self) -> Promised<()> {
        self.given_up.clone()
    }

    /// Returns the handle that marks the run as expired.
    pub(crate) fn expiry(&self) -> Expiry {
        Expiry { runs: Arc::clone(&self.runs), number: self.number }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        self.runs.lock().runs.remove(&self.number);
        self.runs.changed.notify_waiters();
    }
}

/// Handle that marks a run as expired for its client.
#[derive(Clone, Debug)]
pub(crate) struct Expiry {
    runs: Arc<Runs>,
    number: u64,
}

impl Expiry {
    /// Marks the run as expired: its client and programs of others need not wait for it.
    pub(crate) fn expire(&self) {
        let mut state = self.runs.lock();
        let begun = state.runs.get_mut(&self.number).and_then(|entry| entry.begun.as_mut());
        if let Some(begun) = begun {
            begun.is_expired = true;
        }
        drop(state);
        self.runs.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use crate::server::{budget::Budgets, limits::Limits};

    const LONG: Option<Duration> = Some(Duration::from_secs(3600));
    const AT_ONCE: Option<Duration> = Some(Duration::ZERO);

    /// Returns a peer for each session.
    fn wanted(session: u64, devices: &[usize], may_be_endless: bool) -> Wanted<'_> {
        let budgets = Budgets::of_peer(&Limits::default());
        let peer = Box::leak(Box::new(Arc::new(Peer { number: session, budgets })));
        Wanted { session, peer, devices, may_be_endless }
    }

    /// Tries once to begin a program, as `enter` does.
    fn begin(runs: &Arc<Runs>, run: &Run, limit: Option<Duration>) -> Next {
        runs.lock().begin(run.number, 0, limit, Instant::now())
    }

    fn begun(runs: &Arc<Runs>, session: u64, devices: &[usize], may_be_endless: bool) -> Run {
        let run = runs.queue(wanted(session, devices, may_be_endless));
        assert!(matches!(begin(runs, &run, LONG), Next::Begun(_)));
        run
    }

    #[test]
    fn runs_wait_for_endless_ones_of_others_on_their_devices() {
        let runs = Arc::<Runs>::default();
        let endless = begun(&runs, 1, &[0, 1], true);
        for devices in [&[0][..], &[1, 2]] {
            let waits = runs.queue(wanted(2, devices, false));
            assert!(matches!(begin(&runs, &waits, LONG), Next::Wait(Some(_))));
            assert_eq!(begin(&runs, &waits, None), Next::Wait(None));
        }
        // A program of the same session on the devices of another client.
        assert_eq!(begin(&runs, &runs.queue(wanted(2, &[2], true)), LONG), Next::Begun(false));
        assert_eq!(begin(&runs, &runs.queue(wanted(1, &[1], false)), LONG), Next::Begun(true));
        let later = runs.queue(wanted(2, &[0], true));
        assert_eq!(runs.lock().begin(later.number, 1, LONG, Instant::now()), Next::Begun(false));
        drop(endless);
        assert_eq!(begin(&runs, &runs.queue(wanted(3, &[1], false)), LONG), Next::Begun(false));
    }

    #[test]
    fn runs_that_end_for_sure_share_their_devices() {
        let runs = Arc::<Runs>::default();
        let _sure = begun(&runs, 1, &[0], false);
        let _endless = begun(&runs, 2, &[0], true);
    }

    #[test]
    fn runs_that_are_endless_let_those_pass_that_came_before() {
        let runs = Arc::<Runs>::default();
        let first = begun(&runs, 1, &[0], true);
        let waits = runs.queue(wanted(2, &[0], true));
        assert!(matches!(begin(&runs, &waits, LONG), Next::Wait(Some(_))));
        // Without turns the second session would wait as long as the first one sends programs.
        let greedy = runs.queue(wanted(1, &[0], true));
        assert_eq!(begin(&runs, &greedy, LONG), Next::Wait(None));
        drop(first);
        assert_eq!(begin(&runs, &greedy, LONG), Next::Wait(None));
        assert_eq!(begin(&runs, &waits, LONG), Next::Begun(false));
        drop(waits);
        assert_eq!(begin(&runs, &greedy, LONG), Next::Begun(false));
    }

    #[test]
    fn runs_are_overdue_once_others_have_waited_or_they_expired() {
        let runs = Arc::<Runs>::default();
        let endless = begun(&runs, 1, &[0], true);
        let waits = runs.queue(wanted(2, &[0], false));
        assert_eq!(begin(&runs, &waits, AT_ONCE), Next::Overdue(vec![endless.number]));
        assert!(matches!(begin(&runs, &waits, LONG), Next::Wait(Some(_))));
        assert_eq!(begin(&runs, &waits, None), Next::Wait(None));
        endless.expiry().expire();
        assert_eq!(begin(&runs, &waits, None), Next::Overdue(vec![endless.number]));
    }

    #[tokio::test]
    async fn runs_give_up_what_is_overdue_with_all_behind_it() {
        let runs = Arc::<Runs>::default();
        let before = begun(&runs, 1, &[0], false);
        let endless = begun(&runs, 1, &[0], true);
        let (behind, elsewhere) = (begun(&runs, 1, &[0], false), begun(&runs, 1, &[1], false));
        let current = AtomicUsize::new(0);
        let renew = |generation: usize| {
            current.store(generation + 1, Ordering::Relaxed);
            std::future::ready(Ok(()))
        };
        let generation = || current.load(Ordering::Relaxed);
        let other = runs.enter(wanted(2, &[0], true), AT_ONCE, generation, renew).await.unwrap();
        assert_eq!((other.generation(), other.is_watched()), (1, true));
        let given_up = [&before, &endless, &behind, &elsewhere, &other]
            .map(|run| run.given_up().now().is_some());
        assert_eq!(given_up, [false, true, true, false, false]);
    }

    #[tokio::test]
    async fn runs_of_a_peer_are_refused_once_two_were_given_up() {
        let runs = Arc::<Runs>::default();
        let current = AtomicUsize::new(0);
        let renew = |generation: usize| {
            current.store(generation + 1, Ordering::Relaxed);
            std::future::ready(Ok(()))
        };
        let generation = || current.load(Ordering::Relaxed);
        let mut kept = Vec::new();
        for _ in 0..MOST_OF_PEER {
            let greedy = wanted(1, &[0], true);
            kept.push(runs.enter(greedy, AT_ONCE, generation, renew).await.unwrap());
            let other = runs.enter(wanted(2, &[0], false), AT_ONCE, generation, renew).await;
            kept.push(other.unwrap());
        }
        let refused = runs.enter(wanted(1, &[0], true), AT_ONCE, generation, renew).await;
        assert!(refused.unwrap_err().message().contains("2 times"));
        // Programs that certainly end are accepted, and so are programs of other sessions.
        for wanted in [wanted(1, &[0], false), wanted(3, &[0], true)] {
            runs.enter(wanted, AT_ONCE, generation, renew).await.unwrap();
        }
        assert_eq!(current.load(Ordering::Relaxed), MOST_OF_PEER);
    }

    #[tokio::test]
    async fn runs_are_kept_where_no_other_devices_can_be_had() {
        let runs = Arc::<Runs>::default();
        let endless = begun(&runs, 1, &[0], true);
        let renew = |_| std::future::ready(Err(status!(Unavailable, "no other")));
        let refused = runs.enter(wanted(2, &[0], false), AT_ONCE, || 0, renew).await;
        assert_eq!(refused.unwrap_err().message(), "no other");
        assert!(endless.given_up().now().is_none());
        // The refused program has left the queue.
        assert_eq!(runs.lock().runs.len(), 1);
    }
}
