//! Reads functions: the index of each is made in one walk over its bytes.
//!
//! A [`FunctionReader`] reads one function after another, and remembers node signatures from one to
//! the next.
//!
//! Reads the signature, names of nodes, the targets of inputs and results, called functions and, if
//! requested, node signatures. Does not depend on the outputs of an operation or on the effect of a
//! call's attributes on a function.

use super::{
    argument::Argument,
    argument_attributes::ArgumentReader,
    body_signatures::BodySignatures,
    calls::{Call, CallReader, Operation},
    function::{BodyCall, BodyInput, BodyNode, FunctionIndex, Target},
    names::{Name, NameHasher},
    output_names::OutputNames,
    signature::SignatureReader,
};
use crate::{
    GraphError,
    attributes::{AttributeReader, AttributeValue},
    devices::DeviceReader,
    function_attributes::is_known_to_all,
    function_names::FunctionNames,
    growing,
    node_rules::{GradientName, PythonColocation},
    raw_nodes::{Reference, SignatureCache},
    rules::{LoopRole, is_body_name, is_control_input, is_node_name, is_partitioned_call},
    scan::{Piece, Step, Visitor, is_ascii},
    schema::{
        ATTR_VALUE, ATTR_VALUE_LIST_VALUE, FUNCTION_DEF, FUNCTION_DEF_CONTROL_RET_ENTRY,
        FUNCTION_DEF_RET_ENTRY, Field, MessageId, NODE_DEF, OP_DEF, OP_DEF_ARG_DEF,
        fields::{
            attr_value, function_def, function_def_ret_entry, node_def, op_def, op_def_arg_def,
        },
    },
    source::{Extent, Source},
    whole_text::WholeText,
};

/// The suffix that turns the name of a result into that of the node which returns it.
const RESULT: &[u8] = b"_RetVal";

/// Limit on the attribute names that are kept of one function.
const MOST_UNUSUAL: usize = 64;

/// The depth to which a function is read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FunctionDepth {
    /// Names, inputs and calls.
    Names,
    /// The function's signature and the node signatures as well.
    NodeSignatures,
}

/// Limit on the node signatures and names of outputs that are remembered.
const MOST_REMEMBERED: usize = 1 << 13;

/// Reads the functions of one library, one after another.
#[derive(Debug)]
pub struct FunctionReader {
    depth: FunctionDepth,
    /// The known nodes.
    known: SignatureCache<BodyNodeFacts>,
    node_signatures: BodySignatures,
    outputs: OutputNames,
}

impl FunctionReader {
    pub fn new(depth: FunctionDepth) -> Self {
        let (node_signatures, outputs) = (BodySignatures::default(), OutputNames::default());
        Self { depth, known: SignatureCache::default(), node_signatures, outputs }
    }

    /// Returns true if it remembers so much that it should be replaced by a new reader.
    pub fn is_full(&self) -> bool {
        self.node_signatures.len().max(self.outputs.len()) > MOST_REMEMBERED
    }

    /// Reads the function at `place`.
    pub fn read(
        &mut self,
        source: Source<'_>,
        place: Extent,
        functions: &FunctionNames,
        release: i32,
    ) -> Result<FunctionIndex, GraphError> {
        self.node_signatures.begin_function();
        let index = FunctionIndex { outputs: self.outputs.clone(), ..FunctionIndex::default() };
        let mut visitor = FunctionVisitor {
            functions,
            release,
            depth: self.depth,
            hasher: NameHasher::default(),
            index,
            position: Position::Elsewhere,
            begins: 0,
            start: place.start,
            node: BodyNode::default(),
            node_begins: 0,
            operation: Vec::new(),
            call: CallReader::default(),
            over: 0,
            attributes: AttributeReader::default(),
            node_signatures: &mut self.node_signatures,
            signature: SignatureReader::default(),
            control_inputs: false,
            argument: Argument::default(),
            returned: Returned::default(),
            given: ArgumentReader::default(),
            text: WholeText::default(),
            devices: DeviceReader::default(),
            known: &mut self.known,
        };
        source.walk_part(place, FUNCTION_DEF, &mut visitor)?;
        let oversized = visitor.text.oversized || visitor.signature.is_oversized();
        let FunctionVisitor { signature, given, hasher, index, node_signatures, .. } = visitor;
        let (given, mut own_tensors, is_too_much) = given.finish();
        let ((node_signatures, signature_numbers), (signature, default_tensors)) =
            (node_signatures.of_function(), signature.finish());
        own_tensors.passing.extend(default_tensors);
        Ok(FunctionIndex {
            oversized: oversized || is_too_much,
            node_signatures,
            signature_numbers,
            signature,
            given,
            own_tensors,
            hasher,
            ..index
        })
    }
}

