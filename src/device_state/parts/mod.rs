//! States that several processes save together: each writes a part of its own, and a merge of the
//! indexes makes a state of them.
//!
//! This part knows where parts lie only through [`PartStore`]; it must never know what stores
//! there are besides the file system, nor talk to other processes.

mod local;
mod merge;
mod save;
mod source;
mod store;

#[cfg(test)]
mod tests;

pub use local::LocalParts;
pub(super) use local::WholeFile;
pub(super) use merge::clean_before;
pub use merge::{Merged, merge, merge_in};
pub use save::{Part, SaveId};
pub(super) use source::{Lost, Parts, Spread};
pub use store::{Commit, PartStore, PendingPart};
