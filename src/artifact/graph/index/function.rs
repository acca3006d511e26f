//! The index of one function, made in one walk over its bytes.
//!
//! Knows what can be said of a function without a list of TensorFlow's operations: names of nodes,
//! arguments and results, what inputs and results refer to, which functions are called. Which
//! outputs an operation has, and what the attributes of a call make of a function, is left alone.

use std::collections::HashMap;

use super::{
    calls::{Call, CallReader, Operation},
    names::{Name, NameHasher},
};
use crate::{
    artifact::{
        graph::{
            GraphError,
            function_names::FunctionNames,
            rules::{LoopRole, is_body_name, is_control_input},
            source::{Extent, Source},
            whole_text::WholeText,
        },
        schema::{
            ATTR_VALUE, ATTR_VALUE_LIST_VALUE, FUNCTION_DEF, FUNCTION_DEF_RET_ENTRY, Field,
            MessageId, NODE_DEF, OP_DEF, OP_DEF_ARG_DEF,
            fields::{
                attr_value, function_def, function_def_ret_entry, node_def, op_def, op_def_arg_def,
            },
        },
    },
    wire::scan::{Piece, Step, Visitor},
};

/// What is appended to the name of a result to name the node that returns it.
const RESULT: &[u8] = b"_RetVal";

/// What comes behind the first colon of an input or of what is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Suffix {
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

impl Suffix {
    fn of(suffix: &[u8]) -> Self {
        match suffix {
            [] => Self::None,
            b":0" => Self::Zero,
            [_, b'1'..=b'9', more @ ..] if more.iter().all(u8::is_ascii_digit) => Self::Number,
            [_, b'a'..=b'z', ..] => Self::Output,
            _ => Self::Other,
        }
    }
}

/// What an input or a result names.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Target {
    pub(in super::super) name: Name,
    pub(in super::super) suffix: Suffix,
    pub(in super::super) control: bool,
}

/// An argument or a result of a function.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct Argument {
    pub(in super::super) name: Name,
    /// The name of the node that returns a result.
    pub(in super::super) result: Name,
    pub(in super::super) bad_name: bool,
    /// Its type, 0 if it has none.
    pub(in super::super) data_type: i32,
    pub(in super::super) type_attribute: bool,
    pub(in super::super) number_attribute: bool,
    pub(in super::super) list_attribute: bool,
}

/// A node of a function.
#[derive(Clone, Copy, Debug, Default)]
pub(in super::super) struct BodyNode {
    pub(in super::super) name: Name,
    pub(in super::super) bad_name: bool,
    pub(in super::super) no_operation: bool,
    /// Whether its operation is a function of the library, which may call its outputs anything.
    pub(in super::super) is_function: bool,
    /// Whether an input of data comes after a control input.
    pub(in super::super) input_order: bool,
    pub(in super::super) loop_role: LoopRole,
}

/// An input of a node of a function.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct BodyInput {
    /// The number of the node.
    pub(in super::super) node: u32,
    pub(in super::super) target: Target,
}

/// What the importer looks at in a function.
#[derive(Debug, Default)]
pub(in super::super) struct FunctionIndex {
    pub(in super::super) arguments: Vec<Argument>,
    pub(in super::super) results: Vec<Argument>,
    pub(in super::super) nodes: Vec<BodyNode>,
    pub(in super::super) inputs: Vec<BodyInput>,
    /// By the name of a result, what is returned as it; `None` where nothing is named.
    pub(in super::super) returns: HashMap<Name, Option<Target>>,
    /// In the order of the nodes.
    pub(in super::super) calls: Vec<Call>,
    /// Whether a name was too long to be looked at, so that nothing is known of the function.
    pub(in super::super) oversized: bool,
}

