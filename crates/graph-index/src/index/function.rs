//! The index of one function: its arguments, results and nodes, and what these refer to.
//!
//! Knows what the importer looks at in a function. It must never know how a function is written;
//! that is the business of the [reader](super::FunctionReader).

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

/// The target of an input or a result.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    pub name: Name,
    pub suffix: Suffix,
    pub control: bool,
    /// The number of what stands between the first colon and the second one, as
    /// [`OutputNames`] numbers it.
    pub output: u32,
    pub element: Element,
    /// The number that stands behind the only colon, as the element of an argument is named.
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
    /// All of it: nothing stands behind the name of an argument or output.
    All,
    /// The one with this number.
    Number(u32),
    /// An element that no list has.
    Nowhere,
}

impl Element {
    /// Returns the element that text behind a colon says: numbers are written in one way only.
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
    /// True if its name is invalid for a node of a graph, where the rules are stricter.
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
    /// The number of its node signature; 0 where node signatures are not asked for.
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
    /// By the name of a result, what is returned as it; `None` where nothing is named.
    pub returns: NameMap<Option<Target>>,
    /// The names of the control outputs in the signature.
    pub control_outputs: Vec<Name>,
    /// By the name of a control output, the node that it is.
    pub control_returns: NameMap<Target>,
    /// The names of attributes that not every Python knows, the first ones.
    pub unusual_attributes: Vec<String>,
    /// Shapes and attributes of the arguments; empty where node signatures are not asked for.
    pub given: GivenArguments,
    /// The nodes with a registered gradient, by their numbers, with what stands for the function;
    /// empty where node signatures are not asked for. A call by name or by PartitionedCall has
    /// none.
    pub registered: Vec<(u32, u64)>,
    /// In the order of the nodes.
    pub calls: Vec<BodyCall>,
    /// The nodes that are constants, by their numbers, with where they are: a node signature keeps
    /// the tensor of one of its nodes only. Empty where node signatures are not asked for.
    pub constants: Vec<(u32, Extent)>,
    /// The nodes with a tensor that cannot be read by every release, by their numbers; empty as
    /// well.
    pub malformed: Vec<(u32, TensorDiagnostic)>,
    /// The tensors that not every release can read among the attributes of the function; empty as
    /// well.
    pub own_tensors: OwnTensors,
    /// True if a name was too long to be checked, so that nothing is known of the function.
    pub oversized: bool,
    /// Empty, as `node_signatures`, where these are not asked for.
    pub signature: OperationDefinition,
    /// The node signatures.
    pub node_signatures: Vec<Rc<BodySignature>>,
    /// By node signature, its number among those of all functions that the reader has read.
    pub signature_numbers: Vec<u32>,
    pub outputs: OutputNames,
    pub(super) hasher: NameHasher,
}

impl FunctionIndex {
    /// Returns the nodes and arguments that are its control outputs, and whether each is one of its
    /// own; `has_name` says whether there is one of a name. `None` for what is none.
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

    /// Returns true if the node that Python makes of an argument may have the shape of a resource
    /// handle, which is a scalar.
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
