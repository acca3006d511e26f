//! Receives the visitor events inside a node, and fills its attributes.

use super::arena::{
    Attributes, Nested, Stored, StoredList, StoredShape, StoredTensor, StoredText, Stretch,
};
use crate::{
    ops::Element,
    scan::{Piece, Step, Visitor},
    schema::{
        ATTR_VALUE, ATTR_VALUE_LIST_VALUE, Field, MessageId, NAME_ATTR_LIST,
        NAME_ATTR_LIST_ATTR_ENTRY, NODE_DEF, NODE_DEF_ATTR_ENTRY, TENSOR_PROTO, TENSOR_SHAPE_PROTO,
        TENSOR_SHAPE_PROTO_DIM,
        fields::{
            attr_value, attr_value_list_value, name_attr_list, name_attr_list_attr_entry, node_def,
            node_def_attr_entry, tensor_proto, tensor_shape_proto, tensor_shape_proto_dim,
        },
    },
    whole_text::WholeText,
};

/// An open message inside a node, as far as it is relevant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Open {
    /// An entry of the map of attributes.
    Entry,
    /// The value of an attribute.
    Value,
    /// The list of a value.
    List,
    /// The shape of a value, of an element of a list, or of the tensor of a value.
    Shape,
    Dimension,
    /// The tensor of a value.
    Tensor,
    /// The function of a value or of an element of a list.
    Function,
    /// An attribute of that function, or of one nested in it.
    NestedEntry,
    /// The value of such an attribute.
    NestedValue,
    /// The list of such a value.
    NestedList,
    /// The function of such a value or of an element of its list.
    NestedFunction,
    /// A message that is ignored.
    Beneath,
}

/// Reads the attributes of one node after another.
///
/// [`enter`](Self::enter) must be called for every message inside a node, before the message is
/// skipped: messages that it wants must be entered.
#[derive(Clone, Debug, Default)]
pub struct AttributeReader {
    attributes: Attributes,
    /// The open messages, outermost first; empty outside attributes.
    open: Vec<Open>,
    key: Stretch,
    value: Stored,
    /// The element of a list that is being read.
    shape: StoredShape,
    function: StoredText,
    dimension: i64,
    /// The attributes of functions that are being read, outermost first: whether each is left open
    /// so far.
    inner: Vec<Option<Nested>>,
    /// The attributes that the functions of the value leave open.
    nested: Vec<Nested>,
    text: WholeText,
}

impl AttributeReader {
    /// Starts the next node.
    pub fn clear(&mut self) {
        self.attributes.clear();
        self.open.clear();
        self.inner.clear();
        self.text.oversized = false;
    }

    /// Returns the attributes of the node, after its end.
    pub fn attributes(&self) -> &Attributes {
        &self.attributes
    }

