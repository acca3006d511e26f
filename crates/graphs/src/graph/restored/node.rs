//! Reads the nodes that restore variables: their inputs and the few attributes that determine what
//! is restored.
//!
//! Depends on the encoding of nodes, but not on their operations.

use crate::{
    graph::whole_text::WholeText,
    scan::{Piece, Step, Visitor},
    schema::{
        ATTR_VALUE, ATTR_VALUE_LIST_VALUE, Field, MessageId, NAME_ATTR_LIST, NODE_DEF,
        NODE_DEF_ATTR_ENTRY, TENSOR_PROTO, TENSOR_SHAPE_PROTO, TENSOR_SHAPE_PROTO_DIM,
        fields::{
            attr_value, attr_value_list_value, node_def, node_def_attr_entry, tensor_proto,
            tensor_shape_proto,
        },
    },
};

/// Limit on the numbers that are kept of a constant: a shape has at most 254.
const MOST_NUMBERS: usize = 256;

/// A shape in an attribute.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    /// Sizes of the dimensions; -1 for an unknown one.
    pub(super) sizes: Vec<i64>,
    pub(super) is_unknown: bool,
}

impl Shape {
    /// Returns the sizes, if all of them are known.
    pub(super) fn known(&self) -> Option<&[i64]> {
        let is_known = !self.is_unknown && self.sizes.iter().all(|size| *size >= 0);
        is_known.then_some(self.sizes.as_slice())
    }
}

/// The kept part of the value of a constant.
#[derive(Clone, Debug, Default)]
pub(super) struct Constant {
    pub(super) shape: Shape,
    pub(super) texts: Vec<Vec<u8>>,
    pub(super) numbers: Vec<i64>,
    content: Vec<u8>,
    /// True if the value is longer than what is kept.
    pub(super) is_long: bool,
}

impl Constant {
    /// Returns the strings of all elements: the last one stands for omitted elements.
    pub(super) fn all_texts(&self) -> Option<Vec<Vec<u8>>> {
        let count = self.shape.known()?.iter().try_fold(1_i64, |all, size| all.checked_mul(*size));
        let count = usize::try_from(count?).ok().filter(|_| !self.is_long)?;
        // Omitted elements take no space in a file.
        let is_bounded = count <= self.texts.len().saturating_add(1 << 20);
        let last = self.texts.last().cloned().unwrap_or_default();
        let rest = std::iter::repeat(last);
        is_bounded.then(|| self.texts.iter().cloned().chain(rest).take(count).collect())
    }

    /// Returns the numbers of all elements, of 32-bit or 64-bit integers.
    pub(super) fn all_numbers(&self) -> Option<Vec<i64>> {
        let count = self.shape.known()?.iter().try_fold(1_i64, |all, size| all.checked_mul(*size));
        let count = usize::try_from(count?).ok();
        let count = count.filter(|count| !self.is_long && *count <= MOST_NUMBERS)?;
        if self.content.is_empty() {
            let rest = std::iter::repeat(self.numbers.last().copied().unwrap_or_default());
            return Some(self.numbers.iter().copied().chain(rest).take(count).collect());
        }
        let numbers: Vec<i64> = match self.content.len().checked_div(count)? {
            4 => {
                let chunks = self.content.as_chunks().0.iter();
                chunks.map(|bytes| i32::from_le_bytes(*bytes).into()).collect()
            }
            8 => {
                let chunks = self.content.as_chunks().0.iter();
                chunks.map(|bytes| i64::from_le_bytes(*bytes)).collect()
            }
            _ => return None,
        };
        (numbers.len() == count).then_some(numbers)
    }
}

/// The columns of a file with which a table is initialized, from the attributes of the operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableLines {
    /// The column of the keys, counted from 0, or [`WHOLE_LINE`](Self::WHOLE_LINE), or
    /// [`LINE_NUMBER`](Self::LINE_NUMBER).
    pub key: i64,
    /// The column of the values, likewise.
    pub value: i64,
    /// The number of lines that are read; -1 for all.
    pub count: i64,
    /// The byte between columns; any longer delimiter makes the operation fail.
    pub delimiter: Vec<u8>,
}