/// The position of the walk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Position {
    Elsewhere,
    Signature,
    Argument,
    Result,
    /// In an attribute of the function, or of an argument.
    Given,
    Node,
}

/// The facts about a node that follow from its operation and attributes.
#[derive(Clone, Copy, Debug)]
struct BodyNodeFacts {
    call: Option<Call>,
    is_function: bool,
    loop_role: LoopRole,
    gradient: GradientName,
    /// The hash of its registered gradient function.
    registered: Option<u64>,
    /// The number of its node signature among those of all functions.
    node_signature: u32,
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
    depth: FunctionDepth,
    hasher: NameHasher,
    index: FunctionIndex,
    position: Position,
    /// The position of the next message, from the start of the function.
    begins: u64,
    /// The position of the function in the file.
    start: u64,
    node: BodyNode,
    node_begins: u64,
    operation: Vec<u8>,
    call: CallReader,
    /// The number of open messages that the reader of calls skips.
    over: u32,
    attributes: AttributeReader,
    node_signatures: &'a mut BodySignatures,
    signature: SignatureReader,
    /// True if the node has a control input.
    control_inputs: bool,
    argument: Argument,
    returned: Returned,
    given: ArgumentReader,
    text: WholeText,
    devices: DeviceReader,
    /// The known nodes.
    known: &'a mut SignatureCache<BodyNodeFacts>,
}

