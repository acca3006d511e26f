//! The default allocation strategy of RFC #257 and of TensorFlow: best fit with coalescing, over a
//! plug-in's own allocation.
//!
//! A plug-in's `allocate` is made for few, large requests. The allocator requests regions from it
//! and distributes parts of them. A platform that asks for it (`use_bfc_allocator`;
//! `create_allocator` of the RFC, 004:604) gets one for each device, which [`Device::allocate`]
//! uses.
//!
//! The module does not depend on functions of the C API: it requests memory from a device like a
//! program does.

mod allocator;
mod chunks;

pub use allocator::{BfcAllocator, BfcOptions};
pub(super) use allocator::{TakenChunk, WeakBfcAllocator};
