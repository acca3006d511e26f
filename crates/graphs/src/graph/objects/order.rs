//! Finds objects that cannot be ordered for creation. An object must come after those that it
//! depends on and those that its functions capture; the slot variables of an optimizer come after
//! the optimizer and the variable.
//!
//! The rules are those of `_generate_ordered_node_ids` in `load.py` and of `order_by_dependency` in
//! `trackable_utils.py`, the same in TensorFlow 2.12, 2.16 and 2.21.
//!
//! Depends on the numbers of objects, but not on their kinds.

use std::collections::HashMap;

use super::facts::{Edge, Facts, ObjectKind};

/// The reason why the objects cannot be ordered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OrderDiagnostic {
    /// An object depends on a missing one.
    Unresolved(Edge),
    /// The object depends on itself, directly or through others.
    Circle(u32),
}

/// Returns the first reason why the objects cannot be ordered, if any.
pub(super) fn diagnostic(facts: &Facts) -> Option<OrderDiagnostic> {
    let objects = facts.objects();
    if facts.slots.iter().any(|(slot, _)| *slot < 0) {
        // An object counted from the end would occur a second time, under another number.
        return None;
    }
    let is_there = |number: i32| (0..objects).contains(&i64::from(number));
    let unresolved = |from: u32, to: i32| {
        (!is_there(to)).then_some(OrderDiagnostic::Unresolved(Edge { from, to }))
    };
    for Edge { from, to } in &facts.dependencies {
        if let Some(diagnostic) = unresolved(*from, *to) {
            return Some(diagnostic);
        }
    }
    for (slot, original) in &facts.slots {
        if let Some(diagnostic) = unresolved(0, *slot).or_else(|| unresolved(0, *original)) {
            return Some(diagnostic);
        }
    }
    // A function is a vertex of its own with edges to what it captures, so that all objects that
    // call it share these edges.
    let mut functions: HashMap<u64, usize> = HashMap::new();
    let mut edges: Vec<(usize, usize)> = Vec::new();
    let number = |number: i32| usize::try_from(number).unwrap_or_default();
    for caller in facts.callers.iter().filter(|one| depends(facts, one.object)) {
        let next = facts.kinds.len().saturating_add(functions.len());
        let bound = facts.bound_of(caller.function);
        let is_new = !functions.contains_key(&caller.function);
        let function = *functions.entry(caller.function).or_insert(next);
        if is_new {
            for to in bound {
                if let Some(diagnostic) = unresolved(caller.object, *to) {
                    return Some(diagnostic);
                }
                edges.push((function, number(*to)));
            }
        }
        if !bound.is_empty() {
            edges.push((caller.object as usize, function));
        }
    }
    edges.extend(facts.dependencies.iter().map(|edge| (edge.from as usize, number(edge.to))));
    edges.extend(facts.slots.iter().map(|(slot, original)| (number(*slot), number(*original))));
    let circle = circle(facts.kinds.len().saturating_add(functions.len()), edges)?;
    Some(OrderDiagnostic::Circle(u32::try_from(circle).unwrap_or_default()))
}

/// Returns true if an object depends on what its functions capture.
fn depends(facts: &Facts, object: u32) -> bool {
    let kind = facts.kinds.get(object as usize);
    matches!(kind, Some(ObjectKind::Function | ObjectKind::BareFunction))
}

/// Returns an object that is in a cycle, or is reached only from cycles.
fn circle(count: usize, mut edges: Vec<(usize, usize)>) -> Option<usize> {
    if edges.is_empty() {
        return None;
    }
    edges.sort_unstable();
    edges.dedup();
    let mut waiting = vec![0_u32; count];
    for (_, to) in &edges {
        if let Some(known) = waiting.get_mut(*to) {
            *known = known.saturating_add(1);
        }
    }
    let mut free: Vec<usize> =
        (0..).zip(&waiting).filter(|(_, known)| **known == 0).map(|(at, _)| at).collect();
    while let Some(next) = free.pop() {
        let start = edges.partition_point(|(from, _)| *from < next);
        let own = edges.iter().skip(start).take_while(|(from, _)| *from == next);
        for (_, to) in own {
            let Some(known) = waiting.get_mut(*to) else { continue };
            *known = known.saturating_sub(1);
            if *known == 0 {
                free.push(*to);
            }
        }
    }
    (0..).zip(&waiting).find(|(_, known)| **known > 0).map(|(at, _)| at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_circle_is_found_and_what_only_shares_a_target_is_none() {
        assert_eq!(circle(3, vec![]), None);
        assert_eq!(circle(4, vec![(0, 1), (0, 2), (1, 3), (2, 3), (2, 3)]), None);
        assert_eq!(circle(3, vec![(0, 0)]), Some(0));
        assert!(circle(4, vec![(0, 1), (1, 2), (2, 1)]).is_some());
    }

    #[test]
    fn what_an_object_depends_on_must_be_there() {
        let of = |edges: &[(u32, i32)]| {
            let mut facts = Facts::default();
            facts.kinds = vec![ObjectKind::User; 3];
            facts.dependencies =
                edges.iter().map(|(from, to)| Edge { from: *from, to: *to }).collect();
            diagnostic(&facts)
        };
        assert_eq!(of(&[(0, 1), (1, 2)]), None);
        for to in [-1, 3] {
            assert_eq!(of(&[(0, to)]), Some(OrderDiagnostic::Unresolved(Edge { from: 0, to })));
        }
        assert!(matches!(of(&[(0, 1), (1, 0)]), Some(OrderDiagnostic::Circle(_))));
    }
}
