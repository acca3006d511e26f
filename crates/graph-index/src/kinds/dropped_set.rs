//! Attributes that a release does not know and forgets, although their values matter.

use std::collections::BTreeMap;

use super::operations::KnownOperation;
use crate::{
    attributes::Attributes,
    node_rules::{LostAttribute, lost_attributes},
    ops::Registry,
};

/// The attributes of nodes of an operation that registries ignore.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub(super) struct DroppedSet {
    operation: u32,
    pub(super) attributes: Box<[DroppedBy]>,
}

/// An attribute and the registries that forget it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct DroppedBy {
    pub(super) attribute: &'static str,
    pub(super) since: Option<&'static str>,
    pub(super) registries: Vec<usize>,
}

/// The attributes among these that registries ignore; none for an unknown operation.
pub(super) fn of(
    operation: u32,
    known: &KnownOperation<'_>,
    registries: &[Registry],
    attributes: &Attributes,
) -> DroppedSet {
    let mut found: BTreeMap<&'static str, DroppedBy> = BTreeMap::new();
    let mut lost: Vec<LostAttribute> = Vec::new();
    for registry in 0..registries.len() {
        let Some(definition) = known.operation(registry).filter(|_| !known.is_function()) else {
            continue;
        };
        // The same definition as in the release before loses the same.
        if !registry.checked_sub(1).is_some_and(|before| known.is_same(before, registry)) {
            lost = lost_attributes(definition, attributes);
        }
        for LostAttribute { attribute, since, .. } in &lost {
            let (attribute, since) = (*attribute, *since);
            let new = DroppedBy { attribute, since, registries: Vec::new() };
            found.entry(attribute).or_insert(new).registries.push(registry);
        }
    }
    if found.is_empty() {
        return DroppedSet::default();
    }
    DroppedSet { operation, attributes: found.into_values().collect() }
}
