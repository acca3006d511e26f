//! Owned definitions of operations, which lists of operations are read into.
//!
//! Does not depend on any serialized form.

use std::borrow::Cow;

use serdes_abi::ErrorKind;
use serdes_graph_format::schema::EnumType;

/// The definition of an operation, owned. Made by
/// [`Operation::to_definition`](super::Operation::to_definition).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OperationDefinition {
    /// The name, as in `NodeDef.op`.
    pub name: String,
    /// The inputs, in order.
    pub inputs: Vec<ArgumentDefinition>,
    /// The outputs, in order.
    pub outputs: Vec<ArgumentDefinition>,
    /// The attributes, in TensorFlow's order.
    pub attributes: Vec<AttributeDefinition>,
    /// True if the operation has state, or an effect besides its outputs.
    pub is_stateful: bool,
    /// True if the two inputs may be swapped.
    pub is_commutative: bool,
    /// True if the operation adds up its inputs, in any order.
    pub is_aggregate: bool,
    /// True if a reference input need not be initialized.
    pub allows_uninitialized_input: bool,
    /// The first GraphDef version whose graphs may not use the operation.
    pub deprecated_since: Option<i32>,
    /// True if only the name is known: the operation then takes any inputs, outputs and attributes.
    pub is_name_alone: bool,
}

/// An input or output of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArgumentDefinition {
    /// The name.
    pub name: String,
    /// The source of its element type.
    pub element: ArgumentType,
    /// The attribute with the number of tensors, if the argument is a list of tensors of one type.
    pub number_attribute: Option<String>,
    /// True if it is a reference to a variable's memory.
    pub is_reference: bool,
}

/// The source of an argument's element type.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ArgumentType {
    /// Always this type, by TensorFlow's number.
    Fixed(i32),
    /// The attribute of this name holds the type.
    Attribute(String),
    /// The attribute of this name holds a list of types, one per tensor.
    List(String),
}

/// An attribute of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttributeDefinition {
    /// The name.
    pub name: String,
    /// The kind of its values.
    pub kind: AttributeKind,
    /// The value used where the attribute is left out; without a default the attribute is required.
    pub default: Option<ValueDefinition>,
    /// The smallest value of an integer, or the smallest length of a list.
    pub minimum: Option<i64>,
    /// The allowed values (types and strings; for lists, those of each element); `None` if all are.
    pub allowed: Option<Vec<ValueDefinition>>,
}

/// The type of an attribute: the kind of a value, and whether it is a list of such values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AttributeKind {
    /// The kind of one value.
    pub element: Element,
    /// The value is a list.
    pub is_list: bool,
}

/// The kind of one value of an attribute.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Element {
    /// Bytes, mostly text.
    String,
    /// An integer of 64 bits.
    Int,
    /// A float of 32 bits.
    Float,
    /// A truth value.
    Bool,
    /// An element type.
    Type,
    /// A shape, of known rank or not.
    Shape,
    /// A tensor.
    Tensor,
    /// A function's name.
    Function,
}

/// A value of an attribute, owned.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ValueDefinition {
    /// Bytes, mostly text.
    String(Vec<u8>),
    /// An integer.
    Int(i64),
    /// A float, by its bits, so that a definition with NaN equals itself.
    Float(u32),
    /// A truth value.
    Bool(bool),
    /// An element type by TensorFlow's number.
    Type(i32),
    /// The dimensions (-1 for one that is not known), or `None` if not even the rank is.
    Shape(Option<Vec<i64>>),
    /// A serialized `TensorProto`.
    Tensor(Vec<u8>),
    /// The name of a function.
    Function(String),
    /// Several of one kind.
    List(Vec<ValueDefinition>),
}

/// An error in the definition of an operation.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("operation {operation:?}: {what} is {found}; expected {expected}")]
#[non_exhaustive]
pub struct DefinitionError {
    /// The name of the operation, if it has one.
    pub operation: String,
    /// The item that is wrong.
    pub what: String,
    /// The found text, cut at 80 characters.
    pub found: String,
    /// The expected text.
    pub expected: &'static str,
}

impl DefinitionError {
    /// Returns the kind of the error, which says what action it calls for.
    #[must_use]
    pub const fn kind(&self) -> ErrorKind {
        ErrorKind::InvalidInput
    }
}

impl Element {
    const NAMES: [(Self, &str); 8] = [
        (Self::String, "string"),
        (Self::Int, "int"),
        (Self::Float, "float"),
        (Self::Bool, "bool"),
        (Self::Type, "type"),
        (Self::Shape, "shape"),
        (Self::Tensor, "tensor"),
        (Self::Function, "func"),
    ];

    fn name(self) -> &'static str {
        Self::NAMES.iter().find(|(element, _)| *element == self).map_or("", |(_, name)| name)
    }

    /// Returns the position in the list, for the table.
    pub(crate) fn number(self) -> u8 {
        self as u8
    }

    pub(crate) fn of_number(number: u8) -> Self {
        Self::NAMES.get(usize::from(number)).map_or(Self::String, |(element, _)| *element)
    }
}

impl AttributeKind {
    /// Returns TensorFlow's name of the kind: `int`, `list(type)` and so on.
    ///
    /// ```
    /// use serdes_operations::AttributeKind;
    ///
    /// let kind = AttributeKind::from_name("list(int)").unwrap();
    /// assert!(kind.is_list);
    /// assert_eq!(kind.to_string(), "list(int)");
    /// assert_eq!(AttributeKind::from_name("integer"), None);
    /// ```
    #[must_use]
    pub fn from_name(text: &str) -> Option<Self> {
        let inner = text.strip_prefix("list(").and_then(|rest| rest.strip_suffix(')'));
        let name = inner.unwrap_or(text);
        let (element, _) = Element::NAMES.into_iter().find(|(_, known)| *known == name)?;
        Some(Self { element, is_list: inner.is_some() })
    }
}

impl std::fmt::Display for AttributeKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let name = self.element.name();
        if self.is_list { write!(f, "list({name})") } else { f.write_str(name) }
    }
}

/// Returns the name of an element type in TensorFlow's `DataType` enumeration: `DT_FLOAT`. A number
/// without a name is written as `DT_` and the number.
pub fn type_name(number: i32) -> Cow<'static, str> {
    let known = EnumType::data_types().and_then(|types| types.name(number));
    known.map_or_else(|| format!("DT_{number}").into(), Cow::Borrowed)
}

impl OperationDefinition {
    /// Creates an operation without arguments and attributes.
    #[must_use]
    pub fn new(name: impl Into<String>) -> Self {
        Self { name: name.into(), ..Self::default() }
    }

    /// Creates an operation of which only the name is known: it takes any inputs and attributes,
    /// and its outputs are of any type.
    #[must_use]
    pub fn of_name(name: impl Into<String>) -> Self {
        Self { is_name_alone: true, ..Self::new(name) }
    }
}
