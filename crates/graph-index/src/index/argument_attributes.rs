//! Reads the attributes of function arguments: their shapes, and the attributes of the nodes that
//! represent them.
//!
//! TensorFlow writes the shapes of all arguments as one attribute of the function
//! (`_input_shapes`), and `FunctionDef.arg_attr` holds attributes of single ones. Most of these are
//! used only when the function runs; those that decide if the function can be loaded are kept.
//!
//! Depends on the encoding only, not on the loaders' checks.

use std::collections::HashMap;

use super::{argument::Argument, output_shapes::OUTPUT_SHAPES, signature::as_in_node};
use crate::{
    attributes::{AttributeReader, AttributeValue, Attributes, ShapeValue, TensorDiagnostic},
    node_rules::{GradientName, PythonColocation},
    scan::{Piece, Step, Visitor},
    schema::{
        FUNCTION_DEF_ARG_ATTR_ENTRY, FUNCTION_DEF_ARG_ATTRS, FUNCTION_DEF_ARG_ATTRS_ATTR_ENTRY,
        FUNCTION_DEF_ATTR_ENTRY, Field, MessageId, NODE_DEF, NODE_DEF_ATTR_ENTRY,
        fields::{function_def_arg_attr_entry, function_def_arg_attrs, node_def},
    },
};

/// The attribute of a function that has the shapes of all its arguments.
const INPUT_SHAPES: &[u8] = b"_input_shapes";

/// The type of a resource handle.
pub const RESOURCE: i32 = 20;

/// The declared shape of an argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArgumentShape {
    /// Any shape.
    Unknown,
    /// These dimensions; -1 for one of any size.
    Known(Box<[i64]>),
    /// An invalid shape, as shown in diagnostics.
    Invalid(String),
}

impl ArgumentShape {
    fn of(shape: ShapeValue<'_>) -> Self {
        if !shape.is_partial_shape() {
            return Self::Invalid(AttributeValue::Shape(shape).to_string());
        }
        match shape.is_unknown_rank {
            true => Self::Unknown,
            false => Self::Known(shape.dimensions.into()),
        }
    }
}

/// The value of the attribute `_output_shapes` of an argument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum OutputShape {
    /// The attribute is absent.
    #[default]
    Unsaid,
    /// It is a list without shapes.
    Missing,
    /// It is a list of shapes; this is the first one.
    First(ArgumentShape),
    /// It is a shape, which Python reads as the first one of a list, and the importer ignores.
    Alone(ArgumentShape),
}

impl OutputShape {
    fn of(attributes: &Attributes) -> Self {
        match attributes.get_bytes(OUTPUT_SHAPES) {
            Some(AttributeValue::List(list)) => match list.shapes().next() {
                Some(shape) => Self::First(ArgumentShape::of(shape)),
                None => Self::Missing,
            },
            Some(AttributeValue::Shape(shape)) => Self::Alone(ArgumentShape::of(shape)),
            _ => Self::Unsaid,
        }
    }
}

/// The relevant attributes of one argument.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ArgumentAttributes {
    pub output_shape: OutputShape,
    /// True if Python cannot read its attribute `_class`.
    pub bad_class: bool,
    pub gradient: GradientName,
    /// The diagnostic of the declared contents of a resource handle, as text.
    handle: Option<String>,
}

impl ArgumentAttributes {
    fn of(attributes: &Attributes) -> Self {
        // A constraint to be beside another node or beside itself makes no difference.
        let colocation = PythonColocation::of(attributes, |_| true);
        Self {
            output_shape: OutputShape::of(attributes),
            bad_class: colocation == PythonColocation::Unreadable,
            gradient: GradientName::of(attributes),
            handle: handle_diagnostic(attributes),
        }
    }
}

/// Returns the reason why an importer cannot determine the contents of a handle that has both type
/// and shape.
fn handle_diagnostic(attributes: &Attributes) -> Option<String> {
    let (types, shapes) = (attributes.get("_handle_dtypes")?, attributes.get("_handle_shapes")?);
    let is_typed = matches!(types, AttributeValue::List(list) if !list.types().is_empty());
    if !is_typed {
        return Some(format!("_handle_dtypes = {types}"));
    }
    let shape = match shapes {
        AttributeValue::List(list) => list.shapes().next(),
        _ => None,
    };
    let is_shape = shape.is_some_and(ShapeValue::is_partial_shape);
    (!is_shape).then(|| format!("_handle_shapes = {shapes}"))
}

