//! Finds the diagnostics that depend on several objects and functions, once all have been read.
//!
//! The rules are those of `load.py` and of what it calls, in TensorFlow 2.12, 2.16 and 2.21. Where
//! a loader uses the number of an object as an index into a Python list, a negative number counts
//! from the end.
//!
//! Depends on the facts kept of an object graph, but not on its encoding.

use std::collections::HashSet;

use super::{
    diagnostics::{ObjectDiagnostics, Step, Whose},
    facts::{Caller, CallerSpec, Facts, ObjectKind, Tracing},
    order::{self, OrderDiagnostic},
    parameters::{Traced, mismatch},
};
use crate::{
    graph::ImportDiagnosticKind,
    ops::Registry,
    schema::{TENSORFLOW_2_13, TENSORFLOW_2_14},
};

const OBJECT: &str = "an object of the graph";
const TENSOR: &str = "a variable, a resource or a tensor";

/// Records the diagnostics that depend on several objects or functions.
pub(super) fn judge(facts: &Facts, diagnostics: &mut ObjectDiagnostics<'_>) {
    if facts.kinds.is_empty() {
        let diagnostic = || (Whose::Graph, "no object at all".to_owned(), OBJECT);
        return diagnostics.tell(Step::Order, |_| true, diagnostic);
    }
    order_of_objects(facts, diagnostics);
    // An optimizer creates these objects, whatever their declared kind.
    let slots = facts.slots.iter().filter_map(|(slot, _)| facts.position(*slot)).collect();
    for caller in &facts.callers {
        called(facts, caller, diagnostics);
    }
    captures(facts, &slots, diagnostics);
    children(facts, diagnostics);
    saving(facts, diagnostics);
    diagnostics.forget_objects(|number| slots.contains(&(number as usize)));
}

fn order_of_objects(facts: &Facts, diagnostics: &mut ObjectDiagnostics<'_>) {
    let (whose, found) = match order::diagnostic(facts) {
        None => return,
        Some(OrderDiagnostic::Unresolved(edge)) => {
            (Whose::Object(edge.from), format!("the object {}, which it depends on", edge.to))
        }
        Some(OrderDiagnostic::Circle(object)) => {
            (Whose::Object(object), "objects that depend on one another in a circle".to_owned())
        }
    };
    diagnostics.tell(Step::Order, |_| true, || (whose, found, OBJECT));
}

/// Checks a caller that describes its parameters against the arguments that its function was traced
/// with.
fn called(facts: &Facts, caller: &Caller, diagnostics: &mut ObjectDiagnostics<'_>) {
    if caller.parameters == CallerSpec::Absent {
        return;
    }
    let mut tell = |finds: &dyn Fn(&Registry) -> bool, found: &str| {
        let diagnostic = || {
            (Whose::Object(caller.object), found.to_owned(), "what the function was traced with")
        };
        diagnostics.tell(Step::Objects, finds, diagnostic);
    };
    let concrete = facts.functions.get(&caller.function);
    match concrete.map_or(Tracing::Absent, |found| found.traced) {
        Tracing::Absent => tell(&|_| true, "a function that does not say what it takes"),
        Tracing::NoPair => {
            tell(&|_| true, "a function that does not say what it takes by position and by name")
        }
        Tracing::Unclear | Tracing::Unnamed => {}
        Tracing::Known { positions, names, .. } => {
            let CallerSpec::Known(start, end) = caller.parameters else { return };
            let traced = Traced { positions, names: facts.names_of(names) };
            if let Some(found) = mismatch(facts.parameters_of(start, end), traced) {
                tell(&|registry| registry.graph_def_version() >= TENSORFLOW_2_14, found);
            }
        }
    }
}

