//! Bytes between devices and files, both ways: several copies of a device are under way while the
//! bytes of others are summed, written or read.
//!
//! What moves here is [`Memory`]: memory of a device that can be copied in pieces, asynchronously.
//! [`FromDevice`] gives its bytes front to back, in buffers that are filled before they are asked
//! for; [`ToDevice`] takes full buffers and gives them back when their copies are done. Buffers go
//! round through a [`Pool`]. Saves, loads, the shards of both, and the way between a device and
//! files of tensors are built of these.
//!
//! This part must never know what the bytes are, nor where in a state they lie.

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

/// Copies that one user has under way at a time, in either direction. With buffers of
/// [`BUFFER_BYTES`], 3 was the fastest of what was measured.
pub(super) const IN_FLIGHT: usize = 3;
/// Memory from this size on, in bytes, is copied by a stream; for less, one call that waits costs
/// less than a stream and an event.
pub(super) const STREAMED_FROM: u64 = BUFFER_BYTES as u64;

/// Returns true if there is a core besides this one, so that starting a second thread is worth it.
pub(super) fn has_second_core() -> bool {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get) > 1
}
