//! Files that appear completely or not at all, and the progress of long work: re-exports from the
//! internal crate `serdes-files` for the functions of this crate.

pub use serdes_files::{
    Cancelled, Durability, EntryKind, FileSystem, Files, LONGEST_STREAM, Phase, Progress,
    ProgressMonitor, ReadAt, Stamp, Tree, remove_leftovers_of, spool,
};