impl FunctionVisitor<'_> {
    fn wants_node_signatures(&self) -> bool {
        self.depth == FunctionDepth::NodeSignatures
    }

    fn is_in_signature(&self) -> bool {
        matches!(self.position, Position::Signature | Position::Argument | Position::Result)
    }

    fn begin_node(&mut self) {
        self.position = Position::Node;
        self.node_begins = self.begins;
        self.operation.clear();
        self.attributes.clear();
        // Without a name and an operation until they are read.
        self.node = BodyNode {
            name: self.hasher.hash(b""),
            bad_name: !is_body_name(b""),
            bad_graph_name: !is_node_name(b""),
            no_operation: true,
            ..BodyNode::default()
        };
        self.call.clear();
        self.control_inputs = false;
    }

    fn begin_argument(&mut self, position: Position) {
        self.position = position;
        // Without a name until it is read.
        self.argument = Argument::default();
        self.argument.name_it(b"", position, &self.hasher);
    }

    fn end_of_node(&mut self, end: u64) {
        self.position = Position::Elsewhere;
        let (mut node_signature, mut registered) = (0, None);
        if self.wants_node_signatures() {
            let attributes = self.attributes.attributes();
            node_signature = self.node_signatures.number(&self.operation, attributes);
            self.node.signature = self.node_signatures.in_function(node_signature);
            let (hasher, own) = (&self.hasher, self.node.name);
            let colocation = PythonColocation::of(attributes, |name| hasher.hash(name) == own);
            self.node.bad_device &= colocation != PythonColocation::BesideAnother;
            self.node.bad_class = colocation == PythonColocation::Unreadable;
            self.node.gradient = GradientName::of(attributes);
            let has_own = self.node.is_function || is_partitioned_call(&self.operation);
            registered = match attributes.get("_gradient_op_type") {
                Some(AttributeValue::String(text)) if !has_own => {
                    self.functions.registered(text.bytes.unwrap_or_default())
                }
                _ => None,
            };
            let node = u32::try_from(self.index.nodes.len()).unwrap_or(u32::MAX);
            let compared = attributes.iter().filter(|(name, _)| !name.starts_with(b"_"));
            let mut tensors = compared.filter_map(|(_, value)| match value {
                AttributeValue::Tensor(tensor) => tensor.diagnostic(),
                _ => None,
            });
            self.index.malformed.extend(tensors.next().map(|diagnostic| (node, diagnostic)));
        }
        let call = self.call.call(true);
        let BodyNode { is_function, loop_role, gradient, .. } = self.node;
        match self.text.oversized {
            true => self.known.forget(),
            false => {
                self.known.learn(BodyNodeFacts {
                    call,
                    is_function,
                    loop_role,
                    gradient,
                    registered,
                    node_signature,
                });
            }
        }
        self.add_node((call, registered), self.node_begins, end);
    }

    /// Adds the node, with the function that it calls and the hash of its registered gradient.
    fn add_node(&mut self, (call, registered): (Option<Call>, Option<u64>), begin: u64, end: u64) {
        let node = u32::try_from(self.index.nodes.len()).unwrap_or(u32::MAX);
        let in_file = |at: u64| self.start.saturating_add(at);
        let place = Extent { start: in_file(begin), end: in_file(end) };
        if let Some(call) = call {
            growing::push(&mut self.index.calls, BodyCall { call, node, place });
        }
        if self.wants_node_signatures() && self.node_signatures.is_constant(self.node.signature) {
            self.index.constants.push((node, place));
        }
        self.index.registered.extend(registered.map(|function| (node, function)));
        growing::push(&mut self.index.nodes, self.node);
    }

    /// Adds a node in the canonical encoding that is like an earlier one.
    fn take_node(&mut self, bytes: &[u8], end: u64, depth: usize) -> Option<()> {
        let node = u32::try_from(self.index.nodes.len()).unwrap_or(u32::MAX);
        let inputs_before = self.index.inputs.len();
        let FunctionIndex { inputs, outputs, .. } = &mut self.index;
        let (known, hasher, devices) = (&mut *self.known, &self.hasher, &mut self.devices);
        let (mut has_control, mut input_order) = (false, false);
        let (mut bad_device, mut bad_session_device) = (false, false);
        let canonical = known.read(bytes, depth, |reference| {
            match reference {
                Reference::Input(text, _) => {
                    let is_control = is_control_input(text);
                    has_control |= is_control;
                    input_order |= has_control && !is_control;
                    inputs.push(BodyInput { node, target: Target::of(hasher, outputs, text) });
                }
                Reference::Device(device) => {
                    bad_device = !devices.is_device(device);
                    bad_session_device = !devices.is_session_device(device);
                }
                Reference::Colocated(_) => {}
            }
            true
        });
        // The relevance of a device depends on the colocation of the node.
        let canonical = canonical.filter(|_| !bad_device);
        let canonical = canonical
            .filter(|canonical| is_ascii(canonical.name) && !canonical.operation.is_empty());
        let found = canonical
            .and_then(|canonical| Some((canonical.name, known.find(canonical.operation)?)));
        let Some((name, facts)) = found else {
            // The node starts again.
            self.index.inputs.truncate(inputs_before);
            return None;
        };
        let wants_node_signatures = self.depth == FunctionDepth::NodeSignatures;
        self.node = BodyNode {
            name: hasher.hash(name),
            bad_name: !is_body_name(name),
            bad_graph_name: !is_node_name(name),
            no_operation: false,
            bad_device: false,
            bad_session_device,
            bad_class: false,
            gradient: facts.gradient,
            is_function: facts.is_function,
            input_order,
            loop_role: facts.loop_role,
            signature: if wants_node_signatures {
                self.node_signatures.in_function(facts.node_signature)
            } else {
                0
            },
        };
        self.add_node((facts.call, facts.registered), end.saturating_sub(bytes.len() as u64), end);
        Some(())
    }

    /// Enters a message inside a node if one of the readers wants it.
    fn enter_in_node(&mut self, message: MessageId, field: &'static Field) -> Step {
        let attributes = match self.wants_node_signatures() {
            true => self.attributes.enter(message, field),
            false => Step::Over,
        };
        let call = if self.over > 0 { Step::Over } else { self.call.enter(message, field) };
        if call == Step::Into || attributes == Step::Over {
            return call;
        }
        self.over += 1;
        Step::Into
    }

    fn leave_in_node(&mut self, message: MessageId, field: &'static Field) {
        if self.wants_node_signatures() {
            self.attributes.leave(message, field);
        }
        match self.over.checked_sub(1) {
            Some(over) => self.over = over,
            None => self.call.leave(message, field),
        }
    }

    fn end_of_attribute(&mut self) {
        let unusual = &mut self.index.unusual_attributes;
        let name = self.given.end_attribute();
        if !is_known_to_all(name) && unusual.len() < MOST_UNUSUAL {
            unusual.push(String::from_utf8_lossy(name).into_owned());
        }
        self.position = Position::Elsewhere;
    }

    fn end_of_argument(&mut self) {
        match self.position {
            Position::Argument => self.index.arguments.push(self.argument),
            Position::Result => self.index.results.push(self.argument),
            Position::Elsewhere | Position::Signature | Position::Given | Position::Node => {}
        }
        self.position = Position::Signature;
    }
}

