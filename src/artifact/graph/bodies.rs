//! Whether the functions that the nodes of a graph call can be built.
//!
//! TensorFlow's importer builds the body of a function when it comes to the first node that calls it, and then what that body calls;
//! the other functions of the library it leaves alone. Only graphs that have functions are walked over again, to find the calls, and
//! only where there is one, the bodies are looked at in another walk. Memory is proportional to the calls and to the largest body.
//!
//! Knows what can be said without a list of TensorFlow's operations: names, inputs and results that name nothing, types that are not
//! there, cycles. Which outputs an operation has, and what the attributes of a call make of a function, is left alone.

use std::collections::{HashMap, HashSet};
use std::hash::{BuildHasher, Hasher};

use super::calls::{Call, CallReader, Operation};
use super::functions::FunctionNames;
use super::order::visit;
use super::plain::short_field;
use super::structure::{LoopRole, is_node_name};
use crate::artifact::schema::{
    ATTR_VALUE, ATTR_VALUE_LIST_VALUE, FUNCTION_DEF, FUNCTION_DEF_LIBRARY, FUNCTION_DEF_RET_ENTRY,
    Field, GRAPH_DEF, META_GRAPH_DEF, MessageId, NODE_DEF, OP_DEF, OP_DEF_ARG_DEF, SAVED_MODEL,
};
use crate::artifact::wire::{Piece, Step, Visitor};

/// A body with a name that is longer than this, in bytes, is taken as it is without being looked at: no real one has one.
const LONGEST_NAME: usize = 1 << 20;

/// Bytes of a name that are kept for messages.
const SHOWN_NAME: usize = 256;

/// What is appended to the name of a result to name the node that returns it.
const RESULT: &[u8] = b"_RetVal";

/// What is wrong with a function that a node calls.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("function \"{function}\"{}: {kind}", show_part(part))]
#[non_exhaustive]
pub struct BodyFault {
    /// The function that has the fault: the one that the node calls, or one that this one calls; its name cut to 256 bytes.
    pub function: String,
    /// The node, argument or result that has it; empty where it is the function itself.
    pub part: String,
    /// What is wrong with it.
    pub kind: BodyFaultKind,
}

fn show_part(part: &str) -> String {
    if part.is_empty() { String::new() } else { format!(", \"{part}\"") }
}

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
enum Part {
    Function,
    Node(u32),
    Argument(u32),
    Result(u32),
}

/// Where a fault is: the number of the function in the library, and the part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Fault {
    function: u32,
    part: Part,
    kind: BodyFaultKind,
}

/// A node outside of functions that calls a function that cannot be built.
#[derive(Debug, Clone, Copy)]
pub(super) struct CallFault {
    /// The number of the node in the graph.
    pub(super) node: u32,
    pub(super) fault: Fault,
    /// Whether it is one of the function's signature, which the importer looks at before it asks whether the function is deprecated.
    pub(super) of_signature: bool,
}

/// A name that is not kept.
type Name = [u64; 2];

/// What comes behind the first colon of an input or of what is returned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Suffix {
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
struct Target {
    name: Name,
    suffix: Suffix,
    control: bool,
}

/// An argument or a result of a function.
#[derive(Debug, Default, Clone, Copy)]
struct Argument {
    name: Name,
    /// The name of the node that returns a result.
    result: Name,
    bad_name: bool,
    /// Its type, 0 if it has none.
    data_type: i32,
    type_attribute: bool,
    number_attribute: bool,
    list_attribute: bool,
}

impl Argument {
    /// Whether it may stand for several.
    fn is_list(self) -> bool {
        self.number_attribute || self.list_attribute
    }