impl FunctionIndex {
    /// Reads the function at `place`.
    pub(in super::super) fn read(
        source: Source<'_>,
        place: Extent,
        functions: &FunctionNames,
        release: i32,
    ) -> Result<Self, GraphError> {
        let mut visitor = FunctionVisitor {
            functions,
            release,
            hasher: NameHasher::default(),
            index: Self::default(),
            position: Position::Elsewhere,
            node: BodyNode::default(),
            call: CallReader::default(),
            control_inputs: false,
            argument: Argument::default(),
            returned: Returned::default(),
            text: WholeText::default(),
        };
        source.walk_part(place, FUNCTION_DEF, &mut visitor)?;
        let oversized = visitor.text.oversized;
        Ok(Self { oversized, ..visitor.index })
    }
}

/// Where the walk is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    Elsewhere,
    Signature,
    Argument,
    Result,
    Node,
}

/// An entry of the map of what is returned.
#[derive(Clone, Copy, Debug, Default)]
struct Returned {
    result: Name,
    target: Option<Target>,
}

/// A walk over one function.
struct FunctionVisitor<'a> {
    functions: &'a FunctionNames,
    /// The GraphDef version of the release that is to read the graph.
    release: i32,
    hasher: NameHasher,
    index: FunctionIndex,
    position: Position,
    node: BodyNode,
    call: CallReader,
    /// Whether the node has a control input.
    control_inputs: bool,
    argument: Argument,
    returned: Returned,
    text: WholeText,
}

fn target_of(hasher: &NameHasher, text: &[u8]) -> Target {
    let (text, control) = match text.strip_prefix(b"^") {
        Some(name) => (name, true),
        None => (text, false),
    };
    let colon = text.iter().position(|byte| *byte == b':');
    let (name, suffix) = colon.and_then(|at| text.split_at_checked(at)).unwrap_or((text, b""));
    Target { name: hasher.hash(name), suffix: Suffix::of(suffix), control }
}

impl FunctionVisitor<'_> {
    fn begin_node(&mut self) {
        self.position = Position::Node;
        // Without a name and an operation until it says them.
        self.node = BodyNode {
            name: self.hasher.hash(b""),
            bad_name: !is_body_name(b""),
            no_operation: self.functions.find(b"").is_none(),
            ..BodyNode::default()
        };
        self.call.clear();
        self.control_inputs = false;
    }

    fn begin_argument(&mut self, position: Position) {
        self.position = position;
        // Without a name until it says one.
        self.argument = Argument::default();
        self.argument.name_it(b"", position, &self.hasher);
    }

    fn end_of_node(&mut self) {
        self.position = Position::Elsewhere;
        self.index.calls.extend(self.call.call(true));
        self.index.nodes.push(self.node);
    }

    fn end_of_argument(&mut self) {
        match self.position {
            Position::Argument => self.index.arguments.push(self.argument),
            Position::Result => self.index.results.push(self.argument),
            Position::Elsewhere | Position::Signature | Position::Node => {}
        }
        self.position = Position::Signature;
    }
}

impl Argument {
    fn name_it(&mut self, name: &[u8], position: Position, hasher: &NameHasher) {
        let result = [name, RESULT].concat();
        self.name = hasher.hash(name);
        self.result = hasher.hash(&result);
        self.bad_name = match position {
            Position::Result => !is_body_name(&result),
            _ => !is_body_name(name),
        };
    }
}

