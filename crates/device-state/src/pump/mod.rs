//! Moves bytes between devices and files, both ways: several device copies run while the bytes of
//! others are summed, written or read.
//!
//! The moved object is [`Memory`]: memory of a device that can be copied in pieces, asynchronously.
//! [`FromDevice`] returns its bytes in sequential buffers that are filled in advance; [`ToDevice`]
//! takes full buffers and returns them when their copies are done. Buffers are reused through a
//! [`Pool`]. Saves, loads, their shards, and transfers between a device and files of tensors are
//! built on these.
//!
//! Does not depend on the meaning of the bytes, nor on their position in a state.

mod buffer;
mod from_device;
mod memory;
mod pjrt;
mod pool;
mod streams;
mod sums;
mod tensors;
#[cfg(test)]
pub(super) mod tests;
mod to_device;

pub(super) use buffer::{BUFFER_BYTES, Buffer, Filled, Filling, capacity_at};
pub(super) use from_device::FromDevice;
pub use memory::Contents;
pub(crate) use memory::{Incoming, Memory};
pub(super) use pool::{Pool, PoolError, Returns};
pub(crate) use streams::Streams;
pub(super) use sums::ChunkSums;
pub use tensors::{Download, Downloads, Uploads};
pub(super) use to_device::ToDevice;

/// Maximum number of concurrent copies of one user, in either direction. With buffers of
/// [`BUFFER_BYTES`], 3 was the fastest of the measured values.
pub(super) const IN_FLIGHT: usize = 3;
/// Minimum size in bytes of memory that is copied by a stream; for less, one blocking call costs
/// less than a stream and an event.
pub(super) const STREAMED_FROM: u64 = BUFFER_BYTES as u64;

/// Returns true if there is a second core, so that starting a second thread is worth it.
pub(super) fn has_second_core() -> bool {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get) > 1
}
