//! Schedules the lanes to the devices fairly between peers and between the sessions of each.

use std::{
    collections::{HashMap, VecDeque},
    hash::Hash,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

/// The peer and session for which a lane is requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Turn {
    pub(crate) peer: u64,
    pub(crate) session: u64,
}

/// Limits concurrent calls into a plug-in. Lanes go to peers in turn, and to the sessions of a peer
/// in turn; the last free lane goes to a session that has none.
#[derive(Debug)]
pub(crate) struct FairScheduler {
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    free: usize,
    /// Number of lanes in use; turns without a lane have no entry.
    used: HashMap<Turn, usize>,
    waiting: Ring<u64, Ring<Turn, VecDeque<oneshot::Sender<Lane>>>>,
}

/// A lane, returned on drop.
#[derive(Debug)]
pub(crate) struct Lane {
    turns: Arc<FairScheduler>,
    turn: Turn,
}

/// Non-empty queues that are served in turn.
#[derive(Debug)]
struct Ring<K, Q> {
    order: VecDeque<K>,
    queues: HashMap<K, Q>,
}

impl<K, Q> Default for Ring<K, Q> {
    fn default() -> Self {
        Self { order: VecDeque::new(), queues: HashMap::new() }
    }
}

impl<K: Copy + Eq + Hash, Q: Default> Ring<K, Q> {
    fn queue(&mut self, key: K) -> &mut Q {
        self.queues.entry(key).or_insert_with(|| {
            self.order.push_back(key);
            Q::default()
        })
    }

    /// Serves the first queue that `may` be served, which then becomes the last one, or is removed
    /// if `take` reports that it is empty.
    fn next<T>(
        &mut self,
        may: impl Fn(K, &Q) -> bool,
        take: impl FnOnce(&mut Q) -> (Option<T>, bool),
    ) -> Option<(K, T)> {
        let queues = &self.queues;
        let at = self
            .order
            .iter()
            .position(|key| queues.get(key).is_some_and(|queue| may(*key, queue)))?;
        let key = self.order.remove(at)?;
        let (taken, empty) = self.queues.get_mut(&key).map(take)?;
        if empty {
            self.queues.remove(&key);
        } else {
            self.order.push_back(key);
        }
        Some((key, taken?))
    }
}

impl FairScheduler {
    /// Creates a scheduler with this number of lanes, at least two.
    pub(crate) fn new(lanes: usize) -> Arc<Self> {
        let state = State { free: lanes.max(2), used: HashMap::new(), waiting: Ring::default() };
        Arc::new(Self { state: Mutex::new(state) })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for a lane.
    pub(crate) async fn take(self: &Arc<Self>, turn: Turn) -> Lane {
        if self.lock().take_now(turn) {
            return Lane { turns: Arc::clone(self), turn };
        }
        let (sender, receiver) = oneshot::channel();
        self.lock().waiting.queue(turn.peer).queue(turn).push_back(sender);
        self.hand_out();
        match receiver.await {
            Ok(lane) => lane,
            // The sender is dropped only together with the future that waits for it.
            Err(_) => std::future::pending().await,
        }
    }

    /// Assigns free lanes in turn.
    fn hand_out(self: &Arc<Self>) {
        loop {
            let mut state = self.lock();
            let Some((turn, waiter)) = state.next() else { return };
            if waiter.is_closed() {
                continue;
            }
            state.free -= 1;
            *state.used.entry(turn).or_default() += 1;
            drop(state);
            // A lane for a receiver that has just been dropped is returned.
            drop(waiter.send(Lane { turns: Arc::clone(self), turn }));
        }
    }
}

impl State {
    /// Takes a lane without waiting, if one is free for this turn.
    fn take_now(&mut self, turn: Turn) -> bool {
        let may = match self.free {
            0 => false,
            1 => !self.used.contains_key(&turn),
            _ => true,
        };
        let is_free = may && self.waiting.order.is_empty();
        if is_free {
            self.free -= 1;
            *self.used.entry(turn).or_default() += 1;
        }
        is_free
    }

