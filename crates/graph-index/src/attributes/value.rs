//! A read-only view of the value of an attribute.

use std::{
    fmt,
    hash::{Hash, Hasher},
};

use super::arena::{Attributes, StoredList, TypeCount};
use crate::{
    data_type::DataType,
    ops::{AttributeKind, Element, Value, Values, type_name},
};

/// A value of an attribute; names of members as in TensorFlow's `AttrValue`.
#[derive(Clone, Copy, Debug)]
pub enum AttributeValue<'a> {
    /// No member is set.
    None,
    /// Bytes.
    String(Text<'a>),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f32),
    /// A truth value.
    Bool(bool),
    /// An element type by its number, which may be unknown to every release.
    Type(i32),
    /// A shape.
    Shape(ShapeValue<'a>),
    /// A tensor.
    Tensor(TensorValue<'a>),
    /// The name of a function.
    Function(Text<'a>),
    /// A placeholder: the name of an attribute of the enclosing function, whose caller gives the
    /// value.
    Placeholder(Text<'a>),
    /// Any number of values.
    List(List<'a>),
}

/// A text or bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Text<'a> {
    /// Its length in bytes.
    pub length: u64,
    /// The bytes; `None` if there are more than 64 KiB.
    pub bytes: Option<&'a [u8]>,
}

/// A shape, valid or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ShapeValue<'a> {
    /// True if not even the rank is known.
    pub is_unknown_rank: bool,
    /// Number of dimensions.
    pub rank: u64,
    /// The first 255 of them; fewer where a node has very many.
    pub dimensions: &'a [i64],
}

/// A tensor, valid or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct TensorValue<'a> {
    /// The number of its element type.
    pub data_type: i32,
    /// Its shape.
    pub shape: ShapeValue<'a>,
    /// Its elements as bytes, kept if they are at most 2 KiB.
    pub content: Text<'a>,
    /// The first integers of `int_val` or `int64_val`; all of them if they are as many as `values`.
    pub numbers: &'a [i64],
    /// Number of values in typed fields.
    pub values: u64,
    /// Number of these values in `int_val`, which TensorFlow reads only for integers of up to 32
    /// bits.
    pub small_integers: u64,
}

/// The reason why TensorFlow cannot create a tensor from its message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TensorDiagnostic {
    /// Its shape, type or bytes are invalid.
    Malformed,
    /// It has this type, which not every release knows.
    OfType(i32),
}

/// Limit on the size of a tensor whose contents are checked, in bytes.
const MOST_BYTES: u64 = 32 << 20;

/// The largest type number that every release knows.
const LAST_TYPE_OF_ALL: i32 = 25;

impl TensorValue<'_> {
    /// Returns the reason why some release cannot create a tensor from it.
    pub fn diagnostic(self) -> Option<TensorDiagnostic> {
        let number = self.data_type;
        let has_shape = !self.shape.is_unknown_rank && self.shape.is_full_shape();
        if !has_shape || !(1..=REFERENCES).contains(&number) {
            return Some(TensorDiagnostic::Malformed);
        }
        let count = count_of(self.shape.dimensions).and_then(|count| u64::try_from(count).ok());
        let size = DataType::from_number(number).and_then(DataType::element_size);
        let bytes = count.zip(size).and_then(|(count, size)| count.checked_mul(size));
        let is_read = |bytes: &u64| (1..=MOST_BYTES).contains(bytes) && self.content.length > 0;
        if bytes.filter(is_read).is_some_and(|bytes| bytes != self.content.length) {
            return Some(TensorDiagnostic::Malformed);
        }
        (number > LAST_TYPE_OF_ALL).then_some(TensorDiagnostic::OfType(number))
    }
}

/// Type numbers above this one are reference types.
const REFERENCES: i32 = 100;

/// A list of values.
#[derive(Clone, Copy)]
pub struct List<'a> {
    pub(super) attributes: &'a Attributes,
    pub(super) list: StoredList,
}

impl<'a> List<'a> {
    /// Returns the number of values.
    pub fn len(self) -> u64 {
        self.list.length()
    }

    /// Returns true if it has no values.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// Returns the kind of its values; `None` if there are none.
    pub fn element(self) -> Option<Element> {
        self.list.element()
    }

    /// Returns true if it has values of two kinds.
    pub fn is_mixed(self) -> bool {
        self.list.is_mixed()
    }

