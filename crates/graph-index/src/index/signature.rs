//! Reads the signature of a function: its arguments, results and attributes.
//!
//! The same message describes TensorFlow's own operations; for a function of the library, only the
//! parts that determine the types of its arguments are read.
//!
//! Depends on the encoding of signatures, but not on the body of the function.

use crate::{
    GraphError,
    attributes::{AttributeReader, AttributeValue, Attributes, TensorDiagnostic},
    ops::{
        ArgumentDefinition, ArgumentType, AttributeDefinition, AttributeKind, OperationDefinition,
        ValueDefinition,
    },
    scan::{Piece, Step, Visitor},
    schema::{
        FUNCTION_DEF, Field, MessageId, NODE_DEF, NODE_DEF_ATTR_ENTRY, OP_DEF, OP_DEF_ARG_DEF,
        OP_DEF_ATTR_DEF,
        fields::{
            function_def, node_def, node_def_attr_entry, op_def, op_def_arg_def, op_def_attr_def,
        },
    },
    source::{Extent, Source},
    whole_text::WholeText,
};

/// The position of the reader in the signature.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Part {
    #[default]
    Signature,
    Argument,
    Result,
    Attribute,
    /// In the default value of an attribute.
    Default,
}

/// Limit on the values that are kept of a default list: no real one has more.
const LONGEST_DEFAULT: u64 = 4096;

/// Receives the visitor events inside a signature, and builds its definition.
#[derive(Debug, Default)]
pub(super) struct SignatureReader {
    signature: OperationDefinition,
    /// The diagnostics of default tensors, each once.
    default_tensors: Vec<TensorDiagnostic>,
    part: Part,
    argument: WrittenArgument,
    attribute: WrittenAttribute,
    values: AttributeReader,
    text: WholeText,
}

/// An argument or result in its encoding.
#[derive(Debug, Default)]
struct WrittenArgument {
    name: String,
    data_type: i32,
    type_attribute: String,
    number_attribute: String,
    list_attribute: String,
    is_reference: bool,
}

impl WrittenArgument {
    fn into_definition(self) -> ArgumentDefinition {
        let element = if !self.list_attribute.is_empty() {
            ArgumentType::List(self.list_attribute)
        } else if !self.type_attribute.is_empty() {
            ArgumentType::Attribute(self.type_attribute)
        } else {
            ArgumentType::Fixed(self.data_type)
        };
        let number = Some(self.number_attribute).filter(|name| !name.is_empty());
        ArgumentDefinition {
            name: self.name,
            element,
            number_attribute: number,
            is_reference: self.is_reference,
        }
    }
}

/// An attribute in its encoding.
#[derive(Debug, Default)]
struct WrittenAttribute {
    name: String,
    /// The kind of its values; `None` if TensorFlow has no such kind.
    kind: Option<AttributeKind>,
    has_default: bool,
}

impl WrittenAttribute {
    fn into_definition(self, values: &Attributes) -> Option<AttributeDefinition> {
        let kind = self.kind?;
        let default = values.get(&self.name).filter(|_| self.has_default);
        let default = default.and_then(to_definition);
        Some(AttributeDefinition { name: self.name, kind, default, minimum: None, allowed: None })
    }
}

/// Returns a default, as far as it has types and numbers; `None` for an invalid one.
fn to_definition(value: AttributeValue<'_>) -> Option<ValueDefinition> {
    Some(match value {
        AttributeValue::None | AttributeValue::Placeholder(_) => return None,
        AttributeValue::String(text) => ValueDefinition::String(text.bytes?.to_vec()),
        AttributeValue::Int(number) => ValueDefinition::Int(number),
        AttributeValue::Float(number) => ValueDefinition::Float(number.to_bits()),
        AttributeValue::Bool(flag) => ValueDefinition::Bool(flag),
        AttributeValue::Type(number) => ValueDefinition::Type(number),
        AttributeValue::Shape(shape) => {
            let known = !shape.is_unknown_rank;
            ValueDefinition::Shape(known.then(|| shape.dimensions.to_vec()))
        }
        // The contents of a tensor do not determine a type.
        AttributeValue::Tensor(_) => ValueDefinition::Tensor(Vec::new()),
        AttributeValue::Function(name) => {
            ValueDefinition::Function(String::from_utf8_lossy(name.bytes?).into_owned())
        }
        AttributeValue::List(list) => {
            if list.len() > LONGEST_DEFAULT {
                return None;
            }
            let types = list.types().iter().flat_map(|run| {
                let count = usize::try_from(run.count).unwrap_or_default();
                std::iter::repeat_n(ValueDefinition::Type(run.data_type), count)
            });
            ValueDefinition::List(types.chain(list.values().filter_map(to_definition)).collect())
        }
    })
}