/// The attributes of the arguments of a function.
#[derive(Debug, Default)]
pub struct GivenArguments {
    /// The shapes in the attribute `_input_shapes`, one per argument; empty if there is no such
    /// list.
    pub input_shapes: Vec<ArgumentShape>,
    /// The attributes by argument number, if there are any.
    attributes: HashMap<u32, ArgumentAttributes>,
}

impl GivenArguments {
    /// Returns the attributes of an argument, if any of them is relevant.
    pub fn attributes(&self, number: u32) -> Option<&ArgumentAttributes> {
        self.attributes.get(&number)
    }

    /// Returns the shape of the node that Python creates for an argument.
    pub fn shape(&self, number: u32, argument: &Argument) -> &ArgumentShape {
        let said = self.attributes(number).map(|attributes| &attributes.output_shape);
        if let Some(OutputShape::First(shape) | OutputShape::Alone(shape)) = said {
            return shape;
        }
        let is_of_handle = argument.data_type == RESOURCE && argument.has_handle_data;
        let listed = self.input_shapes.get(number as usize).filter(|_| !is_of_handle);
        listed.unwrap_or(&ArgumentShape::Unknown)
    }

    /// Returns the diagnostic, as found and expected value, of the node that the importer creates
    /// for an argument when it builds the function for a call.
    pub fn importer_diagnostic(
        &self,
        number: u32,
        argument: &Argument,
    ) -> Option<(String, &'static str)> {
        let attributes = self.attributes(number)?;
        match &attributes.output_shape {
            OutputShape::Missing => {
                Some(("_output_shapes without a shape".to_owned(), "the shape of the argument"))
            }
            OutputShape::First(ArgumentShape::Invalid(found)) => {
                Some((format!("_output_shapes = [{found}]"), SHAPE))
            }
            _ => {
                let found = attributes.handle.clone().filter(|_| argument.data_type == RESOURCE)?;
                Some((found, "the type and the shape of what the resource holds"))
            }
        }
    }

    /// Returns true if no loader can refuse the attributes, given the number of arguments.
    pub fn is_canonical(&self, arguments: usize) -> bool {
        let is_shape = |shape: &ArgumentShape| !matches!(shape, ArgumentShape::Invalid(_));
        let shapes = &self.input_shapes;
        let has_shapes = shapes.is_empty() || shapes.len() >= arguments;
        let is_accepted = |attributes: &ArgumentAttributes| {
            let said = match &attributes.output_shape {
                OutputShape::Unsaid => true,
                OutputShape::Missing => false,
                OutputShape::First(shape) | OutputShape::Alone(shape) => is_shape(shape),
            };
            let is_read = !attributes.bad_class && attributes.gradient == GradientName::Read;
            said && is_read && attributes.handle.is_none()
        };
        has_shapes && shapes.iter().all(is_shape) && self.attributes.values().all(is_accepted)
    }
}

/// The malformed tensors among the attributes of a function and the defaults of its parameters.
#[derive(Debug, Default)]
pub struct OwnTensors {
    pub lasting: Vec<TensorDiagnostic>,
    /// Diagnostics of tensors in values that `tf.saved_model.load` discards: the defaults, and the
    /// shapes of arguments.
    pub passing: Vec<TensorDiagnostic>,
}

/// The expected form of a shape, for messages.
pub const SHAPE: &str = "a shape: dimensions from -1 on, at most 254, under 2^63 elements";

/// Receives the visitor events inside of `FunctionDef.attr` and `FunctionDef.arg_attr`.
#[derive(Debug, Default)]
pub(super) struct ArgumentReader {
    given: GivenArguments,
    /// The number of the argument whose attributes are read; 0 until it is known.
    number: u32,
    values: AttributeReader,
    /// The diagnostic of the tensor in an attribute of the function, by the name of the attribute.
    tensors: HashMap<Box<[u8]>, TensorDiagnostic>,
    is_oversized: bool,
}

impl ArgumentReader {
    /// Returns the attributes, and true if a string was too long.
    pub(super) fn finish(mut self) -> (GivenArguments, OwnTensors, bool) {
        let passing = self.tensors.remove(INPUT_SHAPES).into_iter().collect();
        let lasting = self.tensors.into_values().collect();
        (self.given, OwnTensors { lasting, passing }, self.is_oversized)
    }