impl TableLines {
    /// The whole line.
    pub const WHOLE_LINE: i64 = -2;
    /// The line number, counted from 0.
    pub const LINE_NUMBER: i64 = -1;
}

impl Default for TableLines {
    fn default() -> Self {
        Self { key: 0, value: 0, count: -1, delimiter: b"\t".to_vec() }
    }
}

/// The relevant parts of a node.
#[derive(Clone, Debug, Default)]
pub(super) struct Node {
    pub(super) name: Vec<u8>,
    pub(super) operation: Vec<u8>,
    pub(super) inputs: Vec<Vec<u8>>,
    /// The attribute `dtypes`.
    pub(super) types: Vec<i32>,
    /// The attribute `validate_shape`.
    pub(super) validates_shape: Option<bool>,
    /// The attribute `shape` of a variable, or `value_shape` of a table.
    pub(super) shape: Option<Shape>,
    /// The attribute `value`.
    pub(super) constant: Option<Constant>,
    /// The name in the attribute `f`.
    pub(super) function: Vec<u8>,
    /// The attributes of an operation that fills a table from a file.
    pub(super) lines: Option<Box<TableLines>>,
}

impl Node {
    /// Returns the approximate number of bytes that are kept of it.
    pub(super) fn kept(&self) -> usize {
        let constant = self.constant.iter().flat_map(|one| &one.texts);
        let texts = self.inputs.iter().chain(constant);
        texts.fold(size_of::<Self>() + self.name.len(), |kept, text| {
            kept.saturating_add(text.len() + size_of::<Vec<u8>>())
        })
    }
}

/// The attributes that are read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Attribute {
    #[default]
    Other,
    Types,
    ValidatesShape,
    Shape,
    Value,
    Function,
    KeyIndex,
    ValueIndex,
    VocabularySize,
    Delimiter,
}

/// A walk over one node after another.
#[derive(Default)]
pub(super) struct NodeReader {
    pub(super) node: Node,
    attribute: Attribute,
    text: WholeText,
    release: i32,
}

impl NodeReader {
    pub(super) fn new(release: i32) -> Self {
        Self { release, ..Self::default() }
    }

    /// Starts another node.
    pub(super) fn begin(&mut self) {
        self.node = Node::default();
        self.attribute = Attribute::Other;
    }

    /// Returns true if a text was too long to be read.
    pub(super) fn is_oversized(&self) -> bool {
        self.text.oversized
    }

    fn shape(&mut self) -> &mut Shape {
        match self.attribute {
            Attribute::Value => &mut self.node.constant.get_or_insert_default().shape,
            _ => self.node.shape.get_or_insert_default(),
        }
    }
}

impl Visitor for NodeReader {
    fn enter(&mut self, message: MessageId, field: &'static Field) -> Step {
        let attribute = self.attribute;
        let is_entered = match (message, field.number) {
            (NODE_DEF, node_def::ATTR) => {
                self.attribute = Attribute::Other;
                true
            }
            (NODE_DEF_ATTR_ENTRY, node_def_attr_entry::VALUE) => attribute != Attribute::Other,
            (ATTR_VALUE, attr_value::LIST) => attribute == Attribute::Types,
            (ATTR_VALUE, attr_value::SHAPE) => {
                if attribute == Attribute::Shape {
                    self.node.shape.get_or_insert_default();
                }
                attribute == Attribute::Shape
            }
            (ATTR_VALUE, attr_value::TENSOR) => {
                if attribute == Attribute::Value {
                    self.node.constant.get_or_insert_default();
                }
                attribute == Attribute::Value
            }
            (ATTR_VALUE, attr_value::FUNC) => attribute == Attribute::Function,
            (TENSOR_PROTO, tensor_proto::TENSOR_SHAPE) => true,
            (TENSOR_SHAPE_PROTO, tensor_shape_proto::DIM) => {
                self.shape().sizes.push(0);
                true
            }
            _ => false,
        };
        if is_entered { Step::Into } else { Step::Over }
    }

