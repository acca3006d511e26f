//! Files past the system's page cache (`O_DIRECT`), in whole blocks of aligned memory.
//!
//! Data that fills no block goes through the cache, and so does everything from the moment at which
//! the file system refuses, which is no failure: the bytes are the same either way. This part must
//! never know what they mean, nor decide when they are safe: the owner of a file syncs it.

mod open;
mod sink;
mod source;
mod stage;

#[cfg(test)]
use open::LEAST_BLOCK;
pub use open::StillDirect;
use open::{Way, is_aligned, open_direct, refuses};
pub use sink::DirectSink;
pub use source::DirectSource;
use stage::{STAGE_BYTES, Stage};
