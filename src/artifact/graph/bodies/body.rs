//! What is wrong with one function, whoever calls it.
//!
//! Knows what a function is made of, as far as names go; not how it is written, nor who asks.

use std::collections::{HashMap, HashSet};

use super::super::calls::Call;
use super::super::order::visit;
use super::super::structure::{LoopRole, is_node_name};

/// What can be wrong with a function that a node calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BodyFaultKind {
    /// A node, argument or result whose name can be that of no node.
    #[error("its name is empty or has characters that no node name can have")]
    Name,
    /// Another node, argument or result has the same name.
    #[error("another node, argument or result of the function has the same name")]
    Duplicate,
    /// A node that names no operation.
    #[error("it names no operation")]
    NoOperation,
    /// An input of data after a control input.
    #[error("a data input comes after a control input")]
    InputOrder,
    /// An input that names neither an argument nor an output of a node.
    #[error(
        "an input names nothing in the function; inside of functions, outputs are called NODE:OUTPUT:NUMBER"
    )]
    UnknownInput,
    /// An argument or a result without a type, in a function whose name is the operation of a node.
    #[error("it has no type")]
    NoType,
    /// A result that nothing is said to return.
    #[error("the function does not say what it returns as this result")]
    NoResult,
    /// A result that is said to be something that is not there.
    #[error("what the function returns as this result is not in it")]
    UnknownResult,
    /// A result that is an argument of another type.
    #[error("it is returned from an argument of another type")]
    ResultType,
    /// The node that calls the function has fewer inputs than the function has arguments.
    #[error("it has more arguments than the call has inputs")]
    FewInputs,
    /// The node that calls the function has fewer outputs than the function has results.
    #[error("it has more results than the call has outputs")]
    FewOutputs,
    /// It can never run, because its inputs depend on it.
    #[error("it is part of a cycle, or depends on one")]
    Cycle,
    /// A function that calls itself, at once or through others: the importer follows the calls until the process ends.
    #[error("it calls itself, at once or through others, which makes the importer crash")]
    Recursion,
}

/// A part of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    Function,
    Node(u32),
    Argument(u32),
    Result(u32),
}

/// A name that is not kept.
pub(super) type Name = [u64; 2];

/// What comes behind the first colon of an input or of what is returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Suffix {
    /// There is no colon.
    None,
    /// `0`.
    Zero,
    /// Another number, as numbers are written.
    Number,
    /// Something that begins as the outputs of operations do.
    Output,
    /// Something else.
    Other,
}

/// What an input or a result names.
#[derive(Debug, Clone, Copy)]
pub(super) struct Target {
    pub(super) name: Name,
    pub(super) suffix: Suffix,
    pub(super) control: bool,
}

/// An argument or a result of a function.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Argument {
    pub(super) name: Name,
    /// The name of the node that returns a result.
    pub(super) result: Name,
    pub(super) bad_name: bool,
    /// Its type, 0 if it has none.
    pub(super) data_type: i32,
    pub(super) type_attribute: bool,
    pub(super) number_attribute: bool,
    pub(super) list_attribute: bool,
}

impl Argument {
    /// Whether it may stand for several.
    fn is_list(self) -> bool {
        self.number_attribute || self.list_attribute
    }

    /// Whether nothing says which type it has.
    pub(super) fn is_untyped(self) -> bool {
        self.data_type == 0
            && !self.type_attribute
            && (self.number_attribute || !self.list_attribute)
    }

    /// Its type, if that does not depend on the call; 0 for none.
    fn fixed_type(self) -> Option<i32> {
        let fixed = !self.is_list() && (self.data_type != 0 || !self.type_attribute);
        fixed.then_some(self.data_type)
    }
}

#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Node {
    pub(super) name: Name,
    pub(super) bad_name: bool,
    pub(super) no_operation: bool,
    /// Whether its operation is a function of the library, which may call its outputs anything.
    pub(super) is_function: bool,
    pub(super) input_order: bool,
    pub(super) loop_role: LoopRole,
}