    /// Returns all types in it, even if it is mixed.
    pub fn types(self) -> &'a [TypeCount] {
        self.list.types(self.attributes)
    }

    /// Returns the first values other than types and tensors: all strings and functions, at most
    /// 65536 of the others.
    pub fn values(self) -> impl Iterator<Item = AttributeValue<'a>> {
        (0..).map_while(move |position| self.list.get(self.attributes, position))
    }

    /// Returns the strings in it, even if it is mixed.
    pub fn texts(self) -> impl Iterator<Item = Text<'a>> {
        self.list.texts(self.attributes, Element::String)
    }

    /// Returns the first 65536 shapes in it, even if it is mixed.
    pub fn shapes(self) -> impl Iterator<Item = ShapeValue<'a>> {
        self.list.shapes(self.attributes)
    }

    /// Returns the names of the functions in it, even if it is mixed.
    pub fn functions(self) -> impl Iterator<Item = Text<'a>> {
        self.list.texts(self.attributes, Element::Function)
    }

    fn equals(self, default: Values<'_>) -> bool {
        if self.is_mixed() {
            return false;
        }
        if self.element() == Some(Element::Type) {
            let mut types = self.types().iter().flat_map(|run| {
                std::iter::repeat_n(run.data_type, usize::try_from(run.count).unwrap_or(usize::MAX))
            });
            let is_same = default.clone().all(|value| match (types.next(), value) {
                (Some(own), Value::Type(other)) => own == other,
                _ => false,
            });
            return is_same && types.next().is_none();
        }
        let mut own = self.values();
        let mut length = 0_u64;
        let is_same = default.clone().all(|value| {
            length += 1;
            own.next().is_some_and(|own| own.equals(value))
        });
        is_same && length == self.len()
    }
}

impl fmt::Debug for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl Text<'_> {
    fn equals(self, other: &[u8]) -> bool {
        self.bytes == Some(other)
    }
}

/// The most dimensions that a shape has.
const HIGHEST_RANK: u64 = 254;

impl ShapeValue<'_> {
    /// Returns true if all dimensions were kept.
    fn is_whole(self) -> bool {
        self.dimensions.len() as u64 == self.rank
    }

    /// Returns true if TensorFlow accepts it as a partially known shape.
    pub fn is_partial_shape(self) -> bool {
        if self.is_unknown_rank {
            return self.rank == 0;
        }
        let are_sizes = self.dimensions.iter().all(|size| *size >= -1);
        // TensorFlow stops counting elements at an unknown dimension.
        let known = self.dimensions.iter().take_while(|size| **size >= 0);
        self.rank <= HIGHEST_RANK && are_sizes && count_of(known).is_some()
    }

    /// Returns true if TensorFlow accepts it as the shape of a constant; one of unknown rank is
    /// accepted.
    pub fn is_full_shape(self) -> bool {
        let are_sizes = self.dimensions.iter().all(|size| *size >= 0);
        self.is_unknown_rank
            || (self.rank <= HIGHEST_RANK && are_sizes && count_of(self.dimensions).is_some())
    }
}

/// Returns the number of elements, unless the product reaches 2^63 when multiplied from the first
/// dimension.
fn count_of<'d>(dimensions: impl IntoIterator<Item = &'d i64>) -> Option<i64> {
    dimensions.into_iter().try_fold(1_i64, |count, size| count.checked_mul(*size))
}

impl<'a> AttributeValue<'a> {
    /// Returns the kind of the value, as the definition of an attribute names it; `None` for an
    /// unset value, a placeholder, and a list that is empty or mixed.
    pub fn kind(self) -> Option<AttributeKind> {
        let (element, is_list) = match self {
            Self::None | Self::Placeholder(_) => return None,
            Self::String(_) => (Element::String, false),
            Self::Int(_) => (Element::Int, false),
            Self::Float(_) => (Element::Float, false),
            Self::Bool(_) => (Element::Bool, false),
            Self::Type(_) => (Element::Type, false),
            Self::Shape(_) => (Element::Shape, false),
            Self::Tensor(_) => (Element::Tensor, false),
            Self::Function(_) => (Element::Function, false),
            Self::List(list) if list.is_mixed() => return None,
            Self::List(list) => (list.element()?, true),
        };
        Some(AttributeKind { element, is_list })
    }

    /// Returns true if it equals a default. Values that are not kept completely, such as tensors,
    /// count as different.
    pub fn equals(self, default: Value<'_>) -> bool {
        match (self, default) {
            (Self::String(text), Value::String(other)) => text.equals(other),
            (Self::Int(own), Value::Int(other)) => own == other,
            // TensorFlow compares floats by their bits.
            (Self::Float(own), Value::Float(other)) => own.to_bits() == other.to_bits(),
            (Self::Bool(own), Value::Bool(other)) => own == other,
            (Self::Type(own), Value::Type(other)) => own == other,
            (Self::Shape(own), Value::Shape(other)) => match other {
                None => own.is_unknown_rank,
                Some(mut other) => {
                    let is_same = own.dimensions.iter().all(|size| other.next() == Some(*size));
                    !own.is_unknown_rank && own.is_whole() && is_same && other.next().is_none()
                }
            },
            (Self::Function(name), Value::Function(other)) => name.equals(other.as_bytes()),
            (Self::List(list), Value::List(other)) => list.equals(other),
            _ => false,
        }
    }

