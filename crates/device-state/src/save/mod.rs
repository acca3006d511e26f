//! Into a state: arrays as they are added, their bytes through the pump into a file, a part or a
//! stream.
//!
//! [`Writer`] keeps the order of things: an array is begun, each piece of it is begun, gets its
//! data and is ended. Whole arrays and shards are two users of these steps. This part must never
//! know what kind of store the bytes go to.

mod create;
mod deferred;
mod output;
mod parallel;
mod shards;
mod staging;
#[cfg(test)]
mod tests;
mod whole;
mod writer;

pub use deferred::DeferredBytes;
pub(super) use output::Sink;
pub use shards::Shard;
pub use writer::{Writer, Written};
