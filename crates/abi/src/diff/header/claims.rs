//! Successors named in comments, on either side: ``Use `name` `` at the deprecated item, and
//! ``Replaces `name` `` at its successor.

use std::collections::{HashMap, HashSet};

use super::marks::{replaced, successor};
use crate::diff::{
    layout::Structure,
    outcome::Deprecation,
    successors::{MEMBER, Names, STRUCT},
};

/// A comment that names a successor, or a replaced item.
#[derive(Debug)]
pub(super) struct Claim {
    line: usize,
    /// The struct that the comment describes; for a member also the member.
    structure: String,
    member: Option<String>,
    says: Says,
}

#[derive(Debug)]
enum Says {
    ReplacedBy(String),
    Replaces(String),
}

impl Claim {
    /// Returns the claims in the comment at a line, which describes a member or a struct.
    pub(super) fn find(
        remark: &str,
        deprecation: Option<Deprecation>,
        line: usize,
        (structure, member): (&str, Option<&str>),
    ) -> Vec<Self> {
        let by = deprecation.and_then(|_| successor(remark)).map(Says::ReplacedBy);
        let says = by.into_iter().chain(replaced(remark).map(Says::Replaces));
        says.map(|says| Self {
            line,
            structure: structure.to_owned(),
            member: member.map(str::to_owned),
            says,
        })
        .collect()
    }
}

/// A claim about a name that does not exist: the line, the text found, the text expected.
type Trouble = (usize, String, &'static str);

/// Sets the successors of structs and members that comments name. Returns remarks on claims about
/// items that are not deprecated.
pub(super) fn apply(
    claims: &[Claim],
    functions: &HashSet<String>,
    structs: &mut [Structure],
) -> Result<Vec<String>, Trouble> {
    let names = Names::of(structs);
    let places: HashMap<String, usize> =
        structs.iter().enumerate().map(|(at, found)| (found.name.clone(), at)).collect();
    let mut remarks = Vec::new();
    for claim in claims {
        let Claim { line, structure, member, says } = claim;
        let (old, new) = match says {
            Says::ReplacedBy(new) => {
                let is_there = functions.contains(new)
                    || names.replaces_struct(structure, new)
                    || member.as_ref().is_some_and(|of| names.replaces_member(structure, of, new));
                if !is_there {
                    let expected = if member.is_some() { MEMBER } else { STRUCT };
                    return Err((*line, format!("the successor `{new}`"), expected));
                }
                (member.as_deref().unwrap_or(structure), new.as_str())
            }
            Says::Replaces(old) => {
                let is_there = match member {
                    Some(new) => names.replaces_member(structure, new, old),
                    None => names.replaces_struct(structure, old),
                };
                if !is_there {
                    let expected = if member.is_some() { MEMBER } else { STRUCT };
                    return Err((*line, format!("what is replaced, `{old}`"), expected));
                }
                (old.as_str(), member.as_deref().unwrap_or(structure))
            }
        };
        let (of, field) = match (member, old.split_once('.')) {
            (None, _) => (old, None),
            (Some(_), Some((of, field))) => (of, Some(field)),
            (Some(_), None) => (structure.as_str(), Some(old)),
        };
        let new = match member {
            Some(_) if of != structure => format!("{structure}.{new}"),
            _ => new.to_owned(),
        };
        let Some(found) = places.get(of).and_then(|&at| structs.get_mut(at)) else { continue };
        let (deprecation, replaced_by) = match field {
            None => (found.deprecation, &mut found.replaced_by),
            Some(name) => match found.fields.iter_mut().find(|field| field.name == name) {
                Some(field) => (field.deprecation, &mut field.replaced_by),
                None => continue,
            },
        };
        if deprecation.is_some() {
            replaced_by.get_or_insert(new);
        } else {
            remarks.push(format!("`{new}` says that it replaces `{old}`, whose own comment says nothing of a deprecation"));
        }
    }
    Ok(remarks)
}