/// Reads the signature of the function at `place`.
pub fn read(
    source: Source<'_>,
    place: Extent,
    release: i32,
) -> Result<OperationDefinition, GraphError> {
    let mut visitor = SignatureVisitor { reader: SignatureReader::default(), release };
    source.walk_part(place, FUNCTION_DEF, &mut visitor)?;
    Ok(visitor.reader.finish().0)
}

/// A walk over one function that skips everything but its signature.
struct SignatureVisitor {
    reader: SignatureReader,
    release: i32,
}

impl Visitor for SignatureVisitor {
    fn values(&self) -> Option<&dyn Visitor> {
        self.reader.default_value()
    }

    fn values_mut(&mut self) -> Option<&mut dyn Visitor> {
        self.reader.default_value_mut()
    }

    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        match (message, field.number) {
            (FUNCTION_DEF, function_def::SIGNATURE) => Step::Into,
            (FUNCTION_DEF, _) => Step::Over,
            _ => self.reader.enter(message, field),
        }
    }

    fn leave(&mut self, message: MessageId, field: &'static Field, _at: u64) {
        self.reader.leave(message, field);
    }

    fn integer(&mut self, message: MessageId, field: &'static Field, value: u64) {
        self.reader.integer(message, field, value);
    }

    fn string(&mut self, message: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        self.reader.string(message, field, piece, is);
    }

    fn release(&self) -> i32 {
        self.release
    }
}

/// Returns the field of a node's message with the same meaning as one of another message, so that
/// one reader of attributes serves both.
pub(super) fn as_in_node(message: MessageId, number: u32) -> Option<(MessageId, &'static Field)> {
    let field = message.describe().field(number)?;
    Some((message, field))
}

impl SignatureReader {
    /// Returns the definition, and the diagnostics of default tensors.
    pub(super) fn finish(self) -> (OperationDefinition, Vec<TensorDiagnostic>) {
        (self.signature, self.default_tensors)
    }

    /// Returns true if a name was too long to be kept.
    pub(super) fn is_oversized(&self) -> bool {
        self.text.oversized
    }

