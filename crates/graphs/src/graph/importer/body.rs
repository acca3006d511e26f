//! Finds the diagnostics of one function that do not depend on its callers.
//!
//! Depends on the names in a function, but not on its encoding or the loaders.

use std::collections::{HashMap, HashSet};

use super::visits::{Edge, Visits, visit};
use crate::graph::{
    diagnostic::{BodyDiagnosticKind, Part, PartDiagnostic},
    index::{Argument, BodyNode, Element, FunctionIndex, Name, NameMap, Suffix, Target},
    rules::LoopRole,
};

/// The owner of a name in a body.
#[derive(Clone, Copy, Debug)]
pub(super) enum Owner {
    Argument(u32),
    Node(u32),
}

pub(super) type Owners = NameMap<Owner>;

/// Returns the owners of the names of a function; a name of both a node and an argument belongs to
/// the node.
pub(super) fn owners(function: &FunctionIndex) -> Owners {
    let arguments = numbered(&function.arguments);
    let mut owners: Owners = arguments.map(|(n, one)| (one.name, Owner::Argument(n))).collect();
    owners.extend(numbered(&function.nodes).map(|(n, node)| (node.name, Owner::Node(n))));
    owners
}

/// Returns the members of a list with their numbers.
fn numbered<T: Copy>(list: &[T]) -> impl Iterator<Item = (u32, T)> + '_ {
    (0_u32..).zip(list.iter().copied())
}

/// Returns the first argument or result without a type.
pub(super) fn untyped(function: &FunctionIndex) -> Option<Part> {
    let untyped = |list: &[Argument]| {
        numbered(list).find(|(_, argument)| argument.is_untyped()).map(|(number, _)| number)
    };
    untyped(&function.arguments)
        .map(Part::Argument)
        .or_else(|| untyped(&function.results).map(Part::Result))
}

/// Returns the first diagnostic of the function, if any.
pub(super) fn first_diagnostic(function: &FunctionIndex) -> Option<PartDiagnostic> {
    if function.oversized {
        return None;
    }
    let mut body = Body { function, owners: Owners::default() };
    match body.own_names() {
        Names::Invalid(diagnostic) => return Some(diagnostic),
        Names::Unknown => return None,
        Names::Known => {}
    }
    body.unknown_input()
        .or_else(|| body.bad_result())
        .or_else(|| body.bad_name())
        .or_else(|| body.cycle(is_one_tensor))
}

/// Returns true if an input names one tensor by its number. An input that names a list of tensors
/// may be empty, which depends on types.
fn is_one_tensor(target: &Target) -> bool {
    target.element != Element::All
}

/// A function whose names are being checked.
pub(super) struct Body<'f> {
    pub(super) function: &'f FunctionIndex,
    pub(super) owners: Owners,
}

/// The owners of the names in the body.
enum Names {
    Known,
    /// The nodes of a list of arguments may have other names.
    Unknown,
    Invalid(PartDiagnostic),
}

