//! The Python values in a SavedModel (`tensorflow.StructuredValue`), as trees whose memory is
//! reused for the next object or function.
//!
//! Depends on the encoding of values and the merging of repeated fields, but not on the loaders.

use crate::{
    scan::{Kind as FieldKind, Step},
    schema::{
        BOUNDED_TENSOR_SPEC_PROTO, DICT_VALUE, DICT_VALUE_FIELDS_ENTRY, FUNCTION_SPEC, Field,
        LIST_VALUE, MessageId, NAMED_TUPLE_VALUE, PAIR_VALUE, SAVED_CONCRETE_FUNCTION,
        STRUCTURED_VALUE, TENSOR_SPEC_PROTO, TUPLE_VALUE, TYPE_SPEC_PROTO,
        fields::{
            bounded_tensor_spec_proto, dict_value, dict_value_fields_entry, function_spec,
            list_value, named_tuple_value, pair_value, saved_concrete_function, structured_value,
            tensor_spec_proto, tuple_value, type_spec_proto,
        },
        knows_field,
    },
};

/// Limit on the values that are read in one function; real ones have a few hundred.
const MOST_VALUES: usize = 1 << 16;

/// Limit on the bytes of strings that are read in one function.
const MOST_TEXT: usize = 1 << 20;

/// The kind of a structured value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    /// A kind unknown to the release.
    #[default]
    Unset,
    None,
    /// An integer, a float or a truth value.
    Number,
    Text,
    Shape,
    DataType,
    TensorSpec,
    /// A type specification of a class (`TypeSpecProto`).
    TypeSpec,
    /// A tensor, or a NumPy array.
    Tensor,
    List,
    Tuple,
    Dict,
    NamedTuple,
}

/// The position of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct At(u32);

/// A string, by its position.
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    start: u32,
    end: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Value {
    kind: Kind,
    /// The number of a type or class; for a number, 0 if it is zero and 1 otherwise.
    number: i32,
    /// The text, or the name of a named tuple.
    text: Span,
    /// The key or name of the value in the enclosing value.
    key: Span,
    first: Option<At>,
    last: Option<At>,
    next: Option<At>,
}

/// The structured values of an object or function; at most two trees of them.
#[derive(Debug, Default)]
pub(super) struct Structures {
    values: Vec<Value>,
    text: Vec<u8>,
    roots: [Option<At>; 2],
    /// The values that are being read, the innermost last.
    open: Vec<At>,
    /// True if the limit on values or on bytes of strings was reached.
    pub(super) is_oversized: bool,
    /// The GraphDef version of the release that reads.
    release: i32,
}

/// Returns true if a field holds a value, or an entry that becomes one.
fn is_value(message: MessageId, field: &Field) -> bool {
    field.kind == FieldKind::Message(STRUCTURED_VALUE)
        || matches!(
            (message, field.number),
            (DICT_VALUE, dict_value::FIELDS) | (NAMED_TUPLE_VALUE, named_tuple_value::VALUES)
        )
}

impl Structures {
    pub(super) fn new(release: i32) -> Self {
        Self { release, ..Self::default() }
    }

    /// Clears all values.
    pub(super) fn clear(&mut self) {
        self.values.clear();
        self.text.clear();
        self.open.clear();
        self.roots = [None; 2];
    }

    /// Returns the root of the first or second tree.
    pub(super) fn root(&self, number: usize) -> Option<At> {
        self.roots.get(number).copied().flatten()
    }

    fn get(&self, at: At) -> Option<&Value> {
        self.values.get(at.0 as usize)
    }

    fn get_mut(&mut self, at: At) -> Option<&mut Value> {
        self.values.get_mut(at.0 as usize)
    }

    /// Returns the kind of a value; [`Kind::Unset`] for none.
    pub(super) fn kind(&self, at: Option<At>) -> Kind {
        at.and_then(|at| self.get(at)).map_or(Kind::Unset, |value| value.kind)
    }

    /// Returns the number of a type or class; for a number, 0 if it is zero and 1 otherwise.
    pub(super) fn number(&self, at: At) -> i32 {
        self.get(at).map_or(0, |value| value.number)
    }

