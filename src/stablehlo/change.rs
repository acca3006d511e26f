//! What is written in another way for an older reader.

use std::collections::BTreeSet;

use super::{StableHloVersion, mesh::ReplicaGroups};

/// How an older version says the same.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// Versions from this one on need no change.
    pub(super) since: StableHloVersion,
    pub(super) what: What,
}

/// What changes in the tables of a file.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// The operation of that number has another name, and one attribute less.
    Rename {
        operation: usize,
        to: &'static str,
        /// Of which properties the attribute at the place is left out.
        properties: BTreeSet<usize>,
        left_out: Option<usize>,
    },
    /// The attribute of that number lists its groups of devices.
    List { attribute: usize, groups: ReplicaGroups },
}
