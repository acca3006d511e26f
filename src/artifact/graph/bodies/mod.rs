//! Whether the functions that the nodes of a graph call can be built.
//!
//! TensorFlow's importer builds the body of a function when it comes to the first node that calls it, and then what that body calls;
//! the other functions of the library it leaves alone. Only graphs that have functions are walked over again, to find the calls, and
//! only where there is one, the bodies are looked at in another walk. Memory is proportional to the calls and to the largest body.
//!
//! Knows what can be said without a list of TensorFlow's operations: names, inputs and results that name nothing, types that are not
//! there, cycles. Which outputs an operation has, and what the attributes of a call make of a function, is left alone.

mod body;

use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher};

pub use self::body::BodyFaultKind;
use self::body::{Argument, Body, Name, Node, Part, Suffix, Target, count, is_body_name, numbered};
use super::calls::{Call, CallReader, Operation};
use super::functions::FunctionNames;
use super::plain::short_field;
use super::structure::{LoopRole, shown};
use crate::artifact::schema::{
    ATTR_VALUE, ATTR_VALUE_LIST_VALUE, FUNCTION_DEF, FUNCTION_DEF_LIBRARY, FUNCTION_DEF_RET_ENTRY,
    Field, GRAPH_DEF, META_GRAPH_DEF, MessageId, NODE_DEF, OP_DEF, OP_DEF_ARG_DEF, SAVED_MODEL,
};
use crate::wire::scan::{Piece, Step, Visitor};

/// A body with a name that is longer than this, in bytes, is taken as it is without being looked at: no real one has one.
const LONGEST_NAME: usize = 1 << 20;

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
mod tests;
