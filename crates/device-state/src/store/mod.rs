//! Storage of states: a file, several files that processes save together, objects of a store.
//!
//! In a save of several processes, each writes its own part, and merging the indexes creates a
//! state. Parts are accessed only through [`PartStore`]; the module does not communicate with other
//! processes, nor depend on devices.

mod commit;
mod local;
mod merge;
mod new_file;
#[cfg(feature = "object_store")]
pub(super) mod object;
mod part;
mod part_store;
mod parts;
mod read_only;
#[cfg(test)]
mod tests;

pub use commit::Commit;
pub use local::LocalParts;
pub(super) use local::WholeFile;
pub(super) use merge::clean_before;
pub use merge::{Merged, discard, merge, merge_in};
pub(super) use new_file::NewFile;
pub use part::{Part, SaveId};
pub use part_store::{PartStore, PendingPart};
pub(super) use parts::{Lost, Parts, Spread};
pub(super) use read_only::ReadOnlyParts;