    /// Handles the start of a message.
    pub fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        let Some(around) = self.open.last().copied() else {
            if (message, field.number) != (NODE_DEF, node_def::ATTR) {
                return Step::Over;
            }
            self.key = Stretch::default();
            self.value = Stored::None;
            self.nested.clear();
            self.open.push(Open::Entry);
            return Step::Into;
        };
        let next = match (around, message, field.number) {
            (Open::Entry, NODE_DEF_ATTR_ENTRY, node_def_attr_entry::VALUE) => Open::Value,
            (Open::Value, ATTR_VALUE, number) => self.enter_value(number),
            (Open::List, ATTR_VALUE_LIST_VALUE, number) => self.enter_element(number),
            (Open::Tensor, TENSOR_PROTO, tensor_proto::TENSOR_SHAPE) => Open::Shape,
            (Open::Shape, TENSOR_SHAPE_PROTO, tensor_shape_proto::DIM) => {
                self.dimension = 0;
                Open::Dimension
            }
            (Open::Function | Open::NestedFunction, NAME_ATTR_LIST, name_attr_list::ATTR) => {
                self.inner.push(Some(Nested::Unset));
                Open::NestedEntry
            }
            (Open::NestedEntry, NAME_ATTR_LIST_ATTR_ENTRY, name_attr_list_attr_entry::VALUE) => {
                Open::NestedValue
            }
            (Open::NestedValue, ATTR_VALUE, number) => {
                self.set_inner(None);
                match number {
                    attr_value::LIST => Open::NestedList,
                    attr_value::FUNC => Open::NestedFunction,
                    _ => Open::Beneath,
                }
            }
            (Open::NestedList, ATTR_VALUE_LIST_VALUE, attr_value_list_value::FUNC) => {
                Open::NestedFunction
            }
            _ => Open::Beneath,
        };
        self.open.push(next);
        Step::Into
    }

    /// Sets the value of the innermost attribute of a function.
    fn set_inner(&mut self, nested: Option<Nested>) {
        if let Some(inner) = self.inner.last_mut() {
            *inner = nested;
        }
    }

    /// Handles the start of a message that is a value: it replaces a value of another kind, and
    /// merges with one of its own kind.
    fn enter_value(&mut self, number: u32) -> Open {
        match number {
            attr_value::LIST => {
                if !matches!(self.value, Stored::List(_)) {
                    self.nested.clear();
                    self.value = Stored::List(StoredList::default());
                }
                Open::List
            }
            attr_value::SHAPE => {
                if !matches!(self.value, Stored::Shape(_)) {
                    self.value = Stored::Shape(StoredShape::default());
                }
                Open::Shape
            }
            attr_value::TENSOR => {
                if !matches!(self.value, Stored::Tensor(_)) {
                    self.value = Stored::Tensor(StoredTensor::default());
                }
                Open::Tensor
            }
            attr_value::FUNC => {
                if !matches!(self.value, Stored::Function(_)) {
                    self.nested.clear();
                    self.value = Stored::Function(self.attributes.keep_text(b""));
                }
                Open::Function
            }
            _ => Open::Beneath,
        }
    }

    fn enter_element(&mut self, number: u32) -> Open {
        match number {
            attr_value_list_value::SHAPE => {
                self.shape = StoredShape::default();
                Open::Shape
            }
            attr_value_list_value::FUNC => {
                self.function = self.attributes.keep_text(b"");
                Open::Function
            }
            attr_value_list_value::TENSOR => {
                if let Stored::List(list) = &mut self.value {
                    self.attributes.push_unknown(list, Element::Tensor, 1);
                }
                Open::Beneath
            }
            _ => Open::Beneath,
        }
    }

    /// Handles the end of a message.
    pub fn leave(&mut self, _message: MessageId, _field: &'static Field) {
        match self.open.pop() {
            Some(Open::Entry) => self.end_of_entry(),
            Some(Open::NestedEntry) => self.nested.extend(self.inner.pop().flatten()),
            Some(Open::Dimension) => {
                let size = self.dimension;
                if let Some(shape) = open_shape(&mut self.value, &mut self.shape) {
                    self.attributes.push_dimension(shape, size);
                }
            }
            Some(Open::Shape) => {
                if let (Some(Open::List), Stored::List(list)) = (self.open.last(), &mut self.value)
                {
                    self.attributes.push_shape(list, self.shape);
                }
            }
            Some(Open::Function) => {
                if let (Some(Open::List), Stored::List(list)) = (self.open.last(), &mut self.value)
                {
                    self.attributes.push_text(list, Element::Function, self.function);
                }
            }
            _ => {}
        }
    }

    fn end_of_entry(&mut self) {
        if self.text.oversized {
            self.attributes.set_oversized();
        }
        if matches!(self.value, Stored::Function(_) | Stored::List(_)) {
            self.attributes.add_nested(&self.nested);
        }
        self.attributes.add(self.key, self.value);
    }

    /// Handles a number, or an element of packed ones.
    pub fn integer(&mut self, message: MessageId, field: &'static Field, value: u64) {
        if self.open.last() == Some(&Open::NestedValue) {
            return self.set_inner(None);
        }
        let (attributes, number) = (&mut self.attributes, value as i64);
        match (self.open.last(), message, field.number) {
            (Some(Open::Value), ATTR_VALUE, attr_value::I) => self.value = Stored::Int(number),
            (Some(Open::Value), ATTR_VALUE, attr_value::B) => self.value = Stored::Bool(value != 0),
            // An enumeration uses the low 32 bits of its varint.
            (Some(Open::Value), ATTR_VALUE, attr_value::TYPE) => {
                self.value = Stored::Type(value as i32);
            }
            (Some(Open::List), ATTR_VALUE_LIST_VALUE, field) => {
                let Stored::List(list) = &mut self.value else { return };
                match field {
                    attr_value_list_value::I => attributes.push_number(list, Element::Int, number),
                    attr_value_list_value::B => {
                        attributes.push_number(list, Element::Bool, i64::from(value != 0));
                    }
                    attr_value_list_value::TYPE => attributes.push_type(list, value as i32),
                    _ => {}
                }
            }
            (Some(Open::Dimension), TENSOR_SHAPE_PROTO_DIM, tensor_shape_proto_dim::SIZE) => {
                self.dimension = number;
            }
            (Some(Open::Shape), TENSOR_SHAPE_PROTO, tensor_shape_proto::UNKNOWN_RANK) => {
                if let Some(shape) = open_shape(&mut self.value, &mut self.shape) {
                    shape.set_unknown_rank(value != 0);
                }
            }
            (Some(Open::Tensor), TENSOR_PROTO, field) => {
                let Stored::Tensor(tensor) = &mut self.value else { return };
                match field {
                    tensor_proto::DTYPE => tensor.data_type = value as i32,
                    tensor_proto::VERSION_NUMBER => {}
                    tensor_proto::INT_VAL => {
                        tensor.count_small_integer();
                        attributes.push_integer(tensor, i64::from(value as i32));
                    }
                    tensor_proto::INT64_VAL => attributes.push_integer(tensor, number),
                    _ => tensor.add_values(1),
                }
            }
            _ => {}
        }
    }

    /// Handles 32-bit floats, packed or not.
    pub fn floats(&mut self, message: MessageId, field: &'static Field, count: u64, bytes: &[u8]) {
        match (self.open.last(), message, field.number) {
            (Some(Open::NestedValue), ..) => self.set_inner(None),
            (Some(Open::Value), ATTR_VALUE, attr_value::F) => {
                let bits = bytes.first_chunk().copied().map_or(0, u32::from_le_bytes);
                self.value = Stored::Float(bits);
            }
            (Some(Open::List), ATTR_VALUE_LIST_VALUE, attr_value_list_value::F) => {
                let Stored::List(list) = &mut self.value else { return };
                if bytes.is_empty() {
                    self.attributes.push_unknown(list, Element::Float, count);
                }
                for four in bytes.as_chunks::<4>().0 {
                    let bits = u32::from_le_bytes(*four);
                    self.attributes.push_number(list, Element::Float, bits.into());
                }
            }
            (Some(Open::Tensor), TENSOR_PROTO, _) => {
                if let Stored::Tensor(tensor) = &mut self.value {
                    tensor.add_values(count);
                }
            }
            _ => {}
        }
    }

    /// Handles a string or a field of bytes, or a piece of a string.
    pub fn string(&mut self, message: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        let wanted = match (self.open.last(), message, field.number) {
            (Some(Open::Entry), NODE_DEF_ATTR_ENTRY, node_def_attr_entry::KEY)
            | (Some(Open::Value), ATTR_VALUE, attr_value::S | attr_value::PLACEHOLDER)
            | (Some(Open::List), ATTR_VALUE_LIST_VALUE, attr_value_list_value::S)
            | (
                Some(Open::Tensor),
                TENSOR_PROTO,
                tensor_proto::TENSOR_CONTENT | tensor_proto::STRING_VAL,
            )
            | (Some(Open::Function), NAME_ATTR_LIST, name_attr_list::NAME)
            | (Some(Open::NestedValue), ATTR_VALUE, attr_value::S | attr_value::PLACEHOLDER) => {
                self.open.last()
            }
            _ => return,
        };
        let Some(text) = self.text.take(piece, is) else { return };
        let attributes = &mut self.attributes;
        match (wanted, field.number) {
            (Some(Open::Entry), _) => self.key = attributes.keep(text),
            (Some(Open::NestedValue), attr_value::PLACEHOLDER) => {
                let kept = attributes.keep_text(text);
                self.set_inner(Some(Nested::Placeholder(kept)));
            }
            (Some(Open::NestedValue), _) => self.set_inner(None),
            (Some(Open::Value), attr_value::PLACEHOLDER) => {
                self.value = Stored::Placeholder(attributes.keep_text(text));
            }
            (Some(Open::Value), _) => self.value = Stored::String(attributes.keep_text(text)),
            (Some(Open::List), _) => {
                let kept = attributes.keep_text(text);
                if let Stored::List(list) = &mut self.value {
                    attributes.push_text(list, Element::String, kept);
                }
            }
            (Some(Open::Function), _) => {
                let kept = attributes.keep_text(text);
                match &mut self.value {
                    Stored::Function(name) => *name = kept,
                    _ => self.function = kept,
                }
            }
            (Some(Open::Tensor), number) => {
                let Stored::Tensor(tensor) = &mut self.value else { return };
                if number == tensor_proto::TENSOR_CONTENT {
                    tensor.set_content(text, attributes);
                } else {
                    tensor.add_values(1);
                }
            }
            _ => {}
        }
    }

    /// Handles a field of bytes that is too long to be kept.
    pub fn long_bytes(&mut self, message: MessageId, field: &'static Field, length: u64) {
        match (self.open.last(), message, field.number) {
            (Some(Open::NestedValue), ..) => self.set_inner(None),
            (Some(Open::Value), ATTR_VALUE, attr_value::S) => {
                self.value = Stored::String(StoredText::long(length));
            }
            (Some(Open::List), ATTR_VALUE_LIST_VALUE, attr_value_list_value::S) => {
                if let Stored::List(list) = &mut self.value {
                    let text = StoredText::long(length);
                    self.attributes.push_text(list, Element::String, text);
                }
            }
            (Some(Open::Tensor), TENSOR_PROTO, number) => {
                let Stored::Tensor(tensor) = &mut self.value else { return };
                match number {
                    tensor_proto::TENSOR_CONTENT => tensor.set_long_content(length),
                    _ => tensor.add_values(1),
                }
            }
            _ => {}
        }
    }

    /// Returns true if elements of packed numbers are needed.
    pub fn wants_packed(&self, message: MessageId) -> bool {
        matches!(
            (self.open.last(), message),
            (Some(Open::List), ATTR_VALUE_LIST_VALUE) | (Some(Open::Tensor), TENSOR_PROTO)
        )
    }

    /// Returns true if a field of bytes is needed.
    pub fn wants_bytes(&self, message: MessageId, field: &'static Field) -> bool {
        matches!(
            (self.open.last(), message, field.number),
            (Some(Open::Value | Open::NestedValue), ATTR_VALUE, attr_value::S)
                | (Some(Open::List), ATTR_VALUE_LIST_VALUE, attr_value_list_value::S)
                | (
                    Some(Open::Tensor),
                    TENSOR_PROTO,
                    tensor_proto::TENSOR_CONTENT | tensor_proto::STRING_VAL
                )
        )
    }
}