/// What a name in a body belongs to.
#[derive(Debug, Clone, Copy)]
pub(super) enum Owner {
    Argument(u32),
    Node(u32),
}

/// A function while its bytes pass by.
#[derive(Debug, Default)]
pub(super) struct Body {
    pub(super) function: Option<u64>,
    pub(super) arguments: Vec<Argument>,
    pub(super) results: Vec<Argument>,
    pub(super) nodes: Vec<Node>,
    pub(super) inputs: Vec<(u32, Target)>,
    pub(super) returns: HashMap<Name, Option<Target>>,
    pub(super) calls: Vec<Call>,
    pub(super) oversized: bool,
}

pub(super) fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Numbers of the members of a list.
pub(super) fn numbered<T: Copy>(list: &[T]) -> impl Iterator<Item = (u32, T)> + '_ {
    (0_u32..).zip(list.iter().copied())
}

impl Body {
    /// What is wrong with it, if anything is.
    pub(super) fn fault(&self) -> Option<(Part, BodyFaultKind)> {
        use BodyFaultKind as Kind;

        if self.oversized {
            return None;
        }
        let mut owners = HashMap::new();
        for (number, argument) in numbered(&self.arguments) {
            if owners.insert(argument.name, Owner::Argument(number)).is_some() {
                return Some((Part::Argument(number), Kind::Duplicate));
            }
        }
        for (number, node) in numbered(&self.nodes) {
            let kind = match owners.insert(node.name, Owner::Node(number)) {
                Some(Owner::Node(_)) => Kind::Duplicate,
                Some(Owner::Argument(argument)) => {
                    let argument = self.arguments.get(argument as usize);
                    if argument.is_none_or(|argument| !argument.is_list()) {
                        Kind::Duplicate
                    } else {
                        // The nodes of a list of arguments may have other names.
                        return None;
                    }
                }
                None if node.no_operation => Kind::NoOperation,
                None if node.input_order => Kind::InputOrder,
                None => continue,
            };
            return Some((Part::Node(number), kind));
        }
        let names_nothing = |(_, target): &&(u32, Target)| !self.is_there(&owners, target);
        if let Some((node, _)) = self.inputs.iter().find(names_nothing) {
            return Some((Part::Node(*node), Kind::UnknownInput));
        }
        for (number, result) in numbered(&self.results) {
            let kind = match self.returns.get(&result.name) {
                None => Kind::NoResult,
                Some(target) => match self.returned(&owners, result, *target) {
                    Some(kind) => kind,
                    None => continue,
                },
            };
            return Some((Part::Result(number), kind));
        }
        self.bad_name(&owners).or_else(|| self.cycle(&owners))
    }

    /// Whether an input names an argument or an output that may be there.
    fn is_there(&self, owners: &HashMap<Name, Owner>, target: &Target) -> bool {
        match owners.get(&target.name) {
            None => false,
            Some(Owner::Argument(number)) => match target.suffix {
                Suffix::None | Suffix::Zero => true,
                Suffix::Number => {
                    self.arguments.get(*number as usize).is_none_or(|argument| argument.is_list())
                }
                Suffix::Output | Suffix::Other => false,
            },
            Some(Owner::Node(number)) => match target.suffix {
                // An operation without outputs is named by its node alone.
                Suffix::None | Suffix::Output => true,
                Suffix::Zero | Suffix::Number | Suffix::Other => {
                    self.nodes.get(*number as usize).is_none_or(|node| node.is_function)
                }
            },
        }
    }

    /// What is wrong with what is returned as a result.
    fn returned(
        &self,
        owners: &HashMap<Name, Owner>,
        result: Argument,
        target: Option<Target>,
    ) -> Option<BodyFaultKind> {
        let unknown = Some(BodyFaultKind::UnknownResult);
        let Some(target) = target else { return unknown };
        if target.control || !self.is_there(owners, &target) {
            return unknown;
        }
        match owners.get(&target.name)? {
            Owner::Node(_) if target.suffix == Suffix::None => unknown,
            Owner::Node(_) => None,
            Owner::Argument(number) => {
                let argument = self.arguments.get(*number as usize)?;
                (argument.fixed_type()? != result.fixed_type()?)
                    .then_some(BodyFaultKind::ResultType)
            }
        }
    }