    /// Whether nothing says which type it has.
    fn is_untyped(self) -> bool {
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
struct Node {
    name: Name,
    bad_name: bool,
    no_operation: bool,
    /// Whether its operation is a function of the library, which may call its outputs anything.
    is_function: bool,
    input_order: bool,
    loop_role: LoopRole,
}

/// What a name in a body belongs to.
#[derive(Debug, Clone, Copy)]
enum Owner {
    Argument(u32),
    Node(u32),
}

/// A function while its bytes pass by.
#[derive(Debug, Default)]
struct Body {
    function: Option<u64>,
    arguments: Vec<Argument>,
    results: Vec<Argument>,
    nodes: Vec<Node>,
    inputs: Vec<(u32, Target)>,
    returns: HashMap<Name, Option<Target>>,
    calls: Vec<Call>,
    oversized: bool,
}

fn count(length: usize) -> u32 {
    u32::try_from(length).unwrap_or(u32::MAX)
}

/// Numbers of the members of a list.
fn numbered<T: Copy>(list: &[T]) -> impl Iterator<Item = (u32, T)> + '_ {
    (0_u32..).zip(list.iter().copied())
}

impl Body {
    /// What is wrong with it, if anything is.
    fn fault(&self) -> Option<(Part, BodyFaultKind)> {
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
fn is_body_name(name: &[u8]) -> bool {
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

/// What is known of a function once its bytes have passed by.
#[derive(Debug)]
struct Function {
    fault: Option<(Part, BodyFaultKind)>,
    /// The first argument or result without a type.
    untyped: Option<Part>,
    arguments: u32,
    results: u32,
    calls: Vec<Call>,
}

impl Function {
    /// What is wrong with a call of it, whatever is in it.
    fn call_fault(&self, call: Call) -> Option<(Part, BodyFaultKind)> {
        if call.direct
            && let Some(part) = self.untyped
        {
            return Some((part, BodyFaultKind::NoType));
        }
        let few = call.outputs.is_some_and(|outputs| outputs < self.results);
        few.then_some((Part::Function, BodyFaultKind::FewOutputs))
    }
}

/// A node outside of functions that calls one.
#[derive(Debug)]
struct CallingNode {
    /// Its number among the nodes of the graph.
    number: u32,
    call: Call,
    /// How many inputs of data it has.
    inputs: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Pass {
    /// Collects the nodes that call functions.
    Calls,
    /// Looks at every function.
    Bodies,
    /// Finds the names of a fault.
    Find(Fault),
}

/// A walk that finds the calls of one graph, then what is wrong with its functions.
pub(super) struct BodiesVisitor {
    names: FunctionNames,
    /// The GraphDef version of the release that is to read the graph.
    release: i32,
    /// The graph that is looked at, by the number of its meta graph.
    target: usize,
    meta_graphs: usize,
    pass: Pass,
    hashers: [foldhash::quality::RandomState; 2],
    calling: Vec<CallingNode>,
    node_number: u32,
    function_number: u32,
    node: Node,
    reader: CallReader,
    data_inputs: u32,
    control_inputs: bool,
    argument: Argument,
    in_node: bool,
    in_signature: bool,
    body: Body,
    /// What is returned: as which result, and what.
    returned: (Name, Option<Target>),
    functions: Vec<Function>,
    /// By the hashes of their names.
    positions: HashMap<u64, u32>,
    text: Vec<u8>,
    /// What a walk that finds names has found.
    found: (String, String),
    /// The part that is being read, while names are found.
    part: Part,
}

impl BodiesVisitor {
    pub(super) fn new(target: usize, names: FunctionNames, release: i32) -> Self {
        Self {
            names,
            release,
            target,
            meta_graphs: 0,
            pass: Pass::Calls,
            hashers: Default::default(),
            calling: Vec::new(),
            node_number: 0,
            function_number: 0,
            node: Node::default(),
            reader: CallReader::default(),
            data_inputs: 0,
            control_inputs: false,
            argument: Argument::default(),
            in_node: false,
            in_signature: false,
            body: Body::default(),
            returned: ([0; 2], None),
            functions: Vec::new(),
            positions: HashMap::new(),
            text: Vec::new(),
            found: Default::default(),
            part: Part::Function,
        }
    }

    /// Whether a node calls a function, so that another walk is needed; it prepares for that.
    pub(super) fn second(&mut self) -> bool {
        self.begin(Pass::Bodies);
        !self.calling.is_empty()
    }

    /// Prepares for a walk that finds the names of a fault.
    pub(super) fn find(&mut self, fault: Fault) {
        self.begin(Pass::Find(fault));
        self.found = Default::default();
    }

    fn begin(&mut self, pass: Pass) {
        self.pass = pass;
        self.meta_graphs = 0;
        self.node_number = 0;
        self.function_number = 0;
    }

    /// The fault with the names that were found.
    pub(super) fn found(self) -> Option<BodyFault> {
        let Pass::Find(fault) = self.pass else { return None };
        let (function, part) = self.found;
        Some(BodyFault { function, part, kind: fault.kind })
    }

    /// The nodes that call a function that cannot be built, by their numbers, ascending.
    pub(super) fn faults(&self) -> Vec<CallFault> {
        let by_function = self.fault_by_function();
        let fault_of = |node: &CallingNode| {
            let position = *self.positions.get(&node.call.function)?;
            let function = self.functions.get(position as usize)?;
            let few = node.inputs < function.arguments;
            let few = few.then_some((Part::Function, BodyFaultKind::FewInputs));
            let (fault, of_signature) = match few.or_else(|| function.call_fault(node.call)) {
                Some((part, kind)) => (Fault { function: position, part, kind }, true),
                None if node.call.inside => ((*by_function.get(position as usize)?)?, false),
                None => return None,
            };
            Some(CallFault { node: node.number, fault, of_signature })
        };
        self.calling.iter().filter_map(fault_of).collect()
    }

    /// What keeps each function from being built: its own fault or one of a function that it calls.
    fn fault_by_function(&self) -> Vec<Option<Fault>> {
        let own = |(number, function): (u32, &Function)| {
            function.fault.map(|(part, kind)| Fault { function: number, part, kind })
        };
        let mut faults: Vec<Option<Fault>> = (0_u32..).zip(&self.functions).map(own).collect();
        let mut callers: Vec<(u32, u32)> = Vec::new();
        let mut waiting = vec![0_u32; self.functions.len()];
        for (caller, function) in (0_u32..).zip(&self.functions) {
            for call in &function.calls {
                let Some(called) = self.positions.get(&call.function).copied() else { continue };
                let (Some(waiting), Some(fault)) =
                    (waiting.get_mut(caller as usize), faults.get_mut(caller as usize))
                else {
                    continue;
                };
                if call.inside {
                    callers.push((called, caller));
                    *waiting += 1;
                }
                let other = self.functions.get(called as usize);
                if let Some((part, kind)) = other.and_then(|other| other.call_fault(*call)) {
                    fault.get_or_insert(Fault { function: called, part, kind });
                }
            }
        }
        callers.sort_unstable();
        let mut known: Vec<u32> =
            (0_u32..).zip(&waiting).filter(|(_, waiting)| **waiting == 0).map(|(n, _)| n).collect();
        while let Some(called) = known.pop() {
            let fault = faults.get(called as usize).copied().flatten();
            let from = callers.partition_point(|edge| edge.0 < called);
            let edges = callers.get(from..).unwrap_or_default();
            for (_, caller) in edges.iter().take_while(|edge| edge.0 == called) {
                let position = *caller as usize;
                if let (Some(waiting), Some(known_fault)) =
                    (waiting.get_mut(position), faults.get_mut(position))
                {
                    *known_fault = known_fault.or(fault);
                    *waiting -= 1;
                    if *waiting == 0 {
                        known.push(*caller);
                    }
                }
            }
        }
        // What still waits can reach itself, or a function that can.
        for ((number, waiting), fault) in (0_u32..).zip(waiting).zip(&mut faults) {
            if waiting > 0 {
                let (part, kind) = (Part::Function, BodyFaultKind::Recursion);
                fault.get_or_insert(Fault { function: number, part, kind });
            }
        }
        faults
    }

    fn hash(&self, name: &[u8]) -> Name {
        self.hashers.each_ref().map(|hasher| {
            let mut hasher = hasher.build_hasher();
            hasher.write(name);
            hasher.finish()
        })
    }

    fn target_of(&self, text: &[u8]) -> Target {
        let (text, control) = match text.strip_prefix(b"^") {
            Some(name) => (name, true),
            None => (text, false),
        };
        let colon = text.iter().position(|byte| *byte == b':');
        let (name, suffix) =
            colon.and_then(|colon| text.split_at_checked(colon)).unwrap_or((text, b""));
        let suffix = match suffix {
            [] => Suffix::None,
            b":0" => Suffix::Zero,
            [_, b'1'..=b'9', more @ ..] if more.iter().all(u8::is_ascii_digit) => Suffix::Number,
            [_, b'a'..=b'z', ..] => Suffix::Output,
            _ => Suffix::Other,
        };
        Target { name: self.hash(name), suffix, control }
    }

    fn begin_node(&mut self) {
        self.in_node = true;
        // Without a name and an operation until it says them.
        let bad_name = !is_body_name(b"");
        let no_operation = self.names.find(b"").is_none();
        self.node = Node { name: self.hash(b""), bad_name, no_operation, ..Node::default() };
        self.reader.clear();
        self.data_inputs = 0;
        self.control_inputs = false;
    }

    fn end_of_body(&mut self) {
        let body = std::mem::take(&mut self.body);
        let position = count(self.functions.len());
        if let Some(function) = body.function {
            // The same function may be there again.
            self.positions.entry(function).or_insert(position);
        }
        let mut calls = body.calls.clone();
        calls.sort_unstable();
        calls.dedup();
        let untyped = |list: &[Argument]| {
            numbered(list).find(|(_, argument)| argument.is_untyped()).map(|(number, _)| number)
        };
        let untyped = untyped(&body.arguments)
            .map(Part::Argument)
            .or_else(|| untyped(&body.results).map(Part::Result));
        self.functions.push(Function {
            fault: body.fault(),
            untyped,
            arguments: count(body.arguments.len()),
            results: count(body.results.len()),
            calls,
        });
    }

    fn end_of_node(&mut self) {
        self.in_node = false;
        let number = self.node_number;
        self.node_number = self.node_number.saturating_add(1);
        if self.pass == Pass::Calls {
            if let Some(call) = self.reader.call(false) {
                self.calling.push(CallingNode { number, call, inputs: self.data_inputs });
            }
            return;
        }
        if self.pass == Pass::Bodies {
            self.body.calls.extend(self.reader.call(true));
            self.body.nodes.push(self.node);
        }
    }

    /// A string that is whole.
    fn whole_text(&mut self, message: MessageId, number: u32) {
        match (message, number) {
            (NODE_DEF, _) => self.node_text(number),
            (OP_DEF_ARG_DEF, _) => self.argument_text(number),
            (FUNCTION_DEF_RET_ENTRY, 1) => self.returned.0 = self.hash(&self.text),
            (FUNCTION_DEF_RET_ENTRY, _) => self.returned.1 = Some(self.target_of(&self.text)),
            _ => {
                self.body.function = self.names.find(&self.text);
                self.found.0 = shown(&self.text);
            }
        }
    }

    /// A string that is whole, of a node.
    fn node_text(&mut self, number: u32) {
        let text = std::mem::take(&mut self.text);
        match number {
            1 => {
                self.node.name = self.hash(&text);
                self.node.bad_name = !is_body_name(&text);
                self.note_name(&text);
            }
            2 => {
                let operation = Operation::of(&text, &self.names);
                self.reader.operation(operation);
                self.node.is_function = matches!(operation, Operation::Function(_));
                self.node.no_operation = text.is_empty() && !self.node.is_function;
                self.node.loop_role = LoopRole::of(&text);
            }
            _ => {
                if text.first() == Some(&b'^') {
                    self.control_inputs = true;
                } else {
                    self.data_inputs = self.data_inputs.saturating_add(1);
                    self.node.input_order |= self.control_inputs;
                }
                if self.pass == Pass::Bodies {
                    let target = self.target_of(&text);
                    self.body.inputs.push((count(self.body.nodes.len()), target));
                }
            }
        }
        self.text = text;
    }

    /// A string that is whole, of an argument or a result.
    fn argument_text(&mut self, number: u32) {
        let text = std::mem::take(&mut self.text);
        match number {
            1 => {
                self.argument.name = self.hash(&text);
                let result = [&text, RESULT].concat();
                self.argument.result = self.hash(&result);
                self.argument.bad_name = match self.part {
                    Part::Result(_) => !is_body_name(&result),
                    _ => !is_body_name(&text),
                };
                self.note_name(&text);
            }
            4 => self.argument.type_attribute = !text.is_empty(),
            5 => self.argument.number_attribute = !text.is_empty(),
            6 => self.argument.list_attribute = !text.is_empty(),
            _ => {}
        }
        self.text = text;
    }

    /// Keeps a name if it is the one that is looked for.
    fn note_name(&mut self, name: &[u8]) {
        if let Pass::Find(fault) = self.pass
            && fault.part == self.part
        {
            self.found.1 = shown(name);
        }
    }

    /// Takes in a string that may come in pieces; whether it is whole now.
    fn collect(&mut self, piece: &[u8], is: Piece) -> bool {
        if is.first {
            self.text.clear();
        }
        if self.text.len() + piece.len() > LONGEST_NAME {
            self.body.oversized = true;
            return false;
        }
        self.text.extend_from_slice(piece);
        is.last
    }
}

/// A name for messages, cut to a bearable length.
fn shown(name: &[u8]) -> String {
    String::from_utf8_lossy(name.get(..name.len().min(SHOWN_NAME)).unwrap_or_default()).into_owned()
}

/// The operation of a node that has its fields in a common form.
fn operation_alone(bytes: &[u8]) -> Option<&[u8]> {
    let mut operation = None;
    let mut rest = bytes;
    while !rest.is_empty() {
        let (tag, content, after) = short_field(rest)?;
        rest = after;
        match tag {
            0x12 if operation.is_none() => operation = Some(content),
            0x0a | 0x1a | 0x22 | 0x2a => {}
            _ => return None,
        }
    }
    operation
}

impl Visitor for BodiesVisitor {
    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        let is_calls = self.pass == Pass::Calls;
        match (message, field.number) {
            (SAVED_MODEL, 2) => {
                self.meta_graphs += 1;
                if self.meta_graphs == self.target + 1 { Step::Into } else { Step::Over }
            }
            (META_GRAPH_DEF, 2) => Step::Into,
            (GRAPH_DEF, 1) if is_calls => {
                self.begin_node();
                Step::Into
            }
            (GRAPH_DEF, 2) if !is_calls => Step::Into,
            (FUNCTION_DEF_LIBRARY, 1) => {
                self.part = Part::Function;
                self.body = Body { function: self.names.find(b""), ..Body::default() };
                let number = self.function_number;
                self.function_number = number.saturating_add(1);
                match self.pass {
                    Pass::Find(fault) if fault.function != number => return Step::Over,
                    _ => {}
                }
                Step::Into
            }
            (FUNCTION_DEF, 1) => {
                self.in_signature = true;
                Step::Into
            }
            (OP_DEF, 2 | 3) if self.in_signature => {
                let number = if field.number == 2 {
                    Part::Argument(count(self.body.arguments.len()))
                } else {
                    Part::Result(count(self.body.results.len()))
                };
                self.part = number;
                self.argument = Argument::default();
                // Without a name until it says one.
                self.text.clear();
                self.argument_text(1);
                Step::Into
            }
            (FUNCTION_DEF, 3) => {
                self.part = Part::Node(self.node_number);
                self.begin_node();
                Step::Into
            }
            (FUNCTION_DEF, 4) => {
                self.returned = (self.hash(b""), None);
                Step::Into
            }
            _ if self.in_node => self.reader.enter(message, field),
            _ => Step::Over,
        }
    }

    fn leave(&mut self, message: MessageId, field: &'static Field, _at: u64) {
        match (message, field.number) {
            (GRAPH_DEF, 1) | (FUNCTION_DEF, 3) => self.end_of_node(),
            (FUNCTION_DEF, 1) => self.in_signature = false,
            (OP_DEF, 2) => self.body.arguments.push(self.argument),
            (OP_DEF, 3) => self.body.results.push(self.argument),
            (FUNCTION_DEF, 4) => {
                let (name, target) = self.returned;
                self.body.returns.insert(name, target);
            }
            (FUNCTION_DEF_LIBRARY, 1) => {
                self.node_number = 0;
                if self.pass == Pass::Bodies {
                    self.end_of_body();
                }
            }
            _ if self.in_node => self.reader.leave(message, field),
            _ => {}
        }
    }

    fn integer(&mut self, message: MessageId, field: &'static Field, value: u64) {
        match (message, field.number) {
            // An enumeration is the low half of its varint.
            (OP_DEF_ARG_DEF, 3) => self.argument.data_type = value as u32 as i32,
            _ if self.in_node => self.reader.integer(message, field, value),
            _ => {}
        }
    }

    fn string(&mut self, message: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        let wanted = match message {
            NODE_DEF => field.number <= 3,
            OP_DEF => field.number == 1 && self.in_signature,
            OP_DEF_ARG_DEF | FUNCTION_DEF_RET_ENTRY => true,
            _ => false,
        };
        if wanted {
            if self.collect(piece, is) {
                self.whole_text(message, field.number);
            }
        } else if self.in_node {
            self.reader.string(message, field, piece, is, &self.names);
        }
    }

    fn wants_packed(&self, message: MessageId) -> bool {
        self.in_node && message == ATTR_VALUE_LIST_VALUE
    }

    fn wants_bytes(&self, message: MessageId, field: &'static Field) -> bool {
        // A string takes the place of another value.
        self.in_node && (message, field.number) == (ATTR_VALUE, 2)
    }

    fn release(&self) -> i32 {
        self.release
    }

    fn take(
        &mut self,
        message: MessageId,
        field: &'static Field,
        bytes: &[u8],
        _end: u64,
        _depth: usize,
    ) -> bool {
        if self.pass != Pass::Calls || (message, field.number) != (GRAPH_DEF, 1) {
            return false;
        }
        // The bytes were found right before.
        let Some(operation) = operation_alone(bytes) else { return false };
        let other = Operation::of(operation, &self.names) == Operation::Other;
        self.node_number = self.node_number.saturating_add(u32::from(other));
        other
    }
}

#[cfg(test)]
mod tests {
    use super::super::plain::tests::field;
    use super::super::{Form, Graph, Message, ReadOptions, StructureFaultKind, read};
    use super::*;

    fn text(number: u8, text: &str) -> Vec<u8> {
        field(number, text.as_bytes())
    }

    fn node(name: &str, operation: &str, inputs: &[&str]) -> Vec<u8> {
        let inputs = inputs.iter().map(|input| text(3, input)).collect::<Vec<_>>().concat();
        [text(1, name), text(2, operation), inputs].concat()
    }

    /// An argument or result of type DT_FLOAT, or of none.
    fn argument(name: &str, typed: bool) -> Vec<u8> {
        let data_type: &[u8] = if typed { &[0x18, 1] } else { &[] };
        [&text(1, name)[..], data_type].concat()
    }

    /// `f(x) -> y` with these nodes, and what it returns.
    fn unary(name: &str, nodes: &[Vec<u8>], returned: &str) -> Vec<u8> {
        let (x, y) = (argument("x", true), argument("y", true));
        let ret = field(4, &[text(1, "y"), text(2, returned)].concat());
        function(name, &[field(2, &x), field(3, &y)], nodes, &ret)
    }

    fn function(name: &str, signature: &[Vec<u8>], nodes: &[Vec<u8>], rest: &[u8]) -> Vec<u8> {
        let signature = [text(1, name), signature.concat()].concat();
        let nodes = nodes.iter().map(|node| field(3, node)).collect::<Vec<_>>().concat();
        field(1, &[&field(1, &signature)[..], &nodes, rest].concat())
    }

    fn graph(nodes: &[Vec<u8>], library: &[Vec<u8>]) -> Graph {
        let nodes = nodes.iter().map(|node| field(1, node)).collect::<Vec<_>>().concat();
        let library = library.concat();
        // The length of a whole library needs more bytes than that of a part.
        let length = library.len();
        let length = [0, 7, 14].map(|shift| (length >> shift) as u8 | 0x80);
        let length = [&length[..], &[(library.len() >> 21) as u8]].concat();
        let bytes = [nodes, vec![0x12], length, library].concat();
        let options = ReadOptions::default();
        let graphs = read(bytes.as_slice(), Message::GraphDef, Form::Binary, &options);
        graphs.unwrap().meta_graphs.remove(0).graph
    }

    /// The fault of a graph with one node that calls `f`.
    fn fault(library: &[Vec<u8>]) -> Option<(String, String, BodyFaultKind)> {
        let found = graph(&[node("c", "f", &["p"]), node("p", "Placeholder", &[])], library);
        found.structure.map(|fault| {
            assert_eq!((fault.kind, &*fault.node), (StructureFaultKind::CalledFunction, "c"));
            let body = fault.body.unwrap();
            (body.function, body.part, body.kind)
        })
    }

    #[test]
    fn a_function_that_is_called_must_be_one_that_can_be_built() {
        use BodyFaultKind as Kind;

        let identity = |input: &str| node("i", "Identity", &[input]);
        let body = |nodes: &[Vec<u8>]| {
            let found = fault(&[unary("f", nodes, "x")]);
            found.map(|(function, part, kind)| {
                assert_eq!(function, "f");
                (part, kind)
            })
        };
        for input in ["x", "x:0", "i:output", "^x", "^x:0", "^i", "^i:output:0"] {
            let nodes = [node("i", "NoOp", &[]), node("k", "NoOp", &[input])];
            assert_eq!(body(&nodes), None, "{input}");
        }
        for input in
            ["", "z", "z:output:0", "x:1", "x:", "x:output", "i:0", "i:", "^", "^z", "^i:0"]
        {
            let nodes = [node("i", "NoOp", &[]), node("k", "NoOp", &[input])];
            assert_eq!(body(&nodes), Some(("k".to_owned(), Kind::UnknownInput)), "{input}");
        }
        for (nodes, part, kind) in [
            (vec![node("a", "NoOp", &[]), node("a", "NoOp", &[])], "a", Kind::Duplicate),
            (vec![node("x", "NoOp", &[])], "x", Kind::Duplicate),
            (vec![node("y_RetVal", "NoOp", &[])], "y", Kind::Duplicate),
            (vec![node("a b", "NoOp", &[])], "a b", Kind::Name),
            (vec![text(2, "NoOp")], "", Kind::Name),
            (vec![node("a", "", &[])], "a", Kind::NoOperation),
            (vec![node("a", "Pack", &["^x", "x"])], "a", Kind::InputOrder),
            (vec![node("a", "NoOp", &["^a"])], "a", Kind::Cycle),
            (
                vec![identity("x"), node("a", "NoOp", &["^b"]), node("b", "NoOp", &["^a"])],
                "a",
                Kind::Cycle,
            ),
        ] {
            assert_eq!(body(&nodes), Some((part.to_owned(), kind)), "{nodes:?}");
        }
        assert_eq!(body(&[node("_a", "NoOp", &[]), node("y", "NoOp", &[])]), None);
        // What an operation without outputs gives is nothing to wait for.
        assert_eq!(body(&[node("n", "NoOp", &["^i"]), node("i", "Identity", &["n", "x"])]), None);
    }

    #[test]
    fn a_function_says_what_it_returns() {
        use BodyFaultKind as Kind;

        let returned = |text: &str| {
            let found = fault(&[unary("f", &[node("i", "Identity", &["x"])], text)]);
            found.map(|(_, part, kind)| (part, kind))
        };
        for text in ["x", "x:0", "i:output", "i:output:0"] {
            assert_eq!(returned(text), None, "{text}");
        }
        for text in ["", "z", "i", "i:0", "^x", "x:1", "z:output:0", "y"] {
            assert_eq!(returned(text), Some(("y".to_owned(), Kind::UnknownResult)), "{text}");
        }
        let (x, y) = (field(2, &argument("x", true)), field(3, &argument("y", true)));
        let nothing = [function("f", &[x.clone(), y.clone()], &[], &[])];
        assert_eq!(fault(&nothing).unwrap().2, Kind::NoResult);
        let returns = field(4, &[text(1, "y"), text(2, "x")].concat());
        let other = field(3, &[&text(1, "y")[..], &[0x18, 3]].concat());
        let other = [function("f", &[x.clone(), other], &[], &returns)];
        assert_eq!(fault(&other).unwrap().2, Kind::ResultType);
        let untyped = [function("f", &[field(2, &argument("x", false))], &[], &[])];
        assert_eq!(fault(&untyped), Some(("f".to_owned(), "x".to_owned(), Kind::NoType)));
        let list = field(2, &[argument("x", true), text(5, "N")].concat());
        let second = node("k", "NoOp", &["^x:1"]);
        assert_eq!(fault(&[function("f", &[list], &[second], &[])]), None);
    }

    #[test]
    fn a_loop_inside_of_a_function_is_no_cycle() {
        let body = |inputs: &[&str]| {
            let merge = node("m", "Merge", inputs);
            fault(&[unary("f", &[merge, node("n", "NextIteration", &["m:output:0"])], "x")])
        };
        assert_eq!(body(&["x", "n:output:0"]), None);
        assert_eq!(body(&["n:output:0", "x", "^x"]), None);
        assert!(body(&["n:output:0", "n:output:0"]).is_some());
        assert!(body(&["x", "n:output:0", "^n"]).is_some());
        assert!(body(&["x", "x", "^n"]).is_some());
    }

    #[test]
    fn the_fault_of_a_function_is_one_of_those_that_call_it() {
        let bad = function("g", &[], &[node("a", "NoOp", &["^a"])], &[]);
        let call = |name: &str, to: &str| function(name, &[], &[node("n", to, &[])], &[]);
        let cycle = Some(("g".to_owned(), "a".to_owned(), BodyFaultKind::Cycle));
        assert_eq!(fault(&[call("f", "g"), bad.clone()]), cycle);
        assert_eq!(fault(&[bad.clone(), call("h", "g"), call("f", "h")]), cycle);
        assert_eq!(fault(&[call("h", "g"), bad.clone(), function("f", &[], &[], &[])]), None);
        let recursion = |library: &[Vec<u8>]| fault(library).map(|(_, _, kind)| kind);
        assert_eq!(recursion(&[call("f", "f")]), Some(BodyFaultKind::Recursion));
        assert_eq!(
            recursion(&[call("f", "g"), call("g", "h"), call("h", "g")]),
            Some(BodyFaultKind::Recursion)
        );
        assert_eq!(recursion(&[call("h", "h"), call("f", "g"), call("g", "i")]), None);
        // As deep as a file can make it.
        let chain = (0..20_000).map(|n| call(&format!("f{n}"), &format!("f{}", n + 1)));
        let mut chain: Vec<_> = chain.collect();
        chain.extend([call("f", "f0"), call("f20000", "g")]);
        assert_eq!(fault(&chain), None);
        chain.push(bad);
        assert_eq!(fault(&chain), cycle);
    }

    /// A PartitionedCall of `f` with so many outputs, and what else its attributes say.
    fn partitioned(inputs: &[&str], outputs: usize, rest: &[u8]) -> Vec<u8> {
        let called = field(2, &field(10, &text(1, "f")));
        let types = field(2, &field(1, &field(6, &vec![1; outputs])));
        let attribute = |key: &str, value: &[u8]| field(5, &[&text(1, key)[..], value].concat());
        let attributes = [attribute("f", &called), attribute("Tout", &types)].concat();
        [&node("c", "PartitionedCall", inputs)[..], &attributes, rest].concat()
    }

    fn disabled(value: u8) -> Vec<u8> {
        let key = text(1, "_disable_call_shape_inference");
        field(5, &[key, field(2, &[0x28, value])].concat())
    }

    #[test]
    fn a_call_is_by_operation_or_by_attribute_and_may_be_left_alone() {
        let kind = |nodes: &[Vec<u8>], library: &[Vec<u8>]| {
            let fault = graph(nodes, library).structure?;
            Some(fault.body.map_or(BodyFaultKind::Name, |body| body.kind))
        };
        let bad = [function("f", &[], &[node("a", "NoOp", &["^a"])], &[])];
        let cycle = Some(BodyFaultKind::Cycle);
        assert_eq!(kind(&[node("c", "NoOp", &[])], &bad), None);
        assert_eq!(kind(&[partitioned(&[], 0, &[])], &bad), cycle);
        assert_eq!(kind(&[partitioned(&[], 0, &disabled(1))], &bad), None);
        let call = node("c", "f", &[]);
        let with = |value: u8| [call.clone(), disabled(value)].concat();
        assert_eq!(kind(&[with(1)], &bad), None);
        assert_eq!(kind(&[with(0)], &bad), cycle);
        assert_eq!(kind(&[[with(1), disabled(0)].concat()], &bad), cycle);
        let p = || node("p", "Placeholder", &[]);
        let good = [unary("f", &[], "x")];
        assert_eq!(kind(&[p(), partitioned(&["p"], 1, &[])], &good), None);
        assert_eq!(kind(&[p(), partitioned(&["p", "^p"], 2, &[])], &good), None);
        let few = kind(&[p(), partitioned(&["^p"], 1, &[])], &good);
        assert_eq!(few, Some(BodyFaultKind::FewInputs));
        let few = kind(&[p(), partitioned(&["p"], 0, &[])], &good);
        assert_eq!(few, Some(BodyFaultKind::FewOutputs));
        let untyped = [function("f", &[field(3, &argument("y", false))], &[], &[])];
        assert_eq!(kind(&[with(1)], &untyped), Some(BodyFaultKind::NoType));
        // Nothing is said of types where only the attribute names the function.
        let untyped = [function("f", &[field(2, &argument("x", false))], &[], &[])];
        assert_eq!(kind(&[p(), partitioned(&["p"], 0, &[])], &untyped), None);
    }

    #[test]
    fn a_call_is_come_to_in_the_order_of_visits() {
        let bad = [function("f", &[], &[node("a", "NoOp", &["^a"])], &[])];
        let before = |nodes: &[Vec<u8>]| {
            let graph = graph(nodes, &bad);
            let fault = graph.structure.as_ref().unwrap().kind;
            (fault, graph.deprecated_before_fault().len())
        };
        let called = StructureFaultKind::CalledFunction;
        let (old, call) = (node("o", "Old", &[]), node("c", "f", &[]));
        assert_eq!(before(&[old.clone(), call.clone()]), (called, 1));
        assert_eq!(before(&[call.clone(), old.clone()]), (called, 0));
        assert_eq!(before(&[node("c", "f", &["^o"]), old]), (called, 1));
        assert_eq!(before(&[node("q", "NoOp", &["^q"]), call.clone()]), (called, 0));
        let behind = [node("q", "NoOp", &["^q"]), node("c", "f", &["^q"])];
        assert_eq!(before(&behind), (StructureFaultKind::Cycle, 0));
        assert_eq!(before(&[call.clone(), call]), (StructureFaultKind::Duplicate, 0));
    }
}
