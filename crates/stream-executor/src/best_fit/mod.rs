//! The default allocation strategy of RFC #257 and of TensorFlow: best fit with coalescing, over a
//! plug-in's own allocation.
//!
//! A plug-in's `allocate` is made for few and large requests. The allocator asks it for regions and
//! gives out parts of them. A platform that asks for it (`use_bfc_allocator`; `create_allocator` of
//! the RFC, 004:604) gets one for each device, through which [`Device::allocate`] goes.
//!
//! This folder must never know a function of the C API: it asks a device for memory as a program
//! would.

mod allocator;
mod chunks;

pub use allocator::{BfcAllocator, BfcOptions};
pub(super) use allocator::{TakenChunk, WeakBfcAllocator};