    /// Names that no node can have, and results whose nodes have the names of others.
    fn bad_name(&self, owners: &HashMap<Name, Owner>) -> Option<(Part, BodyFaultKind)> {
        for (number, argument) in numbered(&self.arguments) {
            if argument.bad_name && !argument.is_list() {
                return Some((Part::Argument(number), BodyFaultKind::Name));
            }
        }
        if let Some((number, _)) = numbered(&self.nodes).find(|(_, node)| node.bad_name) {
            return Some((Part::Node(number), BodyFaultKind::Name));
        }
        let is_node = |name: &Name| match owners.get(name) {
            None => false,
            Some(Owner::Node(_)) => true,
            Some(Owner::Argument(number)) => {
                self.arguments.get(*number as usize).is_some_and(|argument| !argument.is_list())
            }
        };
        let mut results = HashSet::new();
        for (number, result) in numbered(&self.results) {
            if result.is_list() {
                continue;
            }
            if result.bad_name {
                return Some((Part::Result(number), BodyFaultKind::Name));
            }
            if is_node(&result.result) || !results.insert(result.result) {
                return Some((Part::Result(number), BodyFaultKind::Duplicate));
            }
        }
        None
    }

    /// A node that is never visited.
    fn cycle(&self, owners: &HashMap<Name, Owner>) -> Option<(Part, BodyFaultKind)> {
        let role = |number: u32| {
            self.nodes.get(number as usize).map_or(LoopRole::None, |node| node.loop_role)
        };
        let all = |wanted: LoopRole| {
            let has_role = |node: &(u32, Node)| node.1.loop_role == wanted;
            numbered(&self.nodes).filter(has_role).map(|(number, _)| number).collect::<Vec<_>>()
        };
        let next_iterations = all(LoopRole::NextIteration);
        let mut edges = Vec::new();
        let mut pending = vec![0_u32; self.nodes.len()];
        // Of the loops that begin at a node: how many control inputs it waits for, and how many of its inputs are there from the start.
        let mut loops: HashMap<u32, (u32, u32, bool)> = HashMap::new();
        for (node, target) in &self.inputs {
            let Some(owner) = owners.get(&target.name) else { continue };
            if let Owner::Node(source) = owner {
                if target.suffix == Suffix::None && !target.control {
                    continue;
                }
                edges.push((*source, *node));
                if let Some(pending) = pending.get_mut(*node as usize) {
                    *pending += 1;
                }
            }
            if role(*node) == LoopRole::Merge {
                let (controls, arguments, is_loop) = loops.entry(*node).or_default();
                *controls += u32::from(target.control);
                match owner {
                    Owner::Argument(_) => *arguments += 1,
                    Owner::Node(source) => {
                        *is_loop |=
                            !target.control && next_iterations.binary_search(source).is_ok();
                    }
                }
            }
        }
        for (node, (controls, arguments, is_loop)) in loops {
            if is_loop && let Some(pending) = pending.get_mut(node as usize) {
                // The head of a loop starts with one data input; the other one comes back from the loop.
                *pending = (controls + 1).saturating_sub(arguments);
            }
        }
        let visits = visit(&mut edges, &mut pending, &next_iterations, &all(LoopRole::Merge));
        let unvisited = visits.iter().position(|visit| *visit == u32::MAX)?;
        Some((Part::Node(count(unvisited)), BodyFaultKind::Cycle))
    }
}

/// Whether TensorFlow takes this as the name of a node in a function: there, it may begin with an underscore.
pub(super) fn is_body_name(name: &[u8]) -> bool {
    let Some(mut rest) = name.strip_prefix(b"_") else { return is_node_name(name) };
    while let [b'_' | b'-' | b'/', after @ ..] = rest {
        rest = after;
    }
    match rest {
        [] => true,
        [b'>', after @ ..] => is_node_name(after),
        _ => is_node_name(rest),
    }
}
