//! Shared context of all sessions: devices, limits, metrics, and the lanes to the plug-in.
//!
//! Does not depend on sessions, requests, connections or the state.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use serdes::{codec::Status, stablehlo::ProgramBridge};
use tokio::{
    runtime::{Handle, RuntimeFlavor},
    sync::watch,
    task::{block_in_place, spawn_blocking, yield_now},
};

use super::{
    arrays::{Devices, MOST_RENEWALS},
    budget::{Budgets, ProgramMemory},
    latency::{LatencyEstimate, Passing},
    launches::Launches,
    limits::Limits,
    metrics::Gauges,
    priority::Thread,
    programs::{CallRules, OptionRules, Trials},
    promise::Promised,
    runs::{Run, Runs, Wanted},
    scheduler::{FairScheduler, Lane, Turn},
};
use crate::status::status;

/// Shared context of all sessions.
#[derive(Debug)]
pub(crate) struct Context {
    pub(crate) limits: Limits,
    pub(crate) devices: Arc<Devices>,
    pub(crate) gauges: Arc<Gauges>,
    /// Budgets of all peers together.
    pub(crate) budgets: Budgets,
    /// True once the server is to stop, and takes no new sessions.
    pub(crate) draining: watch::Sender<bool>,
    /// True once the server stops.
    pub(crate) stop: watch::Sender<bool>,
    turns: Arc<FairScheduler>,
    /// Separate lanes for compilations, which take long: nothing else waits for a compiler.
    compilers: Arc<FairScheduler>,
    /// Separate lanes for programs that call functions of their clients, during which a plug-in may
    /// wait for a client.
    callers: Arc<FairScheduler>,
    /// Separate lanes for launches that may never return: nothing else waits for a program.
    launchers: Arc<FairScheduler>,
    /// Latency estimate of small transfers between the host and a device.
    pub(crate) transfers: LatencyEstimate,
    /// Limits quick calls on the runtime's threads.
    passing: Passing,
    /// The order in which programs on several devices are launched.
    pub(crate) launches: Launches,
    /// Programs that run or wait for their turn.
    runs: Arc<Runs>,
    /// Memory that running programs have reserved for themselves.
    pub(crate) program_memory: Arc<ProgramMemory>,
    pub(crate) compilation: Compilation,
}

/// Settings for compiling programs.
#[derive(Debug, Default)]
pub(crate) struct Compilation {
    /// Converts programs for the plug-in that the server cannot convert itself.
    pub(crate) bridge: Option<Arc<dyn ProgramBridge>>,
    /// Compiles programs first, in another process.
    pub(crate) trials: Trials,
    /// Rules for the compile options of clients.
    pub(crate) rules: OptionRules,
    /// Rules for custom calls if programs must be portable artifacts of StableHLO; `None` if any
    /// program is compiled.
    pub(crate) portable_only: Option<CallRules>,
}

/// Maximum number of concurrent launches of programs that call functions of their clients.
const CALLERS: usize = 64;

/// Maximum number of concurrent launches of programs that may not end.
const LAUNCHERS: usize = 16;

impl Context {
    /// Creates the context with [resolved](Limits::resolved) `limits`.
    pub(crate) fn new(
        limits: Limits,
        devices: Devices,
        gauges: Arc<Gauges>,
        budgets: Budgets,
        compilation: Compilation,
    ) -> Arc<Self> {
        let lanes = devices.len().saturating_mul(2).clamp(4, 64);
        let compilers = std::thread::available_parallelism().map_or(2, usize::from).clamp(2, 16);
        let launches = Launches::new(MOST_RENEWALS + 1, devices.len());
        Arc::new(Self {
            limits,
            devices: Arc::new(devices),
            gauges,
            budgets,
            draining: watch::Sender::new(false),
            stop: watch::Sender::new(false),
            turns: FairScheduler::new(lanes),
            compilers: FairScheduler::new(compilers),
            callers: FairScheduler::new(CALLERS),
            launchers: FairScheduler::new(LAUNCHERS),
            transfers: LatencyEstimate::default(),
            passing: Passing::default(),
            launches,
            runs: Arc::default(),
            program_memory: Arc::default(),
            compilation,
        })
    }

