//! Changes to a program's bytes for an older reader.

use std::collections::BTreeSet;

use super::{StableHloVersion, mesh::ReplicaGroups, older::Older};

/// A change that expresses the same in an older version.
#[derive(Clone, Debug)]
pub(super) struct Change {
    /// Versions from this one on need no change.
    pub(super) since: StableHloVersion,
    pub(super) what: What,
}

/// The change to the tables of a file.
#[derive(Clone, Debug)]
pub(super) enum What {
    /// The operation with that number is renamed, and loses some attributes.
    Rename {
        operation: usize,
        to: &'static Older,
        /// Indices of its properties.
        properties: BTreeSet<usize>,
    },
    /// The attribute with that number becomes a list of its groups of devices.
    List { attribute: usize, groups: ReplicaGroups },
    /// The sorts with the properties of that number become stable.
    Stable { properties: usize },
}