    /// Returns the first invalid shape in it: itself, that of its tensor, or one of its list.
    pub fn invalid_shape(self, is_valid: fn(ShapeValue<'_>) -> bool) -> Option<ShapeValue<'a>> {
        let one = |value| match value {
            Self::Shape(shape) => Some(shape),
            Self::Tensor(tensor) => Some(tensor.shape),
            _ => None,
        };
        let is_none = |shape: &ShapeValue<'_>| !is_valid(*shape);
        match self {
            Self::List(list) if list.is_mixed() => None,
            Self::List(list) => list.values().filter_map(one).find(is_none),
            value => one(value).filter(is_none),
        }
    }

    /// Hashes the value; of a tensor only the validity of its shape.
    pub(super) fn hash_judged(self, state: &mut impl Hasher) {
        std::mem::discriminant(&self).hash(state);
        match self {
            Self::None => {}
            Self::Tensor(tensor) => {
                (tensor.shape.is_full_shape(), tensor.shape.is_unknown_rank).hash(state);
            }
            Self::String(text) | Self::Function(text) | Self::Placeholder(text) => text.hash(state),
            Self::Int(number) => number.hash(state),
            Self::Float(number) => number.to_bits().hash(state),
            Self::Bool(flag) => flag.hash(state),
            Self::Type(number) => number.hash(state),
            Self::Shape(shape) => shape.hash(state),
            Self::List(list) => {
                (list.len(), list.is_mixed(), list.element()).hash(state);
                list.types().hash(state);
                list.values().for_each(|value| value.hash_judged(state));
                if list.is_mixed() {
                    list.functions().for_each(|name| name.hash(state));
                }
            }
        }
    }
}

/// Limit on the bytes of a string, and on the values of a list, that are displayed.
const SHOWN_BYTES: usize = 64;
const SHOWN_VALUES: usize = 8;

impl fmt::Display for Text<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.bytes.unwrap_or_default();
        match bytes.get(..SHOWN_BYTES) {
            None if self.bytes.is_some() => write!(f, "{:?}", String::from_utf8_lossy(bytes)),
            None => write!(f, "<{} bytes>", self.length),
            Some(start) => {
                let start = String::from_utf8_lossy(start);
                write!(f, "{start:?}… ({} bytes)", self.length)
            }
        }
    }
}

impl fmt::Display for ShapeValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_unknown_rank && self.rank == 0 {
            return f.write_str("<unknown rank>");
        }
        f.write_str("[")?;
        for (position, size) in self.dimensions.iter().take(SHOWN_VALUES).enumerate() {
            let comma = if position == 0 { "" } else { ", " };
            write!(f, "{comma}{size}")?;
        }
        if self.rank > SHOWN_VALUES as u64 {
            write!(f, ", … {} dimensions", self.rank)?;
        }
        f.write_str("]")?;
        if self.is_unknown_rank { f.write_str(" of unknown rank") } else { Ok(()) }
    }
}

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_mixed() {
            return write!(f, "[values of several kinds, {}]", self.len());
        }
        f.write_str("[")?;
        let mut shown = 0_u64;
        let mut comma = |f: &mut fmt::Formatter<'_>| {
            shown += 1;
            if shown > 1 { f.write_str(", ") } else { Ok(()) }
        };
        for run in self.types().iter().take(SHOWN_VALUES) {
            comma(f)?;
            f.write_str(&type_name(run.data_type))?;
            if run.count > 1 {
                write!(f, " × {}", run.count)?;
            }
        }
        for value in self.values().take(SHOWN_VALUES) {
            comma(f)?;
            write!(f, "{value}")?;
        }
        let is_whole = match self.element() {
            Some(Element::Type) => self.types().len() <= SHOWN_VALUES,
            _ => self.len() == shown,
        };
        if is_whole { f.write_str("]") } else { write!(f, ", … {} values]", self.len()) }
    }
}

/// Formats the value as TensorFlow's messages do: `DT_FLOAT`, `"SAME"`, `[1, 2]`.
impl fmt::Display for AttributeValue<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("no value"),
            Self::String(text) => write!(f, "{text}"),
            Self::Int(number) => write!(f, "{number}"),
            Self::Float(number) => write!(f, "{number:?}"),
            Self::Bool(flag) => write!(f, "{flag}"),
            Self::Type(number) => f.write_str(&type_name(*number)),
            Self::Shape(shape) => write!(f, "{shape}"),
            Self::Tensor(tensor) => {
                write!(f, "<tensor {} {}>", type_name(tensor.data_type), tensor.shape)
            }
            Self::Function(name) => write!(f, "function {name}"),
            Self::Placeholder(name) => write!(f, "placeholder {name}"),
            Self::List(list) => write!(f, "{list}"),
        }
    }
}