impl Argument {
    fn name_it(&mut self, name: &[u8], position: Position, hasher: &NameHasher) {
        let result = [name, RESULT].concat();
        self.name = hasher.hash(name);
        self.result = hasher.hash(&result);
        self.bad_graph_name = !is_node_name(name);
        self.bad_name = match position {
            Position::Result => !is_body_name(&result),
            _ => !is_body_name(name),
        };
    }
}

impl Visitor for FunctionVisitor<'_> {
    fn values(&self) -> Option<&dyn Visitor> {
        match self.position {
            Position::Node if self.wants_node_signatures() => Some(&self.attributes),
            Position::Given => Some(self.given.values()),
            Position::Elsewhere | Position::Node => None,
            _ => self.signature.default_value(),
        }
    }

    fn values_mut(&mut self) -> Option<&mut dyn Visitor> {
        match self.position {
            Position::Node if self.wants_node_signatures() => Some(&mut self.attributes),
            Position::Given => Some(self.given.values_mut()),
            Position::Elsewhere | Position::Node => None,
            _ => self.signature.default_value_mut(),
        }
    }

    fn begins(&mut self, at: u64) {
        self.begins = at;
    }

    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        let signature = match self.is_in_signature() && self.wants_node_signatures() {
            true => self.signature.enter(message, field),
            false => Step::Over,
        };
        match (message, field.number) {
            (FUNCTION_DEF, function_def::SIGNATURE) => self.position = Position::Signature,
            (OP_DEF, op_def::INPUT_ARG) => self.begin_argument(Position::Argument),
            (OP_DEF, op_def::OUTPUT_ARG) => self.begin_argument(Position::Result),
            (FUNCTION_DEF, function_def::NODE_DEF) => self.begin_node(),
            (FUNCTION_DEF, function_def::RET | function_def::CONTROL_RET) => {
                self.returned = Returned { result: self.hasher.hash(b""), target: None };
            }
            (FUNCTION_DEF, function_def::ATTR) if self.wants_node_signatures() => {
                self.position = Position::Given;
                self.given.begin_attribute();
            }
            (FUNCTION_DEF, function_def::ARG_ATTR) if self.wants_node_signatures() => {
                self.position = Position::Given;
                self.given.begin_argument();
            }
            (OP_DEF_ARG_DEF, op_def_arg_def::HANDLE_DATA) => {
                self.argument.has_handle_data = true;
                return signature;
            }
            _ if self.position == Position::Given => return self.given.enter(message, field),
            _ if self.position == Position::Node => return self.enter_in_node(message, field),
            _ => return signature,
        }
        Step::Into
    }

    fn leave(&mut self, message: MessageId, field: &'static Field, at: u64) {
        if self.is_in_signature() && self.wants_node_signatures() {
            self.signature.leave(message, field);
        }
        match (message, field.number) {
            (FUNCTION_DEF, function_def::NODE_DEF) => self.end_of_node(at),
            (FUNCTION_DEF, function_def::SIGNATURE) => self.position = Position::Elsewhere,
            (OP_DEF, op_def::INPUT_ARG | op_def::OUTPUT_ARG) => self.end_of_argument(),
            (FUNCTION_DEF, function_def::RET) => {
                self.index.returns.insert(self.returned.result, self.returned.target);
            }
            (FUNCTION_DEF, function_def::CONTROL_RET) => {
                let nowhere = || Target::of(&self.hasher, &self.index.outputs, b"");
                let target = self.returned.target.unwrap_or_else(nowhere);
                self.index.control_returns.insert(self.returned.result, target);
            }
            (FUNCTION_DEF, function_def::ATTR) if self.wants_node_signatures() => {
                self.end_of_attribute()
            }
            (FUNCTION_DEF, function_def::ARG_ATTR) if self.wants_node_signatures() => {
                self.given.end_argument();
                self.position = Position::Elsewhere;
            }
            _ if self.position == Position::Given => self.given.leave(message, field),
            _ if self.position == Position::Node => self.leave_in_node(message, field),
            _ => {}
        }
    }

    fn integer(&mut self, message: MessageId, field: &'static Field, value: u64) {
        match self.position {
            Position::Elsewhere => {}
            Position::Given => self.given.integer(message, field, value),
            Position::Node => {
                if self.wants_node_signatures() {
                    self.attributes.integer(message, field, value);
                }
                if self.over == 0 {
                    self.call.integer(message, field, value);
                }
            }
            Position::Signature | Position::Argument | Position::Result => {
                // An enumeration uses the low 32 bits of its varint.
                if (message, field.number) == (OP_DEF_ARG_DEF, op_def_arg_def::TYPE) {
                    self.argument.data_type = value as u32 as i32;
                }
                if self.wants_node_signatures() {
                    self.signature.integer(message, field, value);
                }
            }
        }
    }

    fn string(&mut self, message: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        if self.position == Position::Given {
            self.given.string(message, field, piece, is);
            return;
        }
        if self.is_in_signature() && self.wants_node_signatures() {
            self.signature.string(message, field, piece, is);
        }
        match message {
            NODE_DEF => self.node_string(field, piece, is),
            OP_DEF_ARG_DEF => self.argument_string(field, piece, is),
            OP_DEF if field.number == op_def::CONTROL_OUTPUT => {
                let Some(text) = self.text.take(piece, is) else { return };
                self.index.control_outputs.push(self.hasher.hash(text));
            }
            // Both have the same fields.
            FUNCTION_DEF_RET_ENTRY | FUNCTION_DEF_CONTROL_RET_ENTRY => {
                let Some(text) = self.text.take(piece, is) else { return };
                if field.number == function_def_ret_entry::KEY {
                    self.returned.result = self.hasher.hash(text);
                } else {
                    let target = Target::of(&self.hasher, &self.index.outputs, text);
                    self.returned.target = Some(target);
                }
            }
            _ if self.position == Position::Node => {
                if self.wants_node_signatures() {
                    self.attributes.string(message, field, piece, is);
                }
                if self.over == 0 {
                    self.call.string(message, field, piece, is, self.functions);
                }
            }
            _ => {}
        }
    }

    fn wants_packed(&self, message: MessageId) -> bool {
        let of_list = self.position == Position::Node && message == ATTR_VALUE_LIST_VALUE;
        of_list || self.values().is_some_and(|values| values.wants_packed(message))
    }

    fn wants_bytes(&self, message: MessageId, field: &'static Field) -> bool {
        // A string replaces another value.
        let is_value = (message, field.number) == (ATTR_VALUE, attr_value::S);
        (self.position == Position::Node && is_value)
            || self.values().is_some_and(|values| values.wants_bytes(message, field))
    }

    fn release(&self) -> i32 {
        self.release
    }

    fn wants_whole(&self, message: MessageId, field: &'static Field) -> bool {
        (message, field.number) == (FUNCTION_DEF, function_def::NODE_DEF)
    }

    fn take(
        &mut self,
        message: MessageId,
        field: &'static Field,
        bytes: &[u8],
        end: u64,
        depth: usize,
    ) -> bool {
        (message, field.number) == (FUNCTION_DEF, function_def::NODE_DEF)
            && self.take_node(bytes, end, depth).is_some()
    }
}

