//! Attributes that a release does not know and forgets, although their values matter.

use std::collections::BTreeMap;

use super::operations::KnownOperation;
use crate::{
    attributes::Attributes,
    node_rules::{LostAttribute, lost_attributes},
    release::{ReleaseId, Releases},
};

/// The attributes of nodes of an operation that releases ignore.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct DroppedSet {
    operation: u32,
    pub(super) attributes: Box<[DroppedBy]>,
}

/// An attribute and the releases that forget it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct DroppedBy {
    pub(super) attribute: &'static str,
    pub(super) since: Option<&'static str>,
    pub(super) releases: Vec<ReleaseId>,
}

/// The attributes among these that releases ignore; none for an unknown operation.
pub(super) fn of(
    operation: u32,
    known: &KnownOperation<'_>,
    releases: Releases<'_>,
    attributes: &Attributes,
) -> DroppedSet {
    let mut found: BTreeMap<&'static str, DroppedBy> = BTreeMap::new();
    let mut lost: Vec<LostAttribute> = Vec::new();
    for release in releases.ids() {
        let Some(definition) = known.operation(release).filter(|_| !known.is_function()) else {
            continue;
        };
        // The same definition as in the release before loses the same.
        if !release.before().is_some_and(|before| known.is_same(before, release)) {
            lost = lost_attributes(definition, attributes);
        }
        for LostAttribute { attribute, since, .. } in &lost {
            let (attribute, since) = (*attribute, *since);
            let new = DroppedBy { attribute, since, releases: Vec::new() };
            found.entry(attribute).or_insert(new).releases.push(release);
        }
    }
    if found.is_empty() {
        return DroppedSet::default();
    }
    DroppedSet { operation, attributes: found.into_values().collect() }
}
