//! A stream in software: tasks that run in order on a thread of their own, while the caller
//! continues.
//!
//! The module does not depend on devices, memory or the C API. It guarantees: tasks of one queue
//! run one after another, in the order of their submission; a task's effects are visible to every
//! thread that waited for it; after a failure, work is skipped and the failure stays; dropping a
//! queue first runs all submitted tasks.
//!
//! The thread starts with the first task that needs it and sleeps while there is nothing to do, so
//! that an idle queue costs no time. A short task on an idle queue runs on the caller's thread:
//! waking another thread takes longer than copying a few kilobytes, and the caller sees no
//! difference.

use std::collections::VecDeque;

use crate::{
    Result, Status,
    panic::contain,
    sync::{Arc, Condvar, Mutex, lock, thread, wait},
};

/// The stack size of a queue's thread, in bytes. Host callbacks run there, so it is no smaller than
/// programs expect of a small thread.
const STACK_BYTES: usize = 1 << 20;

/// A task. It gets the outcome of the queue's earlier work, and returns its own.
type Task = Box<dyn FnOnce(Result<()>) -> Result<()> + Send>;

/// The threads that a task may run on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RunsOn {
    /// On the caller's thread if the queue is idle, for short tasks that never block.
    AnyThread,
    /// On the queue's thread.
    Worker,
}

/// A queue of tasks.
pub(crate) struct Queue {
    inner: Arc<QueueInner>,
}

struct QueueInner {
    state: Mutex<QueueState>,
    /// Signalled when the thread has work.
    work: Condvar,
    /// Signalled when a task is done and a thread waits.
    done: Condvar,
}

struct QueueState {
    tasks: VecDeque<Task>,
    /// The number of tasks submitted so far.
    submitted: u64,
    /// The number of tasks done so far. Tasks run in order, so this identifies them.
    completed: u64,
    /// True while a task runs, on any thread.
    busy: bool,
    /// The number of threads in `wait`.
    waiters: usize,
    closing: bool,
    failure: Option<Status>,
    worker: Option<thread::JoinHandle<()>>,
}

impl QueueState {
    fn outcome(&self) -> Result<()> {
        self.failure.clone().map_or(Ok(()), Err)
    }
}

impl QueueInner {
    fn new() -> Self {
        Self {
            state: Mutex::new(QueueState {
                tasks: VecDeque::new(),
                submitted: 0,
                completed: 0,
                busy: false,
                waiters: 0,
                closing: false,
                failure: None,
                worker: None,
            }),
            work: Condvar::new(),
            done: Condvar::new(),
        }
    }

    /// Runs the queue's thread: takes tasks in order until the queue closes and none is left.
    fn work(&self) {
        let mut state = lock(&self.state);
        loop {
            if state.busy || state.tasks.is_empty() {
                if state.closing && !state.busy {
                    return;
                }
                state = wait(&self.work, state);
                continue;
            }
            let Some(task) = state.tasks.pop_front() else { continue };
            state.busy = true;
            let before = state.outcome();
            drop(state);
            let result = contain(|| task(before));
            state = lock(&self.state);
            self.finish(&mut state, result);
        }
    }

    /// Records that the running task is done.
    fn finish(&self, state: &mut QueueState, result: Result<()>) {
        state.busy = false;
        state.completed += 1;
        if let (Err(failure), None) = (result, &state.failure) {
            state.failure = Some(failure);
        }
        if state.waiters > 0 {
            self.done.notify_all();
        }
    }

    /// Waits until all tasks submitted before the call are done, and returns the queue's outcome.
    ///
    /// # Errors
    /// The queue's failure; `FAILED_PRECONDITION` on the queue's own thread, which would wait for
    /// itself.
    fn wait(&self) -> Result<()> {
        let mut state = lock(&self.state);
        let last = state.submitted;
        if state.completed < last {
            if state
                .worker
                .as_ref()
                .is_some_and(|worker| worker.thread().id() == thread::current().id())
            {
                return Err(Status::failed_precondition(
                    "a host callback waits for the stream that runs it; wait from another thread",
                ));
            }
            state.waiters += 1;
            while state.completed < last {
                state = wait(&self.done, state);
            }
            state.waiters -= 1;
        }
        state.outcome()
    }
}

impl Queue {
    pub(crate) fn new() -> Self {
        Self { inner: Arc::new(QueueInner::new()) }
    }

