//! Attributes that a release does not know and ignores, although their values matter.

use std::collections::BTreeMap;

use super::operations::KnownOperation;
use crate::{
    attributes::Attributes,
    node_rules::{UnknownAttribute, unknown_attributes},
    release::{ReleaseId, Releases},
};

/// The attributes of nodes of an operation that releases ignore.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct IgnoredSet {
    operation: u32,
    pub(super) attributes: Box<[IgnoredBy]>,
}

/// An attribute and the releases that ignore it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct IgnoredBy {
    pub(super) attribute: &'static str,
    pub(super) since: Option<&'static str>,
    pub(super) releases: Vec<ReleaseId>,
}

/// Returns the attributes among these that releases ignore; none for an unknown operation.
pub(super) fn of(
    operation: u32,
    known: &KnownOperation<'_>,
    releases: Releases<'_>,
    attributes: &Attributes,
) -> IgnoredSet {
    let mut found: BTreeMap<&'static str, IgnoredBy> = BTreeMap::new();
    let mut unknown: Vec<UnknownAttribute> = Vec::new();
    for release in releases.ids() {
        let Some(definition) = known.operation(release).filter(|_| !known.is_function()) else {
            continue;
        };
        // A release with the same definition as its predecessor ignores the same attributes.
        if !release.before().is_some_and(|before| known.is_same(before, release)) {
            unknown = unknown_attributes(definition, attributes);
        }
        for UnknownAttribute { attribute, since, .. } in &unknown {
            let (attribute, since) = (*attribute, *since);
            let new = IgnoredBy { attribute, since, releases: Vec::new() };
            found.entry(attribute).or_insert(new).releases.push(release);
        }
    }
    if found.is_empty() {
        return IgnoredSet::default();
    }
    IgnoredSet { operation, attributes: found.into_values().collect() }
}