    /// Returns the next waiting turn, if a lane is free for it.
    fn next(&mut self) -> Option<(Turn, oneshot::Sender<Lane>)> {
        if self.free == 0 {
            return None;
        }
        let (last, used) = (self.free == 1, &self.used);
        let may = |turn: Turn| !last || !used.contains_key(&turn);
        let next = self.waiting.next(
            |_, sessions| sessions.order.iter().copied().any(may),
            |sessions| {
                let taken = sessions
                    .next(|turn, _| may(turn), |waiters| (waiters.pop_front(), waiters.is_empty()));
                (taken, sessions.order.is_empty())
            },
        );
        next.map(|(_, taken)| taken)
    }
}

impl Lane {
    /// Returns true if a request waits for a lane.
    pub(crate) fn is_wanted(&self) -> bool {
        !self.turns.lock().waiting.order.is_empty()
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        let mut state = self.turns.lock();
        state.free += 1;
        if let Some(used) = state.used.get_mut(&self.turn) {
            *used -= 1;
            if *used == 0 {
                state.used.remove(&self.turn);
            }
        }
        drop(state);
        self.turns.hand_out();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn turn(peer: u64, session: u64) -> Turn {
        Turn { peer, session }
    }

    async fn yields() {
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
    }

    /// Requests a lane for each of these in turn, then returns one lane after the other; returns
    /// the order in which they got lanes.
    async fn order(turns: &Arc<FairScheduler>, held: Vec<Lane>, asking: &[Turn]) -> Vec<Turn> {
        let (sender, mut receiver) = tokio::sync::mpsc::unbounded_channel();
        for turn in asking {
            let (turns, sender, turn) = (Arc::clone(turns), sender.clone(), *turn);
            tokio::spawn(async move {
                let lane = turns.take(turn).await;
                drop(sender.send((turn, lane)));
            });
            yields().await;
        }
        drop(sender);
        drop(held);
        let mut order = Vec::new();
        while let Some((turn, _lane)) = receiver.recv().await {
            order.push(turn);
        }
        order
    }

    #[tokio::test]
    async fn peers_and_their_sessions_take_turns() {
        let turns = FairScheduler::new(2);
        let (busy, other, quiet) = (turn(1, 1), turn(1, 2), turn(2, 3));
        let held = vec![turns.take(busy).await, turns.take(other).await];
        let asking = [busy, busy, busy, busy, other, quiet];
        let order = order(&turns, held, &asking).await;
        let place = |wanted| order.iter().position(|turn| *turn == wanted).unwrap();
        assert_eq!(order.len(), 6);
        assert!(place(quiet) < 3, "{order:?}");
        assert!(place(other) < 4, "{order:?}");
    }

    #[tokio::test]
    async fn the_last_lane_is_for_a_session_that_has_none() {
        let turns = FairScheduler::new(3);
        let held = vec![turns.take(turn(1, 1)).await, turns.take(turn(1, 1)).await];
        let greedy = tokio::spawn({
            let turns = Arc::clone(&turns);
            async move { turns.take(turn(1, 1)).await }
        });
        yields().await;
        assert!(!greedy.is_finished());
        let modest = turns.take(turn(1, 2)).await;
        drop((held, modest));
        greedy.await.unwrap();
    }

    #[tokio::test]
    async fn waiter_that_gave_up_is_passed_over() {
        let turns = FairScheduler::new(2);
        let held = vec![turns.take(turn(1, 1)).await, turns.take(turn(1, 2)).await];
        for _ in 0..1000 {
            let gone = turns.take(turn(1, 3));
            tokio::select! { biased; _ = gone => panic!("no lane is free"), () = std::future::ready(()) => {} }
        }
        drop(held);
        turns.take(turn(1, 4)).await;
        assert_eq!(turns.lock().free, 2);
    }
}