    /// Submits a task that runs even after a failure, which it gets as its argument.
    ///
    /// # Errors
    /// `RESOURCE_EXHAUSTED` if no thread can be created; the task is dropped in that case.
    pub(crate) fn submit_always(
        &self,
        runs_on: RunsOn,
        task: impl FnOnce(Result<()>) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        let mut state = lock(&self.inner.state);
        if runs_on == RunsOn::AnyThread && !state.busy && state.tasks.is_empty() {
            state.busy = true;
            state.submitted += 1;
            let before = state.outcome();
            drop(state);
            let result = contain(|| task(before));
            let mut state = lock(&self.inner.state);
            self.inner.finish(&mut state, result);
            if !state.tasks.is_empty() || state.closing {
                self.inner.work.notify_one();
            }
            return Ok(());
        }
        if state.worker.is_none() {
            let inner = Arc::clone(&self.inner);
            let worker = thread::Builder::new()
                .name("serdes-stream".to_owned())
                .stack_size(STACK_BYTES)
                .spawn(move || inner.work())
                .map_err(|error| {
                    Status::resource_exhausted(format!("no thread for a stream: {error}"))
                })?;
            state.worker = Some(worker);
        }
        state.tasks.push_back(Box::new(task));
        state.submitted += 1;
        drop(state);
        self.inner.work.notify_one();
        Ok(())
    }

    /// Submits work, which is skipped after a failure.
    ///
    /// # Errors
    /// As [`Queue::submit_always`].
    pub(crate) fn submit(
        &self,
        runs_on: RunsOn,
        work: impl FnOnce() -> Result<()> + Send + 'static,
    ) -> Result<()> {
        self.submit_always(runs_on, |before| before.and_then(|()| work()))
    }

    /// Returns a fence that is passed when everything submitted so far is done.
    ///
    /// # Errors
    /// As [`Queue::submit_always`].
    pub(crate) fn fence(&self) -> Result<Arc<Fence>> {
        let fence = Arc::new(Fence::new());
        let passed = Arc::clone(&fence);
        self.submit_always(RunsOn::AnyThread, move |before| {
            passed.pass(before);
            Ok(())
        })?;
        Ok(fence)
    }

    /// Delays all tasks that are submitted later until the fence is passed. A failure before the
    /// fence becomes this queue's, because the following work would read data that was never
    /// written.
    ///
    /// # Errors
    /// As [`Queue::submit_always`].
    pub(crate) fn wait_for(&self, fence: Arc<Fence>) -> Result<()> {
        let runs_on = match fence.outcome() {
            Some(Ok(())) => return Ok(()),
            Some(Err(_)) => RunsOn::AnyThread,
            None => RunsOn::Worker,
        };
        self.submit(runs_on, move || {
            fence
                .wait()
                .map_err(|failure| failure.context("work that this stream waits for failed"))
        })
    }

    /// Waits until everything submitted so far is done.
    ///
    /// # Errors
    /// The queue's failure; `FAILED_PRECONDITION` on the queue's own thread, which would wait for
    /// itself.
    pub(crate) fn wait(&self) -> Result<()> {
        self.inner.wait()
    }

    /// Returns the state of the queue, without waiting.
    ///
    /// # Errors
    /// The queue's failure.
    pub(crate) fn outcome(&self) -> Result<()> {
        lock(&self.inner.state).outcome()
    }

    /// Returns a handle that waits for the queue without keeping it alive.
    pub(crate) fn monitor(&self) -> QueueWatch {
        QueueWatch { inner: Arc::clone(&self.inner) }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        let mut state = lock(&self.inner.state);
        state.closing = true;
        let worker = state.worker.take();
        drop(state);
        self.inner.work.notify_one();
        if let Some(worker) = worker
            // A host callback may destroy the stream that runs it; the thread then ends by itself.
            && worker.thread().id() != thread::current().id()
        {
            // Tasks catch panics, so the thread does not panic.
            let _ = worker.join();
        }
    }
}

/// A handle that waits for a queue, which may be gone.
pub(crate) struct QueueWatch {
    inner: Arc<QueueInner>,
}

impl QueueWatch {
    /// Returns another handle of the same queue.
    pub(crate) fn share(&self) -> Self {
        Self { inner: Arc::clone(&self.inner) }
    }

    /// Like [`Queue::wait`].
    ///
    /// # Errors
    /// As [`Queue::wait`].
    pub(crate) fn wait(&self) -> Result<()> {
        self.inner.wait()
    }

    /// Returns true if the queue is gone.
    pub(crate) fn is_gone(&self) -> bool {
        lock(&self.inner.state).closing
    }
}

/// A point in a queue that is passed once.
pub(crate) struct Fence {
    outcome: Mutex<Option<Result<()>>>,
    passed: Condvar,
}

impl Fence {
    fn new() -> Self {
        Self { outcome: Mutex::new(None), passed: Condvar::new() }
    }

    fn pass(&self, outcome: Result<()>) {
        *lock(&self.outcome) = Some(outcome);
        self.passed.notify_all();
    }

    /// Returns the outcome of the work before the fence, if it is done.
    pub(crate) fn outcome(&self) -> Option<Result<()>> {
        lock(&self.outcome).clone()
    }

    /// Waits for the work before the fence.
    ///
    /// # Errors
    /// The failure of that work.
    pub(crate) fn wait(&self) -> Result<()> {
        let mut outcome = lock(&self.outcome);
        loop {
            match &*outcome {
                Some(outcome) => return outcome.clone(),
                None => outcome = wait(&self.passed, outcome),
            }
        }
    }
}

#[cfg(test)]
mod tests;
