//! Trees of Python containers, whose leaves are the arguments and results.

use std::collections::BTreeSet;

use super::{
    flatbuffer::{Table, Vector},
    profile::ReaderProfile,
    refusal::{Refusal, Result},
};
use crate::rule::Rule;

/// Limit on the nesting of nodes: Python's recursion fails beyond it.
const DEEPEST: usize = 900;

/// Types that every jax registers itself.
const REGISTERED: [&str; 2] = ["collections.OrderedDict", "jax._src.error_check._ErrorClass"];

mod kind {
    pub(super) const LEAF: i8 = 0;
    pub(super) const NONE: i8 = 1;
    pub(super) const DICT: i8 = 4;
    pub(super) const CUSTOM: i8 = 5;
}

/// Reads a tree, children before their node; returns the number of leaves.
pub(super) fn read(
    root: Table<'_, '_>,
    profile: &ReaderProfile<'_>,
    custom_nodes: &mut BTreeSet<String>,
    place: &'static str,
) -> Result<usize> {
    let children = |node: &Table<'_, '_>| Refusal::at(node.vector(1).map(|list| list.len()), place);
    let mut leaves = 0_usize;
    let mut open = vec![(root, 0, children(&root)?)];
    while let Some((node, next, count)) = open.last_mut() {
        if *next < *count {
            let child = Refusal::at(node.vector(1).and_then(|list| list.table(*next)), place)?;
            *next = next.saturating_add(1);
            if open.len() >= DEEPEST {
                let message = format!("{place} is deeper than Python's recursion goes");
                return Err(Refusal::new(Rule::Corrupt, "", "at most 900 levels", message, place));
            }
            let count = children(&child)?;
            open.push((child, 0, count));
            continue;
        }
        let (node, count) = (*node, *count);
        open.pop();
        if read_node(node, count, profile, custom_nodes, place)? {
            leaves = leaves.saturating_add(1);
        }
    }
    Ok(leaves)
}

/// Reads a node whose children were read; returns true if it is a leaf.
fn read_node(
    node: Table<'_, '_>,
    count: u32,
    profile: &ReaderProfile<'_>,
    custom_nodes: &mut BTreeSet<String>,
    place: &'static str,
) -> Result<bool> {
    match Refusal::at(node.i8(0), place)? {
        kind::LEAF => return Ok(true),
        kind::NONE..kind::DICT => {}
        kind::DICT => {
            let names: Vector<'_, '_> = Refusal::at(node.vector(2), place)?;
            if names.len() != count {
                let message =
                    format!("{place} has a dict of {count} values and {} names", names.len());
                let (found, expected) = (names.len().to_string(), count.to_string());
                return Err(Refusal::new(Rule::Corrupt, found, expected, message, place));
            }
            Refusal::at(names.strings(), place)?;
        }
        kind::CUSTOM => {
            let name = Refusal::at(node.needed_string(3), place)?;
            let is_registered = REGISTERED.contains(&name) || profile.custom_nodes.contains(name);
            if !is_registered && !profile.is_lenient {
                return Err(unregistered(name, place));
            }
            let data = Refusal::at(node.needed_numbers(4, 1), place);
            if !profile.is_lenient {
                data?;
            }
            custom_nodes.insert(name.to_owned());
        }
        other => {
            let message =
                format!("{place} has a node of kind {other}, and this release knows 0 to 5");
            let rule = if other > kind::CUSTOM { Rule::TooNew } else { Rule::Corrupt };
            return Err(Refusal::new(rule, other.to_string(), "0..5", message, place));
        }
    }
    Ok(false)
}

fn unregistered(name: &str, place: &str) -> Box<Refusal> {
    let message =
        format!("{place} has a node of the type {name}, which jax does not register by itself");
    let expected = "a type that the program registers before it deserializes";
    Refusal::new(Rule::MissingType, name, expected, message, place)
}