impl Body<'_> {
    /// Finds the owner of each name, and the nodes that are invalid.
    fn own_names(&mut self) -> Names {
        let function = self.function;
        for (number, argument) in numbered(&function.arguments) {
            if self.owners.insert(argument.name, Owner::Argument(number)).is_some() {
                let (part, kind) = (Part::Argument(number), BodyDiagnosticKind::Duplicate);
                return Names::Invalid(PartDiagnostic { part, kind });
            }
        }
        for (number, node) in numbered(&function.nodes) {
            let kind = match self.owners.insert(node.name, Owner::Node(number)) {
                Some(Owner::Node(_)) => BodyDiagnosticKind::Duplicate,
                Some(Owner::Argument(argument)) if self.is_list(argument) => {
                    return Names::Unknown;
                }
                Some(Owner::Argument(_)) => BodyDiagnosticKind::Duplicate,
                None if node.no_operation => BodyDiagnosticKind::NoOperation,
                None if node.input_order => BodyDiagnosticKind::InputOrder,
                None => continue,
            };
            return Names::Invalid(PartDiagnostic { part: Part::Node(number), kind });
        }
        Names::Known
    }

    /// Returns true if an argument may stand for a list of tensors.
    fn is_list(&self, argument: u32) -> bool {
        self.function.arguments.get(argument as usize).is_some_and(|argument| argument.is_list())
    }

    fn unknown_input(&self) -> Option<PartDiagnostic> {
        let input = self.function.inputs.iter().find(|input| !self.is_there(&input.target))?;
        Some(PartDiagnostic {
            part: Part::Node(input.node),
            kind: BodyDiagnosticKind::UnknownInput,
        })
    }

    fn bad_result(&self) -> Option<PartDiagnostic> {
        numbered(&self.function.results).find_map(|(number, result)| {
            let kind = match self.function.returns.get(&result.name) {
                None => Some(BodyDiagnosticKind::NoResult),
                Some(target) => self.returned(result, *target),
            };
            Some(PartDiagnostic { part: Part::Result(number), kind: kind? })
        })
    }

    /// Returns true if an input names an argument or an output that may exist.
    fn is_there(&self, target: &Target) -> bool {
        match self.owners.get(&target.name) {
            None => false,
            Some(Owner::Argument(number)) => match target.suffix {
                Suffix::None | Suffix::Zero => true,
                Suffix::Number => self.is_list(*number),
                Suffix::Output | Suffix::Other => false,
            },
            Some(Owner::Node(number)) => match target.suffix {
                // An operation without outputs is named by its node alone.
                Suffix::None | Suffix::Output => true,
                Suffix::Zero | Suffix::Number | Suffix::Other => {
                    let node = self.function.nodes.get(*number as usize);
                    node.is_some_and(|node| node.is_function)
                }
            },
        }
    }

    /// Returns the diagnostic of the tensor that is returned as a result.
    fn returned(&self, result: Argument, target: Option<Target>) -> Option<BodyDiagnosticKind> {
        let unknown = Some(BodyDiagnosticKind::UnknownResult);
        let Some(target) = target else { return unknown };
        if target.control || !self.is_there(&target) {
            return unknown;
        }
        match self.owners.get(&target.name)? {
            Owner::Node(_) if target.suffix == Suffix::None => unknown,
            Owner::Node(_) => None,
            Owner::Argument(number) => {
                let argument = self.function.arguments.get(*number as usize)?;
                (argument.fixed_type()? != result.fixed_type()?)
                    .then_some(BodyDiagnosticKind::ResultType)
            }
        }
    }

    /// Finds invalid names of nodes, and results whose nodes have the names of others.
    fn bad_name(&self) -> Option<PartDiagnostic> {
        let diagnostic = |part, kind| Some(PartDiagnostic { part, kind });
        for (number, argument) in numbered(&self.function.arguments) {
            if argument.bad_name && !argument.is_list() {
                return diagnostic(Part::Argument(number), BodyDiagnosticKind::Name);
            }
        }
        if let Some((number, _)) = numbered(&self.function.nodes).find(|(_, node)| node.bad_name) {
            return diagnostic(Part::Node(number), BodyDiagnosticKind::Name);
        }
        let is_node = |name: &Name| match self.owners.get(name) {
            None => false,
            Some(Owner::Node(_)) => true,
            Some(Owner::Argument(number)) => !self.is_list(*number),
        };
        let mut results = HashSet::new();
        for (number, result) in numbered(&self.function.results) {
            if result.is_list() {
                continue;
            }
            if result.bad_name {
                return diagnostic(Part::Result(number), BodyDiagnosticKind::Name);
            }
            if is_node(&result.result) || !results.insert(result.result) {
                return diagnostic(Part::Result(number), BodyDiagnosticKind::Duplicate);
            }
        }
        None
    }

    /// Returns the visiting time of each node; `is_waited_for` returns true if the source of a data
    /// input is a tensor.
    pub(super) fn visits(&self, is_waited_for: impl Fn(&Target) -> bool) -> Visits {
        let (edges, pending) = self.edges(is_waited_for);
        visit(edges.iter().copied(), pending, |node| self.loop_role(node))
    }

    /// Returns a node that is never visited.
    pub(super) fn cycle(&self, is_waited_for: impl Fn(&Target) -> bool) -> Option<PartDiagnostic> {
        let unvisited = self.visits(is_waited_for).unvisited()?;
        Some(PartDiagnostic { part: Part::Node(unvisited), kind: BodyDiagnosticKind::Cycle })
    }

    fn loop_role(&self, node: u32) -> LoopRole {
        let node: Option<&BodyNode> = self.function.nodes.get(node as usize);
        node.map_or(LoopRole::None, |node| node.loop_role)
    }

    /// Returns the edges between nodes, and the number of inputs for which each node waits.
    fn edges(&self, is_waited_for: impl Fn(&Target) -> bool) -> (Vec<Edge>, Vec<u32>) {
        let mut edges = Vec::new();
        let mut pending = vec![0_u32; self.function.nodes.len()];
        let mut heads: HashMap<u32, LoopHead> = HashMap::new();
        for input in &self.function.inputs {
            let target = &input.target;
            let Some(owner) = self.owners.get(&target.name) else { continue };
            if let Owner::Node(from) = owner {
                // A node does not wait for the output of an operation without outputs.
                if target.suffix == Suffix::None && !target.control {
                    continue;
                }
                if !target.control && !is_waited_for(target) {
                    if self.loop_role(input.node) == LoopRole::Merge {
                        heads.entry(input.node).or_default().not_waited_for += 1;
                    }
                    continue;
                }
                edges.push(Edge { from: *from, to: input.node });
                if let Some(pending) = pending.get_mut(input.node as usize) {
                    *pending += 1;
                }
            }
            if self.loop_role(input.node) == LoopRole::Merge {
                let head = heads.entry(input.node).or_default();
                head.controls += u32::from(target.control);
                match owner {
                    Owner::Argument(_) => head.arguments += 1,
                    Owner::Node(from) => {
                        head.is_loop |=
                            !target.control && self.loop_role(*from) == LoopRole::NextIteration;
                    }
                }
            }
        }
        for (node, head) in heads {
            if head.is_loop
                && let Some(pending) = pending.get_mut(node as usize)
            {
                // The head of a loop starts with one data input; the other one comes back from the
                // loop.
                let there = head.arguments.saturating_add(head.not_waited_for);
                *pending = (head.controls + 1).saturating_sub(there);
            }
        }
        (edges, pending)
    }
}

/// A node that may be the head of a loop.
#[derive(Clone, Copy, Debug, Default)]
struct LoopHead {
    controls: u32,
    /// Number of inputs that are arguments, which are available from the start.
    arguments: u32,
    /// Number of inputs that may not be tensors.
    not_waited_for: u32,
    /// True if a `NextIteration` feeds the node, which makes it the head of a loop.
    is_loop: bool,
}