impl FunctionVisitor<'_> {
    fn node_string(&mut self, field: &'static Field, piece: &[u8], is: Piece) {
        let wants_node_signatures = self.wants_node_signatures();
        if field.number == node_def::DEVICE {
            if let Some(device) = self.text.take(piece, is) {
                self.node.bad_device = !self.devices.is_device(device);
                self.node.bad_session_device = !self.devices.is_session_device(device);
            }
            return;
        }
        if !matches!(field.number, node_def::NAME | node_def::OP | node_def::INPUT) {
            return;
        }
        let Some(text) = self.text.take(piece, is) else { return };
        match field.number {
            node_def::NAME => {
                self.node.name = self.hasher.hash(text);
                self.node.bad_name = !is_body_name(text);
                self.node.bad_graph_name = !is_node_name(text);
            }
            node_def::OP => {
                let operation = Operation::of(text, self.functions);
                self.call.operation(operation);
                self.node.is_function = matches!(operation, Operation::Function(_));
                self.node.no_operation = text.is_empty();
                self.node.loop_role = LoopRole::of(text);
                if wants_node_signatures {
                    self.operation.clear();
                    self.operation.extend_from_slice(text);
                }
            }
            _ => {
                let is_control = is_control_input(text);
                self.control_inputs |= is_control;
                self.node.input_order |= self.control_inputs && !is_control;
                let node = u32::try_from(self.index.nodes.len()).unwrap_or(u32::MAX);
                let target = Target::of(&self.hasher, &self.index.outputs, text);
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
