//! Reads and writes files past the system's page cache (`O_DIRECT`), in whole blocks of aligned
//! memory.
//!
//! Data that does not fill a block goes through the cache. If the file system refuses direct I/O,
//! all further data goes through the cache as well, which is not an error: the bytes are the same.
//! This module does not interpret the bytes and does not sync files; the caller does.

mod open;
mod sink;
mod source;
mod stage;

#[cfg(test)]
use open::MIN_BLOCK;
pub use open::StillDirect;
use open::{Access, is_aligned, open_direct, refuses};
pub use sink::DirectSink;
pub use source::DirectSource;
use stage::{STAGE_BYTES, Stage};
