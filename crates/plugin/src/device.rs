//! The traits that an author implements.
//!
//! A device that only holds memory implements [`MemoryDevice`](crate::MemoryDevice), which is safe,
//! and gets the rest from [`Queued`](crate::Queued). A device with its own streams implements
//! [`Device`].

use std::{ffi::c_void, ptr::NonNull, sync::Arc};

use serdes_abi::SE_EventStatus;

use crate::{
    Result, Status,
    callback::HostCallback,
    counters::Counters,
    memory::{
        Allocation, AllocationRequest, AllocatorStats, DeviceMemory, HostSource, HostTarget,
        MemoryUsage,
    },
};

/// A plug-in: a platform with a number of devices of one type.
pub trait Platform: Send + Sync + Sized + 'static {
    /// Its devices.
    type Device: Device;

    /// Returns the platform's name: capital letters and underscores, beginning with a letter. Each
    /// plug-in of a process has a different name.
    fn name(&self) -> &str;

    /// Returns the type of the devices, with the same rule: users write it in `/device:TYPE:0`.
    /// TensorFlow never shows devices of type `CPU`.
    fn device_type(&self) -> &str {
        self.name()
    }

    /// Returns the current number of devices.
    ///
    /// # Errors
    /// Any error that prevents counting the devices.
    fn device_count(&self) -> Result<u32> {
        Ok(1)
    }

    /// Opens a device. A host may open one more than once.
    ///
    /// # Errors
    /// Any error that prevents opening the device.
    fn create_device(&self, ordinal: u32) -> Result<Self::Device>;

    /// Returns the settings of the platform as a whole.
    fn settings(&self) -> Settings {
        Settings::default()
    }
}

/// Settings of a platform as a whole.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// True if host and devices share addresses, so that [`Device::allocate_unified`] works.
    pub unified_memory: bool,
    /// The side that manages device memory.
    pub allocator: Allocator,
    /// The layout of the C structs. `None` means the layout that the host's sizes indicate, or the
    /// newest one if they indicate none.
    pub layout: Option<&'static serdes_abi::Layout>,
    /// Counters of the objects that the host creates and destroys, shared with the author.
    pub counters: Arc<Counters>,
}

/// The side that manages device memory.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Allocator {
    /// The plug-in: each allocation of the host reaches [`Device::allocate`]. RFC #257 calls this a
    /// custom allocator.
    #[default]
    Custom,
    /// The host, by best fit with coalescing over a few large allocations.
    BestFit {
        /// True if the host should take memory on demand instead of nearly all of it at the first
        /// use.
        growth: bool,
    },
}

/// The description of a device. Texts end at their first NUL byte.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Description {
    /// Name of the hardware.
    pub hardware_name: Option<String>,
    /// Name of the vendor.
    pub vendor: Option<String>,
    /// PCI bus id, in the form `0000:00:00.0`.
    pub pci_bus_id: Option<String>,
    /// The NUMA node closest to the device.
    pub numa_node: Option<u32>,
    /// Bandwidth of the device's memory, in bytes per second.
    pub memory_bandwidth: Option<u64>,
    /// Estimated billions of floating-point operations per second.
    pub gflops: Option<f64>,
}

/// The state of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventState {
    /// The work before the event is not done.
    Pending,
    /// The work before the event is done, or the event was never recorded.
    Complete,
    /// The work before the event failed.
    Failed,
}

impl From<EventState> for SE_EventStatus {
    fn from(state: EventState) -> Self {
        match state {
            EventState::Pending => Self::PENDING,
            EventState::Complete => Self::COMPLETE,
            EventState::Failed => Self::ERROR,
        }
    }
}

