//! Collects the changes that a comparison of two layouts finds.

use super::outcome::{Bump, Change, Deprecation};

/// The changes found so far, in the order of discovery.
#[derive(Debug, Default)]
pub(super) struct Changes(Vec<Change>);

impl Changes {
    /// Adds a change to a struct or to one of its fields; `field` is empty for the struct itself.
    pub(super) fn add(
        &mut self,
        structure: &str,
        field: &str,
        change: &'static str,
        requires: Bump,
        why: String,
    ) {
        self.0.push(Change {
            structure: structure.to_owned(),
            field: field.to_owned(),
            change,
            requires,
            why,
            replaced_by: None,
            deprecation: None,
        });
    }

    /// Adds the deprecation of a struct or of a field, with its successor if it has one.
    pub(super) fn add_deprecated(
        &mut self,
        (structure, field): (&str, &str),
        state: Deprecation,
        (requires, why): (Bump, &str),
        replaced_by: Option<&String>,
    ) {
        let why = match replaced_by {
            Some(successor) => format!("{why}; {successor} replaces it"),
            None => why.to_owned(),
        };
        self.add(structure, field, "deprecated", requires, why);
        if let Some(change) = self.0.last_mut() {
            change.replaced_by = replaced_by.cloned();
            change.deprecation = Some(state);
        }
    }

    pub(super) fn into_list(self) -> Vec<Change> {
        self.0
    }
}
