//! A device and the objects on it: memory, streams, events, timers, transfers, host functions.
//!
//! Handles own the objects that they depend on, so nothing can be used after it was destroyed, or
//! destroyed while a device uses it. Each kind of object defines its own constructor, as a method
//! of [`Device`]. The device does not depend on these objects, except for its memory, which an
//! allocator of the device distributes. The module does not depend on a layout of the C API: it
//! calls functions in the fields of the newest one.

mod copies;
mod description;
mod event;
mod handle;
mod host_callback;
mod host_memory;
mod live_ranges;
mod memory;
mod pending_callback;
mod stream;
mod stream_work;
mod timer;
mod transfer;

pub use description::{AllocatorStats, DeviceDescription, MemoryUsage};
pub use event::{Event, EventStatus};
pub use handle::Device;
pub use host_callback::HostCallback;
pub use host_memory::{HostMemory, UnifiedMemory};
pub use memory::DeviceMemory;
pub use stream::Stream;
pub use timer::Timer;
pub use transfer::Transfer;

pub(super) use handle::DeviceInner;
#[cfg(feature = "conformance")]
pub(super) use {handle::Strategy, memory::host_size, stream_work::Kept};