    pub(super) fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        match (self.part, message, field.number) {
            (_, OP_DEF, op_def::INPUT_ARG) => self.begin_argument(Part::Argument),
            (_, OP_DEF, op_def::OUTPUT_ARG) => self.begin_argument(Part::Result),
            (_, OP_DEF, op_def::ATTR) => {
                self.part = Part::Attribute;
                self.attribute = WrittenAttribute::default();
                self.tell_entered(NODE_DEF, node_def::ATTR);
            }
            (Part::Attribute, OP_DEF_ATTR_DEF, op_def_attr_def::DEFAULT_VALUE) => {
                self.part = Part::Default;
                self.attribute.has_default = true;
                self.tell_entered(NODE_DEF_ATTR_ENTRY, node_def_attr_entry::VALUE);
            }
            (Part::Default, ..) => return self.values.enter(message, field),
            _ => return Step::Over,
        }
        Step::Into
    }

    fn begin_argument(&mut self, part: Part) {
        self.part = part;
        self.argument = WrittenArgument::default();
    }

    /// Passes an attribute to the attribute reader, as if it were one of a node.
    fn tell_entered(&mut self, message: MessageId, number: u32) {
        if let Some((message, field)) = as_in_node(message, number) {
            self.values.enter(message, field);
        }
    }

    fn tell_left(&mut self, message: MessageId, number: u32) {
        if let Some((message, field)) = as_in_node(message, number) {
            self.values.leave(message, field);
        }
    }

    pub(super) fn leave(&mut self, message: MessageId, field: &'static Field) {
        match (self.part, message, field.number) {
            (_, OP_DEF, op_def::INPUT_ARG) => {
                let argument = std::mem::take(&mut self.argument);
                self.signature.inputs.push(argument.into_definition());
            }
            (_, OP_DEF, op_def::OUTPUT_ARG) => {
                let result = std::mem::take(&mut self.argument);
                self.signature.outputs.push(result.into_definition());
            }
            (_, OP_DEF, op_def::ATTR) => {
                self.tell_left(NODE_DEF, node_def::ATTR);
                let attribute = std::mem::take(&mut self.attribute);
                if let Some(AttributeValue::Tensor(tensor)) =
                    self.values.attributes().get(&attribute.name)
                    && let Some(diagnostic) = tensor.diagnostic()
                    && !self.default_tensors.contains(&diagnostic)
                {
                    self.default_tensors.push(diagnostic);
                }
                let definition = attribute.into_definition(self.values.attributes());
                self.signature.attributes.extend(definition);
                self.values.clear();
            }
            (_, OP_DEF_ATTR_DEF, op_def_attr_def::DEFAULT_VALUE) => {
                self.tell_left(NODE_DEF_ATTR_ENTRY, node_def_attr_entry::VALUE);
                self.part = Part::Attribute;
                return;
            }
            (Part::Default, ..) => {
                self.values.leave(message, field);
                return;
            }
            _ => return,
        }
        self.part = Part::Signature;
    }

    pub(super) fn integer(&mut self, message: MessageId, field: &'static Field, value: u64) {
        match (message, field.number) {
            // An enumeration uses the low 32 bits of its varint.
            (OP_DEF_ARG_DEF, op_def_arg_def::TYPE) => self.argument.data_type = value as u32 as i32,
            (OP_DEF_ARG_DEF, op_def_arg_def::IS_REF) => self.argument.is_reference = value != 0,
            _ if self.part == Part::Default => self.values.integer(message, field, value),
            _ => {}
        }
    }

    pub(super) fn string(
        &mut self,
        message: MessageId,
        field: &'static Field,
        piece: &[u8],
        is: Piece,
    ) {
        match (message, field.number) {
            _ if self.part == Part::Default => self.values.string(message, field, piece, is),
            (OP_DEF_ATTR_DEF, op_def_attr_def::NAME) => {
                let key = as_in_node(NODE_DEF_ATTR_ENTRY, node_def_attr_entry::KEY);
                if let Some((message, field)) = key {
                    self.values.string(message, field, piece, is);
                }
                self.set_text(message, field, piece, is);
            }
            (OP_DEF, op_def::NAME) | (OP_DEF_ATTR_DEF, op_def_attr_def::TYPE) => {
                self.set_text(message, field, piece, is);
            }
            (OP_DEF_ARG_DEF, _) => self.set_text(message, field, piece, is),
            _ => {}
        }
    }

    fn set_text(&mut self, message: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        let Some(text) = self.text.take(piece, is) else { return };
        // Strings in a message are UTF-8.
        let text = String::from_utf8_lossy(text);
        let place = match (message, field.number) {
            (OP_DEF, _) => &mut self.signature.name,
            (OP_DEF_ATTR_DEF, op_def_attr_def::NAME) => &mut self.attribute.name,
            (OP_DEF_ATTR_DEF, _) => {
                self.attribute.kind = AttributeKind::from_name(&text);
                return;
            }
            (_, op_def_arg_def::NAME) => &mut self.argument.name,
            (_, op_def_arg_def::TYPE_ATTR) => &mut self.argument.type_attribute,
            (_, op_def_arg_def::NUMBER_ATTR) => &mut self.argument.number_attribute,
            (_, op_def_arg_def::TYPE_LIST_ATTR) => &mut self.argument.list_attribute,
            _ => return,
        };
        *place = text.into_owned();
    }

    /// Returns the visitor of the default of an attribute, inside of one.
    pub(super) fn default_value(&self) -> Option<&dyn Visitor> {
        if self.part == Part::Default { Some(&self.values) } else { None }
    }

    /// Returns that visitor, mutably.
    pub(super) fn default_value_mut(&mut self) -> Option<&mut dyn Visitor> {
        if self.part == Part::Default { Some(&mut self.values) } else { None }
    }
}