    /// Starts an attribute of the function.
    pub(super) fn begin_attribute(&mut self) {
        self.values.clear();
        self.tell_entered();
    }

    /// Ends the attribute and records its name.
    pub(super) fn end_attribute(&mut self) -> &[u8] {
        self.tell_left();
        self.is_oversized |= self.values.attributes().is_oversized();
        let found = self.values.attributes().iter().next();
        let Some((name, value)) = found else { return b"" };
        let diagnostic = match value {
            AttributeValue::Tensor(tensor) => tensor.diagnostic(),
            _ => None,
        };
        // Of equal names, the last one counts.
        match diagnostic {
            Some(diagnostic) => self.tensors.insert(name.into(), diagnostic),
            None => self.tensors.remove(name),
        };
        if name == INPUT_SHAPES {
            self.given.input_shapes = match value {
                AttributeValue::List(list) => list.shapes().map(ArgumentShape::of).collect(),
                _ => Vec::new(),
            };
        }
        name
    }

    /// Starts the attributes of an argument.
    pub(super) fn begin_argument(&mut self) {
        self.values.clear();
        self.number = 0;
    }

    /// Ends the attributes of an argument.
    pub(super) fn end_argument(&mut self) {
        self.is_oversized |= self.values.attributes().is_oversized();
        let found = ArgumentAttributes::of(self.values.attributes());
        // The last entry for an argument counts.
        match found == ArgumentAttributes::default() {
            true => self.given.attributes.remove(&self.number),
            false => self.given.attributes.insert(self.number, found),
        };
    }

    pub(super) fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        match (message, field.number) {
            (FUNCTION_DEF_ARG_ATTR_ENTRY, function_def_arg_attr_entry::VALUE) => Step::Into,
            (FUNCTION_DEF_ARG_ATTRS, function_def_arg_attrs::ATTR) => {
                self.tell_entered();
                Step::Into
            }
            _ => match as_of_node(message, field) {
                Some((message, field)) => self.values.enter(message, field),
                None => Step::Over,
            },
        }
    }

    pub(super) fn leave(&mut self, message: MessageId, field: &'static Field) {
        match message {
            FUNCTION_DEF_ARG_ATTR_ENTRY => {}
            FUNCTION_DEF_ARG_ATTRS => self.tell_left(),
            _ => {
                if let Some((message, field)) = as_of_node(message, field) {
                    self.values.leave(message, field);
                }
            }
        }
    }

    pub(super) fn integer(&mut self, message: MessageId, field: &'static Field, value: u64) {
        match (message, field.number) {
            (FUNCTION_DEF_ARG_ATTR_ENTRY, function_def_arg_attr_entry::KEY) => {
                self.number = value as u32;
            }
            _ => self.values.integer(message, field, value),
        }
    }

    pub(super) fn string(
        &mut self,
        message: MessageId,
        field: &'static Field,
        piece: &[u8],
        is: Piece,
    ) {
        if let Some((message, field)) = as_of_node(message, field) {
            self.values.string(message, field, piece, is);
        }
    }

    /// Returns the visitor of values.
    pub(super) fn values(&self) -> &dyn Visitor {
        &self.values
    }

    /// Returns the visitor of values, mutably.
    pub(super) fn values_mut(&mut self) -> &mut dyn Visitor {
        &mut self.values
    }

    /// Passes an attribute to the attribute reader, as if it were an attribute of a node.
    fn tell_entered(&mut self) {
        if let Some((message, field)) = as_in_node(NODE_DEF, node_def::ATTR) {
            self.values.enter(message, field);
        }
    }

    fn tell_left(&mut self) {
        if let Some((message, field)) = as_in_node(NODE_DEF, node_def::ATTR) {
            self.values.leave(message, field);
        }
    }
}

/// Returns the corresponding field of a node's attribute; the entries of all these maps have the
/// same form.
fn as_of_node(message: MessageId, field: &'static Field) -> Option<(MessageId, &'static Field)> {
    match message {
        FUNCTION_DEF_ATTR_ENTRY | FUNCTION_DEF_ARG_ATTRS_ATTR_ENTRY => {
            as_in_node(NODE_DEF_ATTR_ENTRY, field.number)
        }
        _ => Some((message, field)),
    }
}
