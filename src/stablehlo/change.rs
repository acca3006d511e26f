//! Changes to a program's bytes for an older reader.

use std::collections::BTreeSet;

use super::{StableHloVersion, mesh::ReplicaGroups};

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
    /// The operation of that number has another name, and one attribute less.
    Rename {
        operation: usize,
        to: &'static str,
        /// Indices of properties from which the attribute at the place is removed.
        properties: BTreeSet<usize>,
        left_out: Option<usize>,
    },
    /// The attribute of that number lists its groups of devices.
    List { attribute: usize, groups: ReplicaGroups },
}
