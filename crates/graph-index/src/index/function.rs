//! The index of one function: its arguments, results and nodes, and their references.
//!
//! Has the parts of a function that the importer checks. Does not depend on the encoding of
//! functions; the [reader](super::FunctionReader) does.

use std::{collections::HashSet, rc::Rc};

use super::{
    argument::Argument,
    argument_attributes::{ArgumentShape, GivenArguments, OwnTensors},
    body_signatures::BodySignature,
    calls::Call,
    names::{Name, NameHasher, NameMap},
    output_names::OutputNames,
};
use crate::{
    attributes::TensorDiagnostic, node_rules::GradientName, ops::OperationDefinition,
    rules::LoopRole, source::Extent,
};

/// The text after the first colon of an input or of a returned value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Suffix {
    /// There is no colon.
    None,
    /// `0`.
    Zero,
    /// Another number, as numbers are written.
    Number,
    /// Text that begins like the name of an output.
    Output,
    /// Any other text.
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

/// The target of an input or a result.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub name: Name,
    pub suffix: Suffix,
    pub control: bool,
    /// The number of the text between the first colon and the second one, as [`OutputNames`]
    /// numbers it.
    pub output: u32,
    pub element: Element,
    /// The number after the only colon, which selects an element of an argument.
    pub argument_element: Option<u32>,
}

impl Target {
    /// Parses an input of a node, or a returned value.
    pub(super) fn of(hasher: &NameHasher, outputs: &OutputNames, text: &[u8]) -> Self {
        let (text, control) = match text.strip_prefix(b"^") {
            Some(name) => (name, true),
            None => (text, false),
        };
        let colon = |text: &[u8]| text.iter().position(|byte| *byte == b':');
        let (name, suffix) =
            colon(text).and_then(|at| text.split_at_checked(at)).unwrap_or((text, b""));
        let behind = suffix.get(1..).unwrap_or_default();
        let (output, element) = match colon(behind).and_then(|at| behind.split_at_checked(at)) {
            Some((output, number)) => (output, Element::of(number.get(1..).unwrap_or_default())),
            None => (behind, Element::All),
        };
        let argument_element = match (element, Element::of(behind)) {
            (Element::All, Element::Number(number)) => Some(number),
            _ => None,
        };
        Self {
            name: hasher.hash(name),
            suffix: Suffix::of(suffix),
            control,
            output: outputs.number(output),
            element,
            argument_element,
        }
    }
}

/// The element of a list that a name selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// All of it: there is no text after the name of an argument or output.
    All,
    /// The element with this number.
    Number(u32),
    /// An element that no list has.
    Nowhere,
}

impl Element {
    /// Returns the element that the text after a colon selects: numbers have one spelling only.
    fn of(text: &[u8]) -> Self {
        let number = match text {
            b"0" => Some(0),
            [b'1'..=b'9', ..] if text.iter().all(u8::is_ascii_digit) => {
                std::str::from_utf8(text).ok().and_then(|text| text.parse().ok())
            }
            _ => None,
        };
        number.map_or(Self::Nowhere, Self::Number)
    }
}

/// A node of a function.
#[derive(Clone, Copy, Debug, Default)]
pub struct BodyNode {
    pub name: Name,
    pub bad_name: bool,
    /// True if its name is invalid for a node of a graph, whose rules are stricter.
    pub bad_graph_name: bool,
    pub no_operation: bool,
    /// True if its device is invalid.
    pub bad_device: bool,
    /// True if its device is invalid in a session, even if valid in Python.
    pub bad_session_device: bool,
    /// True if Python cannot read its attribute `_class`; set only if node signatures are
    /// requested.
    pub bad_class: bool,
    /// Python's reading of its attribute `_gradient_op_type`; set only if node signatures are
    /// requested.
    pub gradient: GradientName,
    /// True if its operation is a function of the library, whose outputs can have any names.
    pub is_function: bool,
    /// True if a data input comes after a control input.
    pub input_order: bool,
    pub loop_role: LoopRole,
    /// The number of its node signature; 0 if node signatures are not requested.
    pub signature: u32,
}

/// A node of a function that calls a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BodyCall {
    pub call: Call,
    /// The number of the node.
    pub node: u32,
    /// The extent of the node.
    pub place: Extent,
}

/// An input of a node of a function.
#[derive(Clone, Copy, Debug)]
pub struct BodyInput {
    /// The number of the node.
    pub node: u32,
    pub target: Target,
}

/// The parts of a function that the importer checks.
#[derive(Debug, Default)]
pub struct FunctionIndex {
    pub arguments: Vec<Argument>,
    pub results: Vec<Argument>,
    pub nodes: Vec<BodyNode>,
    pub inputs: Vec<BodyInput>,
    /// The returned value of each result, by name; `None` if the value is empty.
    pub returns: NameMap<Option<Target>>,
    /// The names of the control outputs in the signature.
    pub control_outputs: Vec<Name>,
    /// The node of each control output, by the name of the output.
    pub control_returns: NameMap<Target>,
    /// The first names of attributes that not every Python knows.
    pub unusual_attributes: Vec<String>,
    /// Shapes and attributes of the arguments; empty if node signatures are not requested.
    pub given: GivenArguments,
    /// The nodes with a registered gradient, by number, with the hash of the function; empty if
    /// node signatures are not requested. A call by name or by PartitionedCall has none.
    pub registered: Vec<(u32, u64)>,
    /// In the order of the nodes.
    pub calls: Vec<BodyCall>,
    /// The constant nodes, by number, with their places, because a node signature keeps the tensor
    /// of one of its nodes only. Empty if node signatures are not requested.
    pub constants: Vec<(u32, Extent)>,
    /// The nodes with a tensor that not every release can read, by number; empty likewise.
    pub malformed: Vec<(u32, TensorDiagnostic)>,
    /// The tensors that not every release can read among the attributes of the function; empty
    /// likewise.
    pub own_tensors: OwnTensors,
    /// True if a name was too long to be checked; nothing is then known of the function.
    pub oversized: bool,
    /// Empty, like `node_signatures`, if these are not requested.
    pub signature: OperationDefinition,
    /// The node signatures.
    pub node_signatures: Vec<Rc<BodySignature>>,
    /// The global number of each node signature.
    pub signature_numbers: Vec<u32>,
    pub outputs: OutputNames,
    pub(super) hasher: NameHasher,
}

impl FunctionIndex {
    /// Returns the nodes and arguments that are its control outputs, with true for nodes of its
    /// own; `has_name` returns true if a node of a name exists. `None` stands for an invalid
    /// output.
    pub fn control_nodes(&self, has_name: impl Fn(&Name) -> bool) -> Option<bool> {
        let mut seen = HashSet::new();
        let mut are_own = true;
        for output in &self.control_outputs {
            let target = self.control_returns.get(output)?;
            if target.control || target.suffix != Suffix::None || !has_name(&target.name) {
                return None;
            }
            are_own &= seen.insert(target.name);
        }
        Some(are_own)
    }

    /// Returns true if the node that Python creates for an argument may have the shape of a
    /// resource handle, which is a scalar.
    pub fn may_be_handle(&self, argument: u32) -> bool {
        let Some(found) = self.arguments.get(argument as usize) else { return true };
        let shape = self.given.shape(argument, found);
        !matches!(shape, ArgumentShape::Known(dimensions) if !dimensions.is_empty())
    }

    /// Returns the hash of a name, as nodes, arguments and results have it.
    pub fn hash(&self, name: &[u8]) -> Name {
        self.hasher.hash(name)
    }
}
