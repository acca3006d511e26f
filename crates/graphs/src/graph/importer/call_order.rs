//! The order in which the importer reaches the nodes of a function when it infers their shapes.
//!
//! It visits nodes without consumers first and then their inputs, the last one first; the last
//! control input is the one with the greatest name. If two calls pass different attributes to one
//! function, the first call decides its instantiation.
//!
//! Beyond eight edges into one node, the importer stores them by address, so the order differs from
//! run to run and is undetermined.
//!
//! Depends on the edges, but not on the operations of nodes.

use std::collections::{HashMap, HashSet};

use super::{
    body::{self, Body, Owner},
    function_memo::Library,
};
use crate::graph::{
    GraphError,
    diagnostic::Part,
    index::{FunctionIndex, Name},
    source::Extent,
};

/// Limits on the names of nodes that are read for one function, to sort control inputs, and on its
/// nodes. Beyond them the written order is kept, and the real order is unknown.
const MOST_NAMES: usize = 64;
const MOST_NODES: usize = 1 << 12;

/// Number of edges into a node up to which the importer keeps their order.
const MOST_ORDERED: usize = 8;

/// Returns the numbers of the nodes in the order in which their shapes are inferred; nodes to which
/// no edge leads, such as those of loops, come last. Also returns true if this order is known and
/// deterministic.
pub(super) fn in_order(
    library: Library<'_>,
    (function, place): (&FunctionIndex, Extent),
) -> Result<(Vec<u32>, bool), GraphError> {
    let owners = body::owners(function);
    let node_of = |name: &Name| match owners.get(name) {
        Some(Owner::Node(node)) => Some(*node),
        _ => None,
    };
    let mut givers: Vec<Vec<u32>> = vec![Vec::new(); function.nodes.len()];
    let mut controls: HashMap<u32, Vec<u32>> = HashMap::new();
    let mut is_used = vec![false; function.nodes.len()];
    for input in &function.inputs {
        let Some(from) = node_of(&input.target.name) else { continue };
        if let Some(is_used) = is_used.get_mut(from as usize) {
            *is_used = true;
        }
        if input.target.control {
            controls.entry(input.node).or_default().push(from);
        } else if let Some(givers) = givers.get_mut(input.node as usize) {
            givers.push(from);
        }
    }
    let mut names: HashMap<u32, String> = HashMap::new();
    let mut are_ordered = true;
    for (node, mut from) in controls {
        let is_read = names.len() + from.len() <= MOST_NAMES && givers.len() <= MOST_NODES;
        are_ordered &= is_read || from.len() < 2;
        if from.len() > 1 && is_read {
            for one in &from {
                let (_, name) = library.memo.names(library, place, Part::Node(*one))?;
                names.insert(*one, name);
            }
            from.sort_by(|one, other| names.get(one).cmp(&names.get(other)));
        }
        if let Some(givers) = givers.get_mut(node as usize) {
            givers.extend(from);
        }
    }
    // Nodes without consumers, in the order in which they enter the graph; then returned nodes.
    let returned = function.results.iter().filter_map(|result| {
        let target = function.returns.get(&result.name).copied().flatten()?;
        node_of(&target.name)
    });
    let returned: Vec<u32> = returned.collect();
    for node in &returned {
        if let Some(is_used) = is_used.get_mut(*node as usize) {
            *is_used = true;
        }
    }
    let visits: Vec<u32> = Body { function, owners }.visits(|_| true).in_order().collect();
    let is_last = |node: &u32| is_used.get(*node as usize) == Some(&false);
    let mut ends: Vec<u32> = visits.iter().copied().filter(is_last).collect();
    let last = ends.len().saturating_add(function.results.len());
    ends.extend(returned);
    let mut waiting: Vec<(u32, bool)> = ends.iter().map(|node| (*node, false)).collect();
    let order = left(&mut waiting, &givers);
    let are_certain = is_certain(function, (&order, &givers), (&ends, last));
    Ok((order, are_ordered && are_certain))
}

/// Returns true if the visiting order of calls is determined: no node, nor the end of the function,
/// has more edges than the importer keeps in a fixed order while two of them lead to calls. The end
/// has `last` edges besides arguments without consumers, those of `ends` from nodes.
fn is_certain(
    function: &FunctionIndex,
    (order, givers): (&[u32], &[Vec<u32>]),
    (ends, last): (&[u32], usize),
) -> bool {
    let calls = function.calls.iter().filter(|inner| inner.call.inside);
    let calling: HashSet<u32> = calls.map(|inner| inner.node).collect();
    let mut used: HashSet<Name> = HashSet::new();
    let mut edges = vec![0_usize; givers.len()];
    for input in &function.inputs {
        used.insert(input.target.name);
        if let Some(edges) = edges.get_mut(input.node as usize) {
            *edges += 1;
        }
    }
    used.extend(function.returns.values().flatten().map(|target| target.name));
    let mut leads = calling;
    let has_two = |from: &[u32], leads: &HashSet<u32>| {
        from.iter().filter(|node| leads.contains(*node)).collect::<HashSet<_>>().len() > 1
    };
    for node in order {
        let from = givers.get(*node as usize).map_or(&[][..], Vec::as_slice);
        let is_many = edges.get(*node as usize).is_some_and(|edges| *edges > MOST_ORDERED);
        if is_many && has_two(from, &leads) {
            return false;
        }
        if from.iter().any(|from| leads.contains(from)) {
            leads.insert(*node);
        }
    }
    let arguments = function.arguments.iter().filter(|one| !used.contains(&one.name)).count();
    // An edge leads from the start to the end as well.
    let end = last.saturating_add(arguments).saturating_add(1);
    end <= MOST_ORDERED || !has_two(ends, &leads)
}

/// Returns the nodes in the order in which their visits end, each after its inputs.
fn left(waiting: &mut Vec<(u32, bool)>, givers: &[Vec<u32>]) -> Vec<u32> {
    let mut order = Vec::with_capacity(givers.len());
    let mut is_seen = vec![false; givers.len()];
    while let Some((node, is_left)) = waiting.pop() {
        if is_left {
            order.push(node);
            continue;
        }
        let (Some(seen), Some(givers)) =
            (is_seen.get_mut(node as usize), givers.get(node as usize))
        else {
            continue;
        };
        if !std::mem::replace(seen, true) {
            waiting.push((node, true));
            waiting.extend(givers.iter().map(|from| (*from, false)));
        }
    }
    let rest = (0_u32..).zip(&is_seen).filter(|(_, seen)| !**seen).map(|(node, _)| node);
    order.extend(rest);
    order
}

#[cfg(test)]
mod tests;
