//! Reads the indexed parts of a node outside functions.

use super::{
    calls::{Call, CallReader, Operation},
    colocation::ColocationReader,
    graph_index::{NamedInput, NodeMismatch},
    names::{Name, NodeNames},
};
use crate::{
    attributes::{AttributeReader, Attributes},
    characters::Seen,
    devices::DeviceReader,
    function_names::FunctionNames,
    node_rules::PythonColocation,
    rules::{Output, input_node, input_node_seen, is_control_input, is_node_name},
    scan::{Piece, Step},
    schema::{Field, MessageId, NODE_DEF, fields::node_def},
    whole_text::WholeText,
};

/// A node while it is read.
#[derive(Debug, Default)]
pub(super) struct NodeReader {
    pub(super) name: Vec<u8>,
    pub(super) operation: Vec<u8>,
    /// Empty unless inputs are requested.
    pub(super) inputs: Vec<NamedInput>,
    pub(super) data_inputs: u32,
    colocation: ColocationReader,
    /// The nodes that a canonically encoded node is colocated with.
    beside: Vec<Name>,
    call: CallReader,
    attributes: AttributeReader,
    /// The number of open messages that only `attributes` entered.
    beneath: u32,
    text: WholeText,
    devices: DeviceReader,
    /// True if its device is invalid.
    pub(super) bad_device: bool,
    /// The device, where no session can read it.
    pub(super) session_device: Option<String>,
    has_control_input: bool,
    data_after_control: bool,
}

/// The parts of a node that are read besides its name and operation.
#[derive(Clone, Copy, Debug)]
pub(super) struct NodeParts {
    /// Inputs, and colocation constraints.
    pub(super) edges: bool,
    /// The function that it calls.
    pub(super) call: bool,
    /// All of its attributes.
    pub(super) attributes: bool,
}

impl NodeReader {
    pub(super) fn clear(&mut self) {
        self.name.clear();
        self.operation.clear();
        self.inputs.clear();
        self.data_inputs = 0;
        self.colocation.clear();
        self.beside.clear();
        self.call.clear();
        self.attributes.clear();
        self.beneath = 0;
        self.text.oversized = false;
        self.bad_device = false;
        self.session_device = None;
        self.has_control_input = false;
        self.data_after_control = false;
    }

    /// Returns Python's reading of its attribute `_class`, if attributes are requested.
    pub(super) fn python_colocation(&self) -> PythonColocation {
        PythonColocation::of(self.attributes(), |name| name == self.name)
    }

    /// Prepares for a node in the canonical encoding.
    #[inline]
    pub(super) fn begin_canonical(&mut self) {
        self.inputs.clear();
        self.data_inputs = 0;
        self.colocation.clear();
        self.beside.clear();
        self.has_control_input = false;
    }

    /// Adds an input of a canonically encoded node; returns false if no node can have it.
    #[inline]
    pub(super) fn canonical_input(
        &mut self,
        input: &[u8],
        seen: Seen,
        names: &mut NodeNames,
    ) -> bool {
        let is_control = is_control_input(input);
        if self.has_control_input && !is_control {
            return false;
        }
        self.has_control_input = is_control;
        self.data_inputs += u32::from(!is_control);
        let node = input_node_seen(input, seen);
        let (name, output) = (names.number(node), Output::of(input, node));
        self.inputs.push(NamedInput { name, output });
        true
    }

    /// Adds a node with which a canonically encoded node is colocated.
    pub(super) fn canonical_colocation(&mut self, name: &[u8], names: &NodeNames) {
        self.beside.push(names.hasher().hash(name));
    }

    /// Returns true if Python and sessions can read the device of a canonically encoded node.
    #[inline]
    pub(super) fn canonical_device(&mut self, device: &[u8]) -> bool {
        self.devices.is_device(device) && self.devices.is_session_device(device)
    }

