//! Checks that the successors of deprecated members and structs exist.

use std::collections::HashSet;

use super::{error::LayoutFileError, layout::Structure};

/// The possible successors of a member of a struct, for errors.
pub(super) const MEMBER: &str = "another member of the struct, or STRUCT.MEMBER of the layout";
/// The possible successors of a struct, for errors.
pub(super) const STRUCT: &str = "the name of another struct of the layout";

/// The structs of a layout and their members, by name.
#[derive(Debug)]
pub(super) struct Names {
    structs: HashSet<String>,
    members: HashSet<(String, String)>,
}

impl Names {
    pub(super) fn of(structs: &[Structure]) -> Self {
        let members = structs.iter().flat_map(|structure| {
            let fields = structure.fields.iter();
            fields.map(|field| (structure.name.clone(), field.name.clone()))
        });
        Self {
            structs: structs.iter().map(|structure| structure.name.clone()).collect(),
            members: members.collect(),
        }
    }

    /// Returns `true` if `successor` is a struct other than `structure`.
    pub(super) fn replaces_struct(&self, structure: &str, successor: &str) -> bool {
        successor != structure && self.structs.contains(successor)
    }

    /// Returns `true` if `successor` is a member of the struct other than `member`, or a member of
    /// another struct.
    pub(super) fn replaces_member(&self, structure: &str, member: &str, successor: &str) -> bool {
        let (of, name) = successor.split_once('.').unwrap_or((structure, successor));
        (of, name) != (structure, member) && self.has_member(of, name)
    }

    /// Returns `true` if the struct has this member.
    pub(super) fn has_member(&self, structure: &str, member: &str) -> bool {
        self.members.contains(&(structure.to_owned(), member.to_owned()))
    }
}

/// Fails unless every `replaced_by` of a section names an existing item.
pub(super) fn check(structs: &[Structure], section: &str) -> Result<(), LayoutFileError> {
    let names = Names::of(structs);
    let missing = |at: String, successor: &str, expected| LayoutFileError::Malformed {
        at,
        found: format!("replaced_by `{successor}`"),
        expected,
    };
    for structure in structs {
        let name = structure.name.as_str();
        if let Some(successor) = &structure.replaced_by
            && !names.replaces_struct(name, successor)
        {
            return Err(missing(format!("{section}/{name}"), successor, STRUCT));
        }
        for field in &structure.fields {
            if let Some(successor) = &field.replaced_by
                && !names.replaces_member(name, &field.name, successor)
            {
                return Err(missing(format!("{section}/{name}.{}", field.name), successor, MEMBER));
            }
        }
    }
    Ok(())
}
