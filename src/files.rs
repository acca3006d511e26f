//! Files: read at any position, past the system's cache or through it, appearing whole or not at all;
//! and the progress of long work.
//!
//! The code is the crate `serdes-files`; programs get from here what they need of it. This room must
//! never know what the bytes mean.

pub use serdes_files::{
    Cancelled, Durability, EntryKind, FileSystem, Files, LONGEST_STREAM, Phase, Progress, ReadAt,
    Stamp, Tree, Watch, remove_leftovers_of, spool,
};

pub(crate) use serdes_files::*;

#[cfg(test)]
pub(crate) mod tests {
    pub(crate) use serdes_testkit::noise::noise;
}