    /// Returns the names of the nodes with which the node is colocated.
    pub(super) fn beside(&self) -> impl Iterator<Item = Name> + '_ {
        self.colocation.names().iter().chain(&self.beside).copied()
    }

    /// Returns true if a name, operation or input was too long to be checked.
    pub(super) fn is_oversized(&self) -> bool {
        self.text.oversized
    }

    /// Returns the function that the node calls.
    pub(super) fn call(&mut self, functions: &FunctionNames) -> Option<Call> {
        self.call.operation(Operation::of(&self.operation, functions));
        self.call.call(false)
    }

    /// Returns the diagnostics of the node with this name that make any graph invalid, other than a
    /// repeated name.
    pub(super) fn mismatch(&self, name: &[u8]) -> NodeMismatch {
        NodeMismatch {
            bad_name: !is_node_name(name),
            repeated_name: false,
            no_operation: self.operation.is_empty(),
            input_order: self.data_after_control,
        }
    }

    /// Returns its attributes, if requested.
    pub(super) fn attributes(&self) -> &Attributes {
        self.attributes.attributes()
    }

    pub(super) fn enter(
        &mut self,
        message: MessageId,
        field: &'static Field,
        parts: NodeParts,
    ) -> Step {
        let attributes =
            if parts.attributes { self.attributes.enter(message, field) } else { Step::Over };
        if self.beneath > 0 {
            self.beneath += 1;
            return attributes;
        }
        let colocation =
            if parts.edges { self.colocation.enter(message, field) } else { Step::Over };
        let call = if parts.call { self.call.enter(message, field) } else { Step::Over };
        if colocation == Step::Into || call == Step::Into {
            return Step::Into;
        }
        self.beneath += u32::from(attributes == Step::Into);
        attributes
    }

    pub(super) fn leave(&mut self, message: MessageId, field: &'static Field, parts: NodeParts) {
        if parts.attributes {
            self.attributes.leave(message, field);
        }
        if self.beneath > 0 {
            self.beneath -= 1;
            return;
        }
        self.colocation.leave(message, field);
        self.call.leave(message, field);
    }

    pub(super) fn integer(&mut self, message: MessageId, field: &'static Field, value: u64) {
        self.attributes.integer(message, field, value);
        if self.beneath == 0 {
            self.colocation.integer(message);
            self.call.integer(message, field, value);
        }
    }

    pub(super) fn floats(
        &mut self,
        message: MessageId,
        field: &'static Field,
        count: u64,
        bytes: &[u8],
    ) {
        self.attributes.floats(message, field, count, bytes);
        if self.beneath == 0 {
            self.colocation.integer(message);
            self.call.integer(message, field, 0);
        }
    }

    /// Handles a field of bytes that is too long to be passed in one piece.
    pub(super) fn long_bytes(&mut self, message: MessageId, field: &'static Field, length: u64) {
        self.attributes.long_bytes(message, field, length);
    }

    pub(super) fn wants_packed(&self, message: MessageId) -> bool {
        self.attributes.wants_packed(message)
    }

    pub(super) fn wants_bytes(&self, message: MessageId, field: &'static Field) -> bool {
        self.attributes.wants_bytes(message, field)
    }

    pub(super) fn string(
        &mut self,
        message: MessageId,
        field: &'static Field,
        piece: &[u8],
        is: Piece,
        lists: (&mut NodeNames, &FunctionNames),
        parts: NodeParts,
    ) {
        let (names, functions) = lists;
        if message != NODE_DEF {
            self.attributes.string(message, field, piece, is);
            if parts.edges && self.beneath == 0 {
                self.colocation.string(message, field, piece, names.hasher());
            }
            if parts.call && self.beneath == 0 {
                self.call.string(message, field, piece, is, functions);
            }
            return;
        }
        if field.number == node_def::DEVICE {
            if let Some(device) = self.text.take(piece, is) {
                self.bad_device = !self.devices.is_device(device);
                let is_read = self.devices.is_session_device(device);
                let name = || String::from_utf8_lossy(device).into_owned();
                self.session_device = (!is_read).then(name);
            }
            return;
        }
        if !matches!(field.number, node_def::NAME | node_def::OP | node_def::INPUT) {
            return;
        }
        let Some(text) = self.text.take(piece, is) else { return };
        let kept = match field.number {
            node_def::NAME => &mut self.name,
            node_def::OP => &mut self.operation,
            _ => {
                let is_control = is_control_input(text);
                self.has_control_input |= is_control;
                self.data_after_control |= self.has_control_input && !is_control;
                self.data_inputs = self.data_inputs.saturating_add(u32::from(!is_control));
                if parts.edges {
                    let node = input_node(text);
                    let (name, output) = (names.number(node), Output::of(text, node));
                    self.inputs.push(NamedInput { name, output });
                }
                return;
            }
        };
        kept.clear();
        kept.extend_from_slice(text);
    }
}
