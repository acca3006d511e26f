//! Files: read at any offset, written with or without the page cache of the system (direct I/O),
//! and replaced atomically.
//!
//! Bytes go into a partial file beside the target, which only its owner can read; at the end it
//! gets the attributes of the target (mode, owner, group, extended attributes) and then its name.
//! The owner of a partial file holds a lock on it for its whole life, so that the next save can
//! tell leftovers of dead processes from files in use. A [`ProgressMonitor`] reports the progress
//! of long work, and can cancel it.
//!
//! This crate does not interpret the bytes. It never opens an entry that it did not create: links,
//! pipes and other users' files with the name of a partial file stay as they are.

#![cfg_attr(docsrs, feature(doc_cfg))]
#![forbid(unsafe_code)]
// Files and stores must not make the crate panic: each exception states its reason.
#![cfg_attr(
    not(test),
    deny(
        clippy::expect_used,
        clippy::get_unwrap,
        clippy::indexing_slicing,
        clippy::panic,
        clippy::string_slice,
        clippy::unreachable,
        clippy::unwrap_used
    )
)]

mod attributes;
mod crc32c;
mod direct;
mod durability;
mod error;
mod file_sink;
#[cfg(feature = "object_store")]
pub mod object;
mod partial;
mod place;
mod prefetch;
mod previous;
mod progress_monitor;
pub mod read_at;
mod replacement;
mod stamp;
#[cfg(test)]
mod tests;
mod together;
mod tree;
mod turn;

pub use crc32c::{Crc32c, combine, crc32c};
pub use direct::{DirectSink, DirectSource, StillDirect};
pub use durability::{Durability, sync_directory, sync_watched};
pub use error::Error;
pub use file_sink::FileSink;
pub use partial::{dead_partials, remove_if_dead, remove_leftovers_of, target_of};
pub use place::resolve;
pub use prefetch::Prefetch;
pub use progress_monitor::{Cancelled, Phase, Progress, ProgressMonitor};
pub use read_at::{LONGEST_STREAM, ReadAt, spool};
pub use replacement::Replacement;
pub use stamp::Stamp;
pub use together::open_together;
pub use tree::{EntryKind, FileSystem, Files, Tree};
pub use turn::Turn;