    /// Runs work that waits for a device on a thread of its own, when it is its turn.
    ///
    /// # Errors
    /// The errors of `work`; INTERNAL if it panics.
    pub(crate) async fn blocking<T: Send + 'static>(
        &self,
        turn: Turn,
        work: impl FnOnce() -> Result<T, Status> + Send + 'static,
    ) -> Result<T, Status> {
        on_lane(&self.turns, turn, work).await
    }

    /// Like [`blocking`](Self::blocking), but runs on the calling thread if `latency` says that
    /// such calls are quick.
    ///
    /// # Errors
    /// As [`blocking`](Self::blocking).
    pub(crate) async fn by_latency<T: Send + 'static>(
        &self,
        turn: Turn,
        latency: &LatencyEstimate,
        work: impl FnOnce() -> Result<T, Status> + Send + 'static,
    ) -> Result<T, Status> {
        if !latency.is_quick() || Handle::current().runtime_flavor() != RuntimeFlavor::MultiThread {
            return on_lane(&self.turns, turn, work).await;
        }
        let lane = self.turns.take(turn).await;
        let work = move || {
            let _lane = lane;
            catch_unwind(AssertUnwindSafe(work))
        };
        let done = if latency.is_momentary() {
            if !latency.is_instant() {
                // Tasks that this task has just woken would stay on this thread for the duration of
                // the call: let them run first.
                yield_now().await;
            }
            let passes = self.passing.take(Handle::current().metrics().num_workers());
            if passes.is_some() { work() } else { block_in_place(work) }
        } else {
            block_in_place(work)
        };
        done.unwrap_or_else(|_| {
            Err(status!(Internal, "a call into the plug-in failed: it panicked"))
        })
    }

    /// Like [`blocking`](Self::blocking), for a compilation, which may take minutes.
    ///
    /// # Errors
    /// As [`blocking`](Self::blocking).
    pub(crate) async fn compiling<T: Send + 'static>(
        &self,
        turn: Turn,
        work: impl FnOnce() -> Result<T, Status> + Send + 'static,
    ) -> Result<T, Status> {
        on_lane(&self.compilers, turn, work).await
    }

    /// Like [`blocking`](Self::blocking), for a program that may wait for its client.
    ///
    /// # Errors
    /// As [`blocking`](Self::blocking).
    pub(crate) async fn calling<T: Send + 'static>(
        &self,
        turn: Turn,
        work: impl FnOnce() -> Result<T, Status> + Send + 'static,
    ) -> Result<T, Status> {
        on_lane(&self.callers, turn, work).await
    }

    /// Like [`blocking`](Self::blocking), for a launch that may never return: waits until it is
    /// `given_up`, which frees its lane for others.
    ///
    /// # Errors
    /// The errors of `work`; INTERNAL if it panics; CANCELLED if it was abandoned.
    pub(crate) async fn launching<T: Send + 'static>(
        &self,
        turn: Turn,
        given_up: Promised<()>,
        work: impl FnOnce() -> Result<T, Status> + Send + 'static,
    ) -> Result<T, Status> {
        let lane = tokio::select! {
            biased;
            lane = self.launchers.take(turn) => lane,
            Ok(()) = given_up.wait() => return Err(given_up_status()),
        };
        let held = Arc::new(Launching::default());
        held.lock().lane = Some(lane);
        let mut awaited = Awaited { held: Arc::clone(&held), given_up: Some(given_up.clone()) };
        let launched = async {
            let own = Arc::clone(&held);
            let work = move || {
                // Held until the launch is done or abandoned.
                own.lock().thread = Thread::own();
                let done = work();
                own.lock().thread = None;
                done
            };
            spawn_blocking(work).await.unwrap_or_else(|error| Err(panicked(&error)))
        };
        let launched = tokio::select! {
            biased;
            launched = launched => launched,
            // A promise that is dropped unfulfilled belongs to a run that has ended.
            Ok(()) = given_up.wait() => {
                held.give_up();
                Err(given_up_status())
            }
        };
        awaited.given_up = None;
        launched
    }

    /// Registers a program among the running ones, once no program of another session that may be
    /// endless is on its devices. A program that blocks others for longer than the limit is
    /// abandoned.
    ///
    /// # Errors
    /// UNAVAILABLE if the devices cannot be taken away from an endless program.
    pub(crate) async fn enter(&self, wanted: Wanted<'_>) -> Result<Run, Status> {
        let limit = self.limits.shared_execution_limit();
        let renew = |generation| renew(Arc::clone(&self.devices), generation);
        self.runs.enter(wanted, limit, || self.devices.generation(), renew).await
    }

    /// Like [`blocking`](Self::blocking), for long work: `step` does a piece of it, and returns the
    /// result with the last one. Between two pieces waiting work of others runs.
    ///
    /// # Errors
    /// The errors of `step`; INTERNAL if it panics.
    pub(crate) async fn in_pieces<T: Send + 'static>(
        &self,
        turn: Turn,
        mut step: impl FnMut() -> Result<Option<T>, Status> + Send + 'static,
    ) -> Result<T, Status> {
        // Dropped with this future: once the caller no longer waits for the result, no further
        // piece is done.
        let awaited = Arc::new(());
        loop {
            let lane = self.turns.take(turn).await;
            let awaited = Arc::downgrade(&awaited);
            let pieces = move || {
                loop {
                    match step().transpose() {
                        None if lane.is_wanted() || awaited.strong_count() == 0 => {
                            return (step, None);
                        }
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

async fn on_lane<T: Send + 'static>(
    turns: &Arc<FairScheduler>,
    turn: Turn,
    work: impl FnOnce() -> Result<T, Status> + Send + 'static,
) -> Result<T, Status> {
    let lane = turns.take(turn).await;
    let work = move || {
        // The lane is held until the work is done, even if the session ends before.
        let _lane = lane;
        work()
    };
    spawn_blocking(work).await.unwrap_or_else(|error| Err(panicked(&error)))
}

/// A launch that a caller waits for.
#[derive(Debug, Default)]
struct Launching(Mutex<Launcher>);

/// The lane and the thread of a launch.
#[derive(Debug, Default)]
struct Launcher {
    lane: Option<Lane>,
    thread: Option<Thread>,
}

impl Launching {
    fn lock(&self) -> MutexGuard<'_, Launcher> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Releases the lane, and lowers the thread's priority.
    fn give_up(&self) {
        let Launcher { lane, thread } = std::mem::take(&mut *self.lock());
        drop(lane);
        thread.into_iter().for_each(Thread::lower);
    }
}

/// The wait for a launch. If it is cancelled, the launch keeps its lane until it is done or
/// abandoned.
struct Awaited {
    held: Arc<Launching>,
    /// `None` once the wait has ended.
    given_up: Option<Promised<()>>,
}

impl Drop for Awaited {
    fn drop(&mut self) {
        let runtime = Handle::try_current();
        if let (Some(given_up), Ok(runtime)) = (self.given_up.take(), runtime) {
            let held = Arc::clone(&self.held);
            runtime.spawn(async move {
                if given_up.wait().await.is_ok() {
                    held.give_up();
                }
            });
        }
    }
}

fn given_up_status() -> Status {
    status!(Cancelled, "the program was given up")
}

/// Replaces the devices of a generation by others, and logs it.
async fn renew(devices: Arc<Devices>, generation: usize) -> Result<(), Status> {
    let renew = move || {
        let threads = Thread::of_plugins();
        devices.renew(generation)?;
        threads.into_iter().for_each(Thread::lower);
        Ok(())
    };
    let renewed = spawn_blocking(renew).await;
    let renewed = renewed.unwrap_or_else(|error| Err(panicked(&error)));
    match &renewed {
        Ok(()) => tracing::warn!(
            "a program of a client did not end while programs of others waited for its devices: its client is told so, and another client of the plug-in takes over; what does not end keeps its threads until the server stops"
        ),
        Err(error) => tracing::error!(
            "a program of a client does not end, and its devices cannot be taken away from it: {error}"
        ),
    }
    renewed.map_err(|error| unending(&error))
}

fn unending(error: &Status) -> Status {
    status!(
        Unavailable,
        "a program of another client keeps the devices of this one and does not end, and no others can be had: {}; ask the server's operator to start it again",
        error.message()
    )
}

fn panicked(error: &tokio::task::JoinError) -> Status {
    status!(Internal, "a call into the plug-in failed: {error}")
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;
    use serdes_stream_executor::{LayoutChoice, Plugin};

    fn context() -> Arc<Context> {
        let plugin = Plugin::open("host:devices=1", LayoutChoice::Detect).unwrap();
        let devices = Devices::of(&(&plugin).into()).unwrap();
        let limits = Limits::default().resolved(devices.memory());
        let budgets = Budgets::of_all(&limits);
        Context::new(limits, devices, Arc::default(), budgets, Compilation::default())
    }

    const fn turn(session: u64) -> Turn {
        Turn { peer: session, session }
    }

    /// Returns the counter of completed pieces of work that never ends by itself.
    fn endless(context: &Arc<Context>, session: u64, done: &Arc<AtomicUsize>) {
        let (context, done) = (Arc::clone(context), Arc::clone(done));
        tokio::spawn(async move {
            let step = move || {
                done.fetch_add(1, Ordering::Relaxed);
                std::thread::yield_now();
                Ok(None::<()>)
            };
            context.in_pieces(turn(session), step).await
        });
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn small_request_runs_while_large_ones_fill_the_lanes() {
        const LANES: u64 = 4;
        let context = context();
        let done: Vec<Arc<AtomicUsize>> = (0..LANES).map(|_| Arc::default()).collect();
        for (session, done) in (1..).zip(&done) {
            endless(&context, session, done);
        }
        while done.iter().any(|done| done.load(Ordering::Relaxed) == 0) {
            tokio::task::yield_now().await;
        }
        // Without turns between pieces this would wait forever.
        for _ in 0..100 {
            assert_eq!(context.blocking(turn(9), || Ok(7)).await, Ok(7));
        }
        // The large ones have their turns as well.
        let before: Vec<usize> = done.iter().map(|done| done.load(Ordering::Relaxed)).collect();
        while done.iter().zip(&before).any(|(done, before)| done.load(Ordering::Relaxed) <= *before)
        {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_launch_that_is_given_up_leaves_its_lane_to_others() {
        let context = context();
        let (end, ended) = std::sync::mpsc::channel::<()>();
        let ended = Arc::new(Mutex::new(ended));
        let begun = Arc::new(AtomicUsize::new(0));
        let hangs = || {
            let (ended, begun) = (Arc::clone(&ended), Arc::clone(&begun));
            move || {
                begun.fetch_add(1, Ordering::Relaxed);
                // Blocks until the other end is dropped.
                let _ = ended.lock().unwrap_or_else(PoisonError::into_inner).recv();
                Ok(())
            }
        };
        let mut hanging = Vec::new();
        for session in 0..LAUNCHERS as u64 {
            let (give_up, given_up) = Promised::coming();
            let (context, work) = (Arc::clone(&context), hangs());
            let launch = async move { context.launching(turn(session), given_up, work).await };
            hanging.push((give_up, tokio::spawn(launch)));
        }
        while begun.load(Ordering::Relaxed) < LAUNCHERS {
            tokio::task::yield_now().await;
        }
        // One more launch waits for a lane, and is given up while it waits.
        let (give_up, given_up) = Promised::coming();
        let own = Arc::clone(&context);
        let waits = tokio::spawn(async move { own.launching(turn(98), given_up, || Ok(())).await });
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        assert!(!waits.is_finished());
        give_up.keep(Ok(()));
        assert_eq!(waits.await.unwrap().unwrap_err().code(), serdes::codec::StatusCode::Cancelled);
        // Each hanging launch gives its lane to another when it is given up.
        for (give_up, launch) in hanging {
            let (_kept, given_up) = Promised::coming();
            give_up.keep(Ok(()));
            assert!(launch.await.unwrap().is_err());
            assert_eq!(context.launching(turn(99), given_up, || Ok(7)).await, Ok(7));
        }
        drop(end);
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn abandoned_work_ends_with_its_current_piece() {
        let context = context();
        let done = Arc::new(AtomicUsize::new(0));
        let (own, counting) = (Arc::clone(&context), Arc::clone(&done));
        let work = tokio::spawn(async move {
            let step = move || {
                counting.fetch_add(1, Ordering::Relaxed);
                Ok(None::<()>)
            };
            own.in_pieces(turn(1), step).await
        });
        while done.load(Ordering::Relaxed) == 0 {
            tokio::task::yield_now().await;
        }
        work.abort();
        assert!(work.await.unwrap_err().is_cancelled());
        // The step is dropped, together with its counter.
        while Arc::strong_count(&done) > 1 {
            tokio::task::yield_now().await;
        }
    }
}