impl Visitor for FunctionVisitor<'_> {
    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        match (message, field.number) {
            (FUNCTION_DEF, function_def::SIGNATURE) => self.position = Position::Signature,
            (OP_DEF, op_def::INPUT_ARG) => self.begin_argument(Position::Argument),
            (OP_DEF, op_def::OUTPUT_ARG) => self.begin_argument(Position::Result),
            (FUNCTION_DEF, function_def::NODE_DEF) => self.begin_node(),
            (FUNCTION_DEF, function_def::RET) => {
                self.returned = Returned { result: self.hasher.hash(b""), target: None };
            }
            _ if self.position == Position::Node => return self.call.enter(message, field),
            _ => return Step::Over,
        }
        Step::Into
    }

    fn leave(&mut self, message: MessageId, field: &'static Field, _at: u64) {
        match (message, field.number) {
            (FUNCTION_DEF, function_def::NODE_DEF) => self.end_of_node(),
            (FUNCTION_DEF, function_def::SIGNATURE) => self.position = Position::Elsewhere,
            (OP_DEF, op_def::INPUT_ARG | op_def::OUTPUT_ARG) => self.end_of_argument(),
            (FUNCTION_DEF, function_def::RET) => {
                self.index.returns.insert(self.returned.result, self.returned.target);
            }
            _ if self.position == Position::Node => self.call.leave(message, field),
            _ => {}
        }
    }

    fn integer(&mut self, message: MessageId, field: &'static Field, value: u64) {
        match (message, field.number) {
            // An enumeration is the low half of its varint.
            (OP_DEF_ARG_DEF, op_def_arg_def::TYPE) => self.argument.data_type = value as u32 as i32,
            _ if self.position == Position::Node => self.call.integer(message, field, value),
            _ => {}
        }
    }

    fn string(&mut self, message: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        match message {
            NODE_DEF => self.node_string(field, piece, is),
            OP_DEF_ARG_DEF => self.argument_string(field, piece, is),
            FUNCTION_DEF_RET_ENTRY => {
                let Some(text) = self.text.take(piece, is) else { return };
                if field.number == function_def_ret_entry::KEY {
                    self.returned.result = self.hasher.hash(text);
                } else {
                    self.returned.target = Some(target_of(&self.hasher, text));
                }
            }
            _ if self.position == Position::Node => {
                self.call.string(message, field, piece, is, self.functions);
            }
            _ => {}
        }
    }

    fn wants_packed(&self, message: MessageId) -> bool {
        self.position == Position::Node && message == ATTR_VALUE_LIST_VALUE
    }

    fn wants_bytes(&self, message: MessageId, field: &'static Field) -> bool {
        // A string takes the place of another value.
        self.position == Position::Node && (message, field.number) == (ATTR_VALUE, attr_value::S)
    }

    fn release(&self) -> i32 {
        self.release
    }
}

impl FunctionVisitor<'_> {
    fn node_string(&mut self, field: &'static Field, piece: &[u8], is: Piece) {
        if !matches!(field.number, node_def::NAME | node_def::OP | node_def::INPUT) {
            return;
        }
        let Some(text) = self.text.take(piece, is) else { return };
        match field.number {
            node_def::NAME => {
                self.node.name = self.hasher.hash(text);
                self.node.bad_name = !is_body_name(text);
            }
            node_def::OP => {
                let operation = Operation::of(text, self.functions);
                self.call.operation(operation);
                self.node.is_function = matches!(operation, Operation::Function(_));
                self.node.no_operation = text.is_empty() && !self.node.is_function;
                self.node.loop_role = LoopRole::of(text);
            }
            _ => {
                let is_control = is_control_input(text);
                self.control_inputs |= is_control;
                self.node.input_order |= self.control_inputs && !is_control;
                let node = u32::try_from(self.index.nodes.len()).unwrap_or(u32::MAX);
                let target = target_of(&self.hasher, text);
                self.index.inputs.push(BodyInput { node, target });
            }
        }
    }

    fn argument_string(&mut self, field: &'static Field, piece: &[u8], is: Piece) {
        let Some(text) = self.text.take(piece, is) else { return };
        match field.number {
            op_def_arg_def::NAME => self.argument.name_it(text, self.position, &self.hasher),
            op_def_arg_def::TYPE_ATTR => self.argument.type_attribute = !text.is_empty(),
            op_def_arg_def::NUMBER_ATTR => self.argument.number_attribute = !text.is_empty(),
            op_def_arg_def::TYPE_LIST_ATTR => self.argument.list_attribute = !text.is_empty(),
            _ => {}
        }
    }
}