/// Checks that the objects that functions capture are tensors or have one.
fn captures(facts: &Facts, slots: &HashSet<usize>, diagnostics: &mut ObjectDiagnostics<'_>) {
    let is_no_tensor = |number: i32| {
        let made = facts.position(number).filter(|position| !slots.contains(position));
        let kind = made.and_then(|position| facts.kinds.get(position));
        matches!(
            kind,
            Some(
                ObjectKind::User
                    | ObjectKind::Function
                    | ObjectKind::BareFunction
                    | ObjectKind::UnmadeResource
            )
        )
    };
    let found = |number: i32| format!("the object {number}, which it captures");
    let mut called = HashSet::new();
    for caller in &facts.callers {
        if !called.insert(caller.function) {
            continue;
        }
        let mut bound = facts.bound_of(caller.function).iter().copied();
        if let Some(number) = bound.find(|number| is_no_tensor(*number)) {
            let diagnostic = || (Whose::Object(caller.object), found(number), TENSOR);
            diagnostics.tell(Step::Objects, |_| true, diagnostic);
        }
    }
    let others = facts.functions.iter().filter(|(function, _)| !called.contains(*function));
    let unresolved = others.filter_map(|(function, concrete)| {
        let mut bound = facts.bound_of(*function).iter().copied();
        let is_unresolved =
            |number: &i32| is_no_tensor(*number) || facts.position(*number).is_none();
        Some((concrete.bound, bound.find(is_unresolved)?))
    });
    if let Some((_, number)) = unresolved.min() {
        let diagnostic = || {
            (Whose::Graph, format!("a function without an object, and {}", found(number)), TENSOR)
        };
        diagnostics.tell(Step::Remaining, |_| true, diagnostic);
    }
}

/// Checks that all children exist.
fn children(facts: &Facts, diagnostics: &mut ObjectDiagnostics<'_>) {
    let Some((lowest, highest)) = facts.extreme_children else { return };
    for edge in [lowest, highest] {
        if facts.position(edge.to).is_none() {
            let found = format!("the object {} as a child", edge.to);
            diagnostics.tell(
                Step::Children,
                |_| true,
                || (Whose::Object(edge.from), found, OBJECT),
            );
        }
    }
}

/// Checks the functions that save and restore objects.
fn saving(facts: &Facts, diagnostics: &mut ObjectDiagnostics<'_>) {
    for saveable in &facts.saveables {
        let whose = || Whose::Object(saveable.object);
        for number in [saveable.save, saveable.restore] {
            if facts.position(number).is_none() {
                let found = format!("the object {number} as a function that saves or restores it");
                diagnostics.tell(Step::Saving, |_| true, || (whose(), found, OBJECT));
            }
        }
        if saveable.is_called && takes_no_text(facts, saveable.save) {
            let finds = |registry: &Registry| registry.graph_def_version() < TENSORFLOW_2_13;
            let diagnostic = || (whose(), "a text".to_owned(), "a tensor");
            diagnostics.tell_of(
                || ImportDiagnosticKind::SaveFunction,
                Step::Saving,
                finds,
                diagnostic,
            );
        }
    }
}

/// Returns true if TensorFlow 2.12 cannot call a function that saves an object with a string: it
/// converts a string to a tensor only if the types of the function's parameters are recorded.
/// Exporters since 2.14 leave them out.
fn takes_no_text(facts: &Facts, number: i32) -> bool {
    let object = facts.position(number).and_then(|position| u32::try_from(position).ok());
    let Some(object) = object else { return false };
    let start = facts.callers.partition_point(|caller| caller.object < object);
    let caller =
        facts.callers.get(start).filter(|caller| caller.object == object && caller.is_bare);
    caller.is_some_and(|caller| {
        let function = facts.functions.get(&caller.function);
        let takes_tensor = function.is_some_and(|function| {
            matches!(function.traced, Tracing::Known { positions: 1.., is_tensor: true, .. })
        });
        let is_known = caller.parameters != CallerSpec::Unclear;
        takes_tensor && is_known && !caller.has_signature
    })
}
