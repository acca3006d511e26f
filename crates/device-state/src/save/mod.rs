//! Writes states: moves the bytes of added arrays through the pump into a file, a part or a stream.
//!
//! [`Writer`] ensures the order: an array is started, each piece of it is started, gets its data
//! and is ended. Whole arrays and shards use these steps. Does not depend on the kind of store.

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
