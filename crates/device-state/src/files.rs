//! Files that appear whole or not at all, and the progress of long work: what the functions of this
//! crate take and give of the internal crate `serdes-files`.

pub use serdes_files::{
    Cancelled, Durability, EntryKind, FileSystem, Files, LONGEST_STREAM, Phase, Progress,
    ProgressMonitor, ReadAt, Stamp, Tree, remove_leftovers_of, spool,
};
