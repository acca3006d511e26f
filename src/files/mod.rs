//! Files: read from any place, written past the system's cache or through it, and appearing whole
//! or not at all.
//!
//! Bytes go into a partial file beside the target, which only its owner can read; at the end it
//! gets what the target had (mode, owner, group, extended attributes) and then the target's name.
//! The owner of a partial file holds a lock on it for as long as it lives, so that the next save
//! can tell those of dead owners from those of live ones. What takes long says how far it has come,
//! and may be stopped, by a [`Watch`].
//!
//! This room must never know what the bytes mean, nor follow what it did not make: links, pipes and
//! files of others that have a partial file's name stay as they are.

mod attributes;
#[cfg(feature = "object_store")]
mod changed;
mod crc32c;
#[cfg(feature = "device")]
mod direct;
mod durability;
mod error;
#[cfg(feature = "device")]
mod file_sink;
#[cfg(feature = "object_store")]
pub(crate) mod object;
mod partial;
mod place;
#[cfg(feature = "device")]
mod previous;
pub(crate) mod read_at;
mod replacement;
mod stamp;
mod system_status;
#[cfg(all(test, feature = "device"))]
pub(crate) mod tests;
mod together;
mod tree;
mod turn;
mod watch;

#[cfg(all(feature = "artifact", feature = "object_store"))]
pub(crate) use changed::is_changed;
#[cfg(feature = "object_store")]
pub(crate) use changed::{changed, said};
#[cfg(feature = "artifact")]
pub(crate) use crc32c::combine;
pub(crate) use crc32c::{Crc32c, crc32c};
#[cfg(feature = "device")]
pub(crate) use direct::{DirectSink, DirectSource, StillDirect};
pub use durability::Durability;
pub(crate) use durability::sync_directory;
#[cfg(feature = "device")]
pub(crate) use durability::sync_watched;
pub(crate) use error::Error;
#[cfg(feature = "device")]
pub(crate) use file_sink::FileSink;
#[cfg(feature = "device")]
pub use partial::remove_leftovers_of;
#[cfg(feature = "device")]
pub(crate) use partial::{dead_partials, remove_if_dead, target_of};
#[cfg(feature = "device")]
pub(crate) use place::resolve;
pub use read_at::ReadAt;
#[cfg(feature = "device")]
pub use read_at::{LONGEST_STREAM, spool};
pub(crate) use replacement::Replacement;
pub use stamp::Stamp;
pub(crate) use system_status::status_of;
pub(crate) use together::open_together;
pub use tree::{EntryKind, FileSystem, Files, Tree};
pub(crate) use turn::Turn;
pub use watch::{Cancelled, Phase, Progress, Watch};