/// Passes a walk over a node, or a part of one, to the reader.
impl Visitor for AttributeReader {
    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        Self::enter(self, message, field)
    }

    fn leave(&mut self, message: MessageId, field: &'static Field, _at: u64) {
        Self::leave(self, message, field);
    }

    fn integer(&mut self, message: MessageId, field: &'static Field, value: u64) {
        Self::integer(self, message, field, value);
    }

    fn floats(&mut self, message: MessageId, field: &'static Field, count: u64, bytes: &[u8]) {
        Self::floats(self, message, field, count, bytes);
    }

    fn string(&mut self, message: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        Self::string(self, message, field, piece, is);
    }

    fn long_bytes(&mut self, message: MessageId, field: &'static Field, length: u64) {
        Self::long_bytes(self, message, field, length);
    }

    fn wants_packed(&self, message: MessageId) -> bool {
        Self::wants_packed(self, message)
    }

    fn wants_bytes(&self, message: MessageId, field: &'static Field) -> bool {
        Self::wants_bytes(self, message, field)
    }
}

/// Returns the shape that is being read: that of the value, of its tensor, or an element of its
/// list.
fn open_shape<'a>(
    value: &'a mut Stored,
    element: &'a mut StoredShape,
) -> Option<&'a mut StoredShape> {
    match value {
        Stored::Shape(shape) => Some(shape),
        Stored::Tensor(tensor) => Some(tensor.shape_mut()),
        Stored::List(_) => Some(element),
        _ => None,
    }
}
