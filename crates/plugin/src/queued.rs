//! Streams, events and timers in software, for devices that have none.

use std::{
    ffi::c_void,
    ptr::NonNull,
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use crate::{
    Result, Status,
    callback::HostCallback,
    device::{Description, Device, EventState, Platform},
    memory::{
        Allocation, AllocationRequest, AllocatorStats, DeviceMemory, HostSource, HostTarget,
        MemoryUsage,
    },
    memory_device::MemoryDevice,
    queue::{Fence, Queue, QueueWatch, RunsOn},
};

/// The largest copy or fill, in bytes, that runs on the caller's thread if the stream is idle:
/// waking another thread takes longer. Smaller under Miri, which is slow.
const INLINE_BYTES: u64 = if cfg!(miri) { 1 << 9 } else { 32 << 10 };

/// A [`MemoryDevice`] with streams. Each stream has its own thread while it has work, so an
/// asynchronous call returns before the work is done.
pub struct Queued<M> {
    memory: Arc<M>,
    streams: Mutex<Vec<QueueWatch>>,
}

/// A platform with one [`MemoryDevice`], for plug-ins that need no [`Platform`] of their own.
pub struct SingleDevice<M> {
    name: &'static str,
    make: fn() -> M,
}

impl<M: MemoryDevice> SingleDevice<M> {
    /// Creates a platform with this name, which is also the type of its device (see
    /// [`Platform::name`]). `make` opens the device, each time a host asks for it.
    #[must_use]
    pub fn new(name: &'static str, make: fn() -> M) -> Self {
        Self { name, make }
    }
}

impl<M: MemoryDevice> Platform for SingleDevice<M> {
    type Device = Queued<M>;

    fn name(&self) -> &str {
        self.name
    }

    fn create_device(&self, _ordinal: u32) -> Result<Self::Device> {
        Ok(Queued::new((self.make)()))
    }
}

/// A stream of a [`Queued`] device.
pub struct QueuedStream {
    queue: Queue,
}

/// An event of a [`Queued`] device.
pub struct QueuedEvent {
    /// The fence of its last recording.
    fence: Mutex<Option<crate::sync::Arc<Fence>>>,
}

/// A timer of a [`Queued`] device.
pub struct QueuedTimer {
    times: Arc<Mutex<Times>>,
    /// The fence of its last stop.
    stop: Mutex<Option<crate::sync::Arc<Fence>>>,
}

#[derive(Clone, Copy, Default)]
struct Times {
    start: Option<Instant>,
    stop: Option<Instant>,
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<M: MemoryDevice> Queued<M> {
    /// Adds streams to the device.
    #[must_use]
    pub fn new(memory: M) -> Self {
        Self { memory: Arc::new(memory), streams: Mutex::new(Vec::new()) }
    }

    /// Returns the underlying device.
    #[must_use]
    pub fn memory(&self) -> &M {
        &self.memory
    }

    fn enqueue(
        &self,
        stream: &QueuedStream,
        size: u64,
        work: impl FnOnce(&M) -> Result<()> + Send + 'static,
    ) -> Result<()> {
        if size == 0 {
            return Ok(());
        }
        let runs_on = if size <= INLINE_BYTES { RunsOn::AnyThread } else { RunsOn::Worker };
        let memory = Arc::clone(&self.memory);
        stream.queue.submit(runs_on, move || work(&memory))
    }
}

// SAFETY: the task of an asynchronous operation owns its `DeviceMemory`, `HostSource` and
// `HostTarget`, and lends them to the memory device for the call: they are dropped when the task is
// done, before the queue reports it. A synchronous operation lends them until it returns. The
// values cannot be copied, so the memory device cannot keep them.
unsafe impl<M: MemoryDevice> Device for Queued<M> {
    type Stream = QueuedStream;
    type Event = QueuedEvent;
    type Timer = QueuedTimer;

    fn description(&self) -> Description {
        self.memory.description()
    }

    fn allocate(&self, request: AllocationRequest) -> Option<Allocation> {
        self.memory.allocate(request)
    }

    fn deallocate(&self, memory: DeviceMemory) {
        self.memory.deallocate(memory);
    }

    fn allocate_host(&self, size: u64) -> Option<NonNull<c_void>> {
        self.memory.allocate_host(size)
    }

    unsafe fn deallocate_host(&self, start: NonNull<c_void>) {
        // SAFETY: the caller's promise; the address came from the same device's `allocate_host`.
        unsafe { self.memory.deallocate_host(start) };
    }

    fn allocate_unified(&self, size: u64) -> Option<NonNull<c_void>> {
        self.memory.allocate_unified(size)
    }

    unsafe fn deallocate_unified(&self, start: NonNull<c_void>) {
        // SAFETY: the caller's promise; the address came from the same device's `allocate_unified`.
        unsafe { self.memory.deallocate_unified(start) };
    }

    fn allocator_stats(&self) -> Option<AllocatorStats> {
        self.memory.allocator_stats()
    }

    fn memory_usage(&self) -> Option<MemoryUsage> {
        self.memory.memory_usage()
    }

    fn create_stream(&self) -> Result<QueuedStream> {
        let queue = Queue::new();
        let mut streams = lock(&self.streams);
        streams.retain(|stream| !stream.is_gone());
        streams.push(queue.monitor());
        Ok(QueuedStream { queue })
    }

    fn create_stream_dependency(
        &self,
        dependent: &QueuedStream,
        other: &QueuedStream,
    ) -> Result<()> {
        if std::ptr::eq(dependent, other) {
            // A stream's own work is in order already.
            return Ok(());
        }
        dependent.queue.wait_for(other.queue.fence()?)
    }

    fn stream_status(&self, stream: &QueuedStream) -> Result<()> {
        stream.queue.outcome()
    }

    fn create_event(&self) -> Result<QueuedEvent> {
        Ok(QueuedEvent { fence: Mutex::new(None) })
    }

    fn event_state(&self, event: &QueuedEvent) -> EventState {
        match lock(&event.fence).as_ref().map(|fence| fence.outcome()) {
            None | Some(Some(Ok(()))) => EventState::Complete,
            Some(None) => EventState::Pending,
            Some(Some(Err(_))) => EventState::Failed,
        }
    }

    fn record_event(&self, stream: &QueuedStream, event: &QueuedEvent) -> Result<()> {
        // The lock is held while the fence is created, so that if two threads record at once, the
        // later one wins in both places.
        let mut fence = lock(&event.fence);
        *fence = Some(stream.queue.fence()?);
        Ok(())
    }

    fn wait_for_event(&self, stream: &QueuedStream, event: &QueuedEvent) -> Result<()> {
        let fence = lock(&event.fence).clone();
        fence.map_or(Ok(()), |fence| stream.queue.wait_for(fence))
    }

    fn block_host_for_event(&self, event: &QueuedEvent) -> Result<()> {
        let fence = lock(&event.fence).clone();
        fence.map_or(Ok(()), |fence| fence.wait())
    }

    fn create_timer(&self) -> Result<QueuedTimer> {
        Ok(QueuedTimer { times: Arc::default(), stop: Mutex::new(None) })
    }

    fn start_timer(&self, stream: &QueuedStream, timer: &QueuedTimer) -> Result<()> {
        let times = Arc::clone(&timer.times);
        stream.queue.submit(RunsOn::AnyThread, move || {
            *lock(&times) = Times { start: Some(Instant::now()), stop: None };
            Ok(())
        })
    }

    fn stop_timer(&self, stream: &QueuedStream, timer: &QueuedTimer) -> Result<()> {
        let times = Arc::clone(&timer.times);
        stream.queue.submit(RunsOn::AnyThread, move || {
            let mut times = lock(&times);
            if times.start.is_none() {
                return Err(Status::failed_precondition(
                    "a timer was stopped that had not been started",
                ));
            }
            times.stop = Some(Instant::now());
            Ok(())
        })?;
        *lock(&timer.stop) = Some(stream.queue.fence()?);
        Ok(())
    }

    fn nanoseconds(timer: &QueuedTimer) -> u64 {
        let stop = lock(&timer.stop).clone();
        if let Some(stop) = stop {
            // The stream reports a failure before the stop; the timer then has no stop, and returns
            // 0.
            let _ = stop.wait();
        }
        let times = *lock(&timer.times);
        match (times.start, times.stop) {
            (Some(start), Some(stop)) => {
                u64::try_from(stop.duration_since(start).as_nanos()).unwrap_or(u64::MAX)
            }
            _ => 0,
        }
    }

    fn memcpy_dtoh(
        &self,
        stream: &QueuedStream,
        mut target: HostTarget,
        source: DeviceMemory,
    ) -> Result<()> {
        self.enqueue(stream, source.size(), move |memory| memory.read(&source, &mut target))
    }

    fn memcpy_htod(
        &self,
        stream: &QueuedStream,
        target: DeviceMemory,
        source: HostSource,
    ) -> Result<()> {
        self.enqueue(stream, target.size(), move |memory| memory.write(&target, &source))
    }

    fn memcpy_dtod(
        &self,
        stream: &QueuedStream,
        target: DeviceMemory,
        source: DeviceMemory,
    ) -> Result<()> {
        self.enqueue(stream, target.size(), move |memory| memory.copy(&target, &source))
    }

    fn sync_memcpy_dtoh(&self, mut target: HostTarget, source: DeviceMemory) -> Result<()> {
        if source.size() == 0 { Ok(()) } else { self.memory.read(&source, &mut target) }
    }

    fn sync_memcpy_htod(&self, target: DeviceMemory, source: HostSource) -> Result<()> {
        if target.size() == 0 { Ok(()) } else { self.memory.write(&target, &source) }
    }

    fn sync_memcpy_dtod(&self, target: DeviceMemory, source: DeviceMemory) -> Result<()> {
        if target.size() == 0 { Ok(()) } else { self.memory.copy(&target, &source) }
    }

    fn memset32(
        &self,
        stream: &QueuedStream,
        target: DeviceMemory,
        pattern: [u8; 4],
    ) -> Result<()> {
        self.enqueue(stream, target.size(), move |memory| memory.fill(&target, pattern))
    }

    fn block_host_until_done(&self, stream: &QueuedStream) -> Result<()> {
        stream.queue.wait()
    }

    fn synchronize_all_activity(&self) -> Result<()> {
        let streams: Vec<QueueWatch> = {
            let mut streams = lock(&self.streams);
            streams.retain(|stream| !stream.is_gone());
            streams.iter().map(QueueWatch::share).collect()
        };
        // Waits for all streams, even if the first ones fail.
        let outcomes: Vec<Result<()>> = streams.iter().map(QueueWatch::wait).collect();
        outcomes.into_iter().collect()
    }

    fn host_callback(&self, stream: &QueuedStream, callback: HostCallback) -> Result<()> {
        // Runs after a failure, too: the host relies on it to free the argument.
        stream.queue.submit_always(RunsOn::Worker, move |_| callback.run())
    }
}

#[cfg(test)]
mod tests;
