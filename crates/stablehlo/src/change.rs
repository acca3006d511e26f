//! Changes to a program's bytes for an older reader.

use std::collections::BTreeSet;

use super::{StableHloVersion, mesh::ReplicaGroups, older::Older};

/// A change by which an older version expresses the same.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// Versions from this one on need no change.
    pub(super) since: StableHloVersion,
    pub(super) what: What,
}

/// The change in the tables of a file.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// The operation of that number has another name, and fewer attributes.
    Rename {
        operation: usize,
        to: &'static Older,
        /// Indices of its properties.
        properties: BTreeSet<usize>,
    },
    /// The attribute of that number lists its groups of devices.
    List { attribute: usize, groups: ReplicaGroups },
    /// The sorts with the properties of that number keep the order of what is equal.
    Stable { properties: usize },
}