    /// Returns the text, or the name of a named tuple.
    pub(super) fn text(&self, at: At) -> &[u8] {
        self.get(at).map_or(&[], |value| self.bytes(value.text))
    }

    /// Returns the key or name of a value in the enclosing value.
    pub(super) fn key(&self, at: At) -> &[u8] {
        self.get(at).map_or(&[], |value| self.bytes(value.key))
    }

    fn bytes(&self, Span { start, end }: Span) -> &[u8] {
        self.text.get(start as usize..end as usize).unwrap_or_default()
    }

    /// Returns the values directly inside a value.
    pub(super) fn children(&self, at: At) -> impl Iterator<Item = At> + Clone + '_ {
        let first = self.get(at).and_then(|value| value.first);
        std::iter::successors(first, |at| self.get(*at)?.next)
    }

    /// Returns the last value called `key` directly inside a value.
    pub(super) fn child(&self, at: At, key: &[u8]) -> Option<At> {
        self.children(at).filter(|child| self.key(*child) == key).last()
    }

    /// Returns true if Python treats a value as false; `None` if the kind of the value does not
    /// decide that.
    pub(super) fn is_empty(&self, at: At) -> Option<bool> {
        match self.kind(Some(at)) {
            Kind::None => Some(true),
            Kind::Number => Some(self.number(at) == 0),
            Kind::Text => Some(self.text(at).is_empty()),
            Kind::List | Kind::Tuple | Kind::Dict | Kind::NamedTuple => {
                Some(self.children(at).next().is_none())
            }
            Kind::Unset
            | Kind::Shape
            | Kind::DataType
            | Kind::TensorSpec
            | Kind::TypeSpec
            | Kind::Tensor => None,
        }
    }

    fn make(&mut self) -> Option<At> {
        if self.values.len() >= MOST_VALUES {
            self.is_oversized = true;
            return None;
        }
        let at = At(u32::try_from(self.values.len()).ok()?);
        self.values.push(Value::default());
        Some(at)
    }

    fn append(&mut self) -> Option<At> {
        let outer = *self.open.last()?;
        let at = self.make()?;
        let before = self.get_mut(outer)?.last.replace(at);
        match before {
            Some(before) => self.get_mut(before)?.next = Some(at),
            None => self.get_mut(outer)?.first = Some(at),
        }
        Some(at)
    }

    /// Returns the root of tree `number`, which is created if necessary.
    fn open_root(&mut self, number: usize) -> Option<At> {
        if let Some(known) = self.root(number) {
            return Some(known);
        }
        let made = self.make()?;
        *self.roots.get_mut(number)? = Some(made);
        Some(made)
    }

    /// Sets the kind of the innermost value, replacing the previous one, because only the last
    /// member of a oneof counts.
    fn set_kind(&mut self, kind: Kind) {
        let Some(value) = self.open.last().copied().and_then(|at| self.get_mut(at)) else { return };
        if value.kind != kind {
            let Value { key, next, .. } = *value;
            *value = Value { kind, key, next, ..Value::default() };
        }
    }

    fn set_number(&mut self, number: i32) {
        if let Some(value) = self.open.last().copied().and_then(|at| self.get_mut(at)) {
            value.number = number;
        }
    }

    /// Keeps a string; returns its position.
    fn keep(&mut self, text: &[u8]) -> Span {
        if self.text.len().saturating_add(text.len()) > MOST_TEXT {
            self.is_oversized = true;
            return Span::default();
        }
        let start = self.text.len() as u32;
        self.text.extend_from_slice(text);
        Span { start, end: self.text.len() as u32 }
    }

    /// Handles the start of a message: a value, or a message that contains values.
    pub(super) fn enter(&mut self, message: MessageId, field: &Field) -> Step {
        if is_value(message, field) {
            let opened = match (message, field.number) {
                (FUNCTION_SPEC, function_spec::FULLARGSPEC)
                | (
                    SAVED_CONCRETE_FUNCTION,
                    saved_concrete_function::CANONICALIZED_INPUT_SIGNATURE,
                ) => self.open_root(0),
                (FUNCTION_SPEC, function_spec::INPUT_SIGNATURE)
                | (SAVED_CONCRETE_FUNCTION, saved_concrete_function::OUTPUT_SIGNATURE) => {
                    self.open_root(1)
                }
                (LIST_VALUE, list_value::VALUES)
                | (TUPLE_VALUE, tuple_value::VALUES)
                | (DICT_VALUE, dict_value::FIELDS)
                | (NAMED_TUPLE_VALUE, named_tuple_value::VALUES) => self.append(),
                (DICT_VALUE_FIELDS_ENTRY, dict_value_fields_entry::VALUE)
                | (PAIR_VALUE, pair_value::VALUE) => self.open.last().copied(),
                (TYPE_SPEC_PROTO, type_spec_proto::TYPE_STATE) => {
                    let outer = self.open.last().copied();
                    let known = outer.and_then(|outer| self.children(outer).next());
                    known.or_else(|| self.append())
                }
                _ => None,
            };
            let Some(opened) = opened else { return Step::Over };
            self.open.push(opened);
            return Step::Into;
        }
        if message != STRUCTURED_VALUE {
            return Step::Into;
        }
        if !knows_field(self.release, message, field.number) {
            return Step::Over;
        }
        let (kind, step) = match field.number {
            structured_value::NONE_VALUE => (Kind::None, Step::Over),
            structured_value::TENSOR_SHAPE_VALUE => (Kind::Shape, Step::Over),
            structured_value::TENSOR_VALUE | structured_value::NUMPY_VALUE => {
                (Kind::Tensor, Step::Over)
            }
            structured_value::TENSOR_SPEC_VALUE | structured_value::BOUNDED_TENSOR_SPEC_VALUE => {
                (Kind::TensorSpec, Step::Into)
            }
            structured_value::TYPE_SPEC_VALUE => (Kind::TypeSpec, Step::Into),
            structured_value::LIST_VALUE => (Kind::List, Step::Into),
            structured_value::TUPLE_VALUE => (Kind::Tuple, Step::Into),
            structured_value::DICT_VALUE => (Kind::Dict, Step::Into),
            structured_value::NAMED_TUPLE_VALUE => (Kind::NamedTuple, Step::Into),
            _ => return Step::Into,
        };
        self.set_kind(kind);
        step
    }

    /// Handles the end of a message that was entered.
    pub(super) fn leave(&mut self, message: MessageId, field: &Field) {
        if is_value(message, field) {
            self.open.pop();
        }
    }

    /// Handles a number.
    pub(super) fn integer(&mut self, message: MessageId, field: &Field, value: u64) {
        match (message, field.number) {
            (STRUCTURED_VALUE, structured_value::TENSOR_DTYPE_VALUE) => {
                self.set_kind(Kind::DataType);
                self.set_number(value as u32 as i32);
            }
            (STRUCTURED_VALUE, structured_value::FLOAT64_VALUE) => {
                self.set_kind(Kind::Number);
                // Zero has two signs.
                self.set_number(i32::from(f64::from_bits(value) != 0.0));
            }
            (STRUCTURED_VALUE, _) => {
                self.set_kind(Kind::Number);
                self.set_number(i32::from(value != 0));
            }
            (TENSOR_SPEC_PROTO, tensor_spec_proto::DTYPE)
            | (BOUNDED_TENSOR_SPEC_PROTO, bounded_tensor_spec_proto::DTYPE)
            | (TYPE_SPEC_PROTO, type_spec_proto::TYPE_SPEC_CLASS) => {
                self.set_number(value as u32 as i32);
            }
            _ => {}
        }
    }

    /// Handles a complete string.
    pub(super) fn string(&mut self, message: MessageId, field: &Field, text: &[u8]) {
        let is_key = match (message, field.number) {
            (STRUCTURED_VALUE, structured_value::STRING_VALUE) => {
                self.set_kind(Kind::Text);
                false
            }
            (NAMED_TUPLE_VALUE, named_tuple_value::NAME) => false,
            (DICT_VALUE_FIELDS_ENTRY, dict_value_fields_entry::KEY)
            | (PAIR_VALUE, pair_value::KEY) => true,
            _ => return,
        };
        let kept = self.keep(text);
        let Some(value) = self.open.last().copied().and_then(|at| self.get_mut(at)) else { return };
        *(if is_key { &mut value.key } else { &mut value.text }) = kept;
    }
}
