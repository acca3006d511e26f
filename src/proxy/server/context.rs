//! What all sessions work with: the devices, the limits, what is counted, and the lanes to the plug-in.
//!
//! This part must never know a session, a request, a connection or the state.

use std::sync::Arc;

use tokio::{sync::watch, task::spawn_blocking};

use super::{
    arrays::Devices,
    budget::Budgets,
    limits::Limits,
    metrics::Gauges,
    turns::{Turn, Turns},
};
use crate::{codec::Status, proxy::status::status};

/// What all sessions work with.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) limits: Limits,
    pub(crate) devices: Arc<Devices>,
    pub(crate) gauges: Arc<Gauges>,
    /// Of all together.
    pub(crate) budgets: Budgets,
    /// Whether the server stops.
    pub(crate) stop: watch::Sender<bool>,
    turns: Arc<Turns>,
}

impl Context {
    /// `limits` are [resolved](Limits::resolved).
    pub(crate) fn new(
        limits: Limits,
        devices: Devices,
        gauges: Arc<Gauges>,
        budgets: Budgets,
    ) -> Arc<Self> {
        let lanes = devices.len().saturating_mul(2).clamp(4, 64);
        Arc::new(Self {
            limits,
            devices: Arc::new(devices),
            gauges,
            budgets,
            stop: watch::Sender::new(false),
            turns: Turns::new(lanes),
        })
    }

    /// Runs something that waits for a device, beside the tasks that wait for peers, when it is its turn.
    ///
    /// # Errors
    /// Those of `work`; INTERNAL if it panics.
    pub(crate) async fn blocking<T: Send + 'static>(
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
        spawn_blocking(work).await.unwrap_or_else(|error| Err(panicked(&error)))
    }

    /// As [`blocking`](Self::blocking), of work that may take long: `step` does a piece of it, and gives the result with the last one.
    /// Between two pieces others have their turns, if any wait.
    ///
    /// # Errors
    /// Those of `step`; INTERNAL if it panics.
    pub(crate) async fn in_pieces<T: Send + 'static>(
        &self,
        turn: Turn,
        mut step: impl FnMut() -> Result<Option<T>, Status> + Send + 'static,
    ) -> Result<T, Status> {
        loop {
            let lane = self.turns.take(turn).await;
            let pieces = move || {
                loop {
                    match step().transpose() {
                        None if lane.is_wanted() => return (step, None),
                        None => {}
                        done => return (step, done),
                    }
                }
            };
            let (rest, done) = spawn_blocking(pieces).await.map_err(|error| panicked(&error))?;
            match done {
                Some(done) => return done,
                None => step = rest,
            }
        }
    }
}

fn panicked(error: &tokio::task::JoinError) -> Status {
    status!(Internal, "a call into the plug-in failed: {error}")
}