    fn integer(&mut self, message: MessageId, field: &'static Field, value: u64) {
        match (message, field.number) {
            (ATTR_VALUE, attr_value::B) if self.attribute == Attribute::ValidatesShape => {
                self.node.validates_shape = Some(value != 0);
            }
            (ATTR_VALUE, attr_value::I) => {
                let lines = &mut self.node.lines;
                let value = value as i64;
                match self.attribute {
                    Attribute::KeyIndex => lines.get_or_insert_default().key = value,
                    Attribute::ValueIndex => lines.get_or_insert_default().value = value,
                    Attribute::VocabularySize => lines.get_or_insert_default().count = value,
                    _ => {}
                }
            }
            (ATTR_VALUE_LIST_VALUE, attr_value_list_value::TYPE) => {
                self.node.types.push(value as u32 as i32);
            }
            (TENSOR_SHAPE_PROTO, tensor_shape_proto::UNKNOWN_RANK) => {
                self.shape().is_unknown = value != 0;
            }
            (TENSOR_SHAPE_PROTO_DIM, _) => {
                if let Some(size) = self.shape().sizes.last_mut() {
                    *size = value as i64;
                }
            }
            (TENSOR_PROTO, tensor_proto::INT_VAL | tensor_proto::INT64_VAL) => {
                let constant = self.node.constant.get_or_insert_default();
                match constant.numbers.len() < MOST_NUMBERS {
                    true => constant.numbers.push(value as i64),
                    false => constant.is_long = true,
                }
            }
            _ => {}
        }
    }

    fn string(&mut self, message: MessageId, field: &'static Field, piece: &[u8], is: Piece) {
        let Some(text) = self.text.take(piece, is) else { return };
        match (message, field.number) {
            (NODE_DEF, node_def::NAME) => self.node.name = text.to_vec(),
            (NODE_DEF, node_def::OP) => self.node.operation = text.to_vec(),
            (NODE_DEF, node_def::INPUT) => self.node.inputs.push(text.to_vec()),
            (NODE_DEF_ATTR_ENTRY, node_def_attr_entry::KEY) => {
                self.attribute = match text {
                    b"dtypes" => Attribute::Types,
                    b"validate_shape" => Attribute::ValidatesShape,
                    b"shape" | b"value_shape" => Attribute::Shape,
                    b"value" => Attribute::Value,
                    b"f" => Attribute::Function,
                    b"key_index" => Attribute::KeyIndex,
                    b"value_index" => Attribute::ValueIndex,
                    b"vocab_size" => Attribute::VocabularySize,
                    b"delimiter" => Attribute::Delimiter,
                    _ => Attribute::Other,
                };
            }
            (ATTR_VALUE, attr_value::S) if self.attribute == Attribute::Delimiter => {
                self.node.lines.get_or_insert_default().delimiter = text.to_vec();
            }
            (NAME_ATTR_LIST, _) => self.node.function = text.to_vec(),
            (TENSOR_PROTO, tensor_proto::STRING_VAL) => {
                self.node.constant.get_or_insert_default().texts.push(text.to_vec());
            }
            (TENSOR_PROTO, tensor_proto::TENSOR_CONTENT) => {
                let constant = self.node.constant.get_or_insert_default();
                constant.content.clear();
                match text.len() <= MOST_NUMBERS * size_of::<i64>() {
                    true => constant.content.extend_from_slice(text),
                    false => constant.is_long = true,
                }
            }
            _ => {}
        }
    }

    fn wants_packed(&self, message: MessageId) -> bool {
        message == ATTR_VALUE_LIST_VALUE || message == TENSOR_PROTO
    }

    fn wants_bytes(&self, message: MessageId, field: &'static Field) -> bool {
        let is_delimiter = (message, field.number) == (ATTR_VALUE, attr_value::S)
            && self.attribute == Attribute::Delimiter;
        let is_of_tensor = message == TENSOR_PROTO
            && matches!(field.number, tensor_proto::STRING_VAL | tensor_proto::TENSOR_CONTENT);
        is_delimiter || is_of_tensor
    }

    fn long_bytes(&mut self, message: MessageId, _field: &'static Field, _length: u64) {
        if message == TENSOR_PROTO {
            self.node.constant.get_or_insert_default().is_long = true;
        }
    }

    fn release(&self) -> i32 {
        self.release
    }
}