/// A device with its own streams: every function of the C API, as Rust methods.
///
/// Hosts call all methods from any thread at any time. Destroying a stream, an event or a timer
/// drops it; a stream finishes its work first. A panic in a method becomes a status of the call.
///
/// # Safety
/// The implementation accesses the memory behind [`DeviceMemory`], [`HostSource`] and
/// [`HostTarget`] only until the operation that got them is done: until a synchronous call returns,
/// and for an asynchronous one until the stream reports it done (to a wait for the stream or the
/// device, to an event, or to a stream that depends on it).
pub unsafe trait Device: Send + Sync + Sized + 'static {
    /// A stream: work that is done in order.
    type Stream: Send + Sync + 'static;
    /// A point in a stream.
    type Event: Send + Sync + 'static;
    /// Two points in a stream, and the time between them.
    type Timer: Send + Sync + 'static;

    /// Returns the description of the device. Called once, when the device is opened.
    fn description(&self) -> Description {
        Description::default()
    }

    /// Allocates device memory. `None` means that there is not enough left.
    fn allocate(&self, request: AllocationRequest) -> Option<Allocation>;
    /// Frees device memory.
    fn deallocate(&self, memory: DeviceMemory);
    /// Allocates host memory from and to which the device copies at full speed. `None` means that
    /// there is not enough left.
    fn allocate_host(&self, size: u64) -> Option<NonNull<c_void>>;
    /// Frees host memory.
    ///
    /// # Safety
    /// The address comes from [`Device::allocate_host`] of this device, and nothing uses the memory
    /// any more.
    unsafe fn deallocate_host(&self, start: NonNull<c_void>);
    /// Allocates memory that host and device access at the same address. `None` means that it is
    /// not supported, or not enough is left.
    fn allocate_unified(&self, size: u64) -> Option<NonNull<c_void>> {
        let _ = size;
        None
    }
    /// Frees unified memory.
    ///
    /// # Safety
    /// The address comes from [`Device::allocate_unified`] of this device, and nothing uses the
    /// memory any more.
    unsafe fn deallocate_unified(&self, start: NonNull<c_void>) {
        let _ = start;
    }
    /// Returns the statistics of the allocator, if it has any.
    fn allocator_stats(&self) -> Option<AllocatorStats> {
        None
    }
    /// Returns the free and the total memory. TensorFlow does not use a device that returns `None`.
    fn memory_usage(&self) -> Option<MemoryUsage>;

    /// Creates a stream.
    ///
    /// # Errors
    /// Any error that prevents it.
    fn create_stream(&self) -> Result<Self::Stream>;
    /// Delays all work that is put into `dependent` from now on until the present work of `other`
    /// is done.
    ///
    /// # Errors
    /// Any error that prevents it.
    fn create_stream_dependency(
        &self,
        dependent: &Self::Stream,
        other: &Self::Stream,
    ) -> Result<()>;
    /// Returns the state of the stream's work so far, without waiting.
    ///
    /// # Errors
    /// The stream's first failure.
    fn stream_status(&self, stream: &Self::Stream) -> Result<()>;

    /// Creates an event.
    ///
    /// # Errors
    /// Any error that prevents it.
    fn create_event(&self) -> Result<Self::Event>;
    /// Returns the state of the event.
    fn event_state(&self, event: &Self::Event) -> EventState;
    /// Records the event after the present work of the stream. This replaces an earlier recording.
    ///
    /// # Errors
    /// Any error that prevents it.
    fn record_event(&self, stream: &Self::Stream, event: &Self::Event) -> Result<()>;
    /// Delays all work that is put into the stream from now on until the event is complete.
    ///
    /// # Errors
    /// Any error that prevents it.
    fn wait_for_event(&self, stream: &Self::Stream, event: &Self::Event) -> Result<()>;
    /// Waits for the event on the calling thread.
    ///
    /// # Errors
    /// The failure of the work before it.
    fn block_host_for_event(&self, event: &Self::Event) -> Result<()>;

    /// Creates a timer.
    ///
    /// # Errors
    /// Any error that prevents it.
    fn create_timer(&self) -> Result<Self::Timer>;
    /// Enqueues the start of the timer.
    ///
    /// # Errors
    /// Any error that prevents it.
    fn start_timer(&self, stream: &Self::Stream, timer: &Self::Timer) -> Result<()>;
    /// Enqueues the stop of the timer.
    ///
    /// # Errors
    /// Any error that prevents it.
    fn stop_timer(&self, stream: &Self::Stream, timer: &Self::Timer) -> Result<()>;
    /// Returns the nanoseconds between start and stop. Waits for the stop if it is enqueued, and
    /// returns 0 if the timer never ran.
    fn nanoseconds(timer: &Self::Timer) -> u64;

    /// Enqueues a copy from device to host. Both sides have the same size.
    ///
    /// # Errors
    /// Any error that prevents enqueuing it.
    fn memcpy_dtoh(
        &self,
        stream: &Self::Stream,
        target: HostTarget,
        source: DeviceMemory,
    ) -> Result<()>;
    /// Enqueues a copy from host to device. Both sides have the same size.
    ///
    /// # Errors
    /// Any error that prevents enqueuing it.
    fn memcpy_htod(
        &self,
        stream: &Self::Stream,
        target: DeviceMemory,
        source: HostSource,
    ) -> Result<()>;
    /// Enqueues a copy between device memories, which may belong to two devices of the platform.
    /// Both sides have the same size.
    ///
    /// # Errors
    /// Any error that prevents enqueuing it.
    fn memcpy_dtod(
        &self,
        stream: &Self::Stream,
        target: DeviceMemory,
        source: DeviceMemory,
    ) -> Result<()>;
    /// Copies from device to host, and returns when the copy is done.
    ///
    /// # Errors
    /// Any error that prevents it.
    fn sync_memcpy_dtoh(&self, target: HostTarget, source: DeviceMemory) -> Result<()>;
    /// Copies from host to device, and returns when the copy is done.
    ///
    /// # Errors
    /// Any error that prevents it.
    fn sync_memcpy_htod(&self, target: DeviceMemory, source: HostSource) -> Result<()>;
    /// Copies between device memories, and returns when the copy is done.
    ///
    /// # Errors
    /// Any error that prevents it.
    fn sync_memcpy_dtod(&self, target: DeviceMemory, source: DeviceMemory) -> Result<()>;
    /// Enqueues filling memory with the repeated pattern, which is truncated at the end. Also
    /// implements `mem_zero` and `memset` of the C API.
    ///
    /// # Errors
    /// Any error that prevents enqueuing it.
    fn memset32(&self, stream: &Self::Stream, target: DeviceMemory, pattern: [u8; 4])
    -> Result<()>;

    /// Waits on the calling thread for the present work of the stream.
    ///
    /// # Errors
    /// The stream's first failure.
    fn block_host_until_done(&self, stream: &Self::Stream) -> Result<()>;
    /// Waits on the calling thread for the present work of all streams of the device.
    ///
    /// # Errors
    /// The first failure of a stream of the device.
    fn synchronize_all_activity(&self) -> Result<()>;
    /// Enqueues a function of the host, which must run exactly once, on any thread but this one.
    ///
    /// # Errors
    /// Any error that prevents enqueuing it; the function must not have run in that case.
    fn host_callback(&self, stream: &Self::Stream, callback: HostCallback) -> Result<()> {
        let _ = (stream, callback);
        Err(Status::unimplemented("this device runs no functions of the host"))
    }
}
