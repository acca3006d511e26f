//! Binds the attributes of a call to the attributes of the called function.
//!
//! A function may leave types and numbers to its caller: an attribute of a node in it is then a
//! placeholder, which names an attribute of the call.
//!
//! Depends on types, numbers and kinds of values, but not on their use.

use std::collections::HashMap;

use crate::{
    graph::{
        attributes::{AttributeValue, Attributes, List},
        node_rules::{ElementType, TypeList},
    },
    ops::{AttributeKind, Element, Operation, Registry, Value},
};

/// The value of an attribute, as far as it determines types and numbers.
#[derive(Clone, Debug)]
pub(super) enum BoundValue {
    Int(i64),
    Type(i32),
    List(BoundList),
    /// A value of another kind.
    Other(Element),
    /// A placeholder outside functions, where no caller gives it a value.
    Placeholder,
    /// An attribute without a value.
    Unset,
}

/// A list as a value.
#[derive(Clone, Debug)]
pub(super) struct BoundList {
    /// The kind of its elements; `None` if it is empty or mixed.
    element: Option<Element>,
    is_empty: bool,
    types: TypeList,
}

impl BoundValue {
    pub(super) fn of(value: AttributeValue<'_>) -> Self {
        match value {
            AttributeValue::None => Self::Unset,
            AttributeValue::Int(number) => Self::Int(number),
            AttributeValue::Type(number) => Self::Type(number),
            AttributeValue::List(list) => Self::List(BoundList::of(list)),
            AttributeValue::Placeholder(_) => Self::Placeholder,
            AttributeValue::String(_) => Self::Other(Element::String),
            AttributeValue::Float(_) => Self::Other(Element::Float),
            AttributeValue::Bool(_) => Self::Other(Element::Bool),
            AttributeValue::Shape(_) => Self::Other(Element::Shape),
            AttributeValue::Tensor(_) => Self::Other(Element::Tensor),
            AttributeValue::Function(_) => Self::Other(Element::Function),
        }
    }

    pub(super) fn of_default(value: Value<'_>) -> Self {
        match value {
            Value::Int(number) => Self::Int(number),
            Value::Type(number) => Self::Type(number),
            Value::List(values) => {
                let mut list =
                    BoundList { element: None, is_empty: true, types: TypeList::default() };
                for value in values {
                    list.is_empty = false;
                    if let Value::Type(number) = value {
                        list.element = Some(Element::Type);
                        list.types.push(value_type(number), 1);
                    }
                }
                Self::List(list)
            }
            Value::String(_) => Self::Other(Element::String),
            Value::Float(_) => Self::Other(Element::Float),
            Value::Bool(_) => Self::Other(Element::Bool),
            Value::Shape(_) => Self::Other(Element::Shape),
            Value::Tensor(_) => Self::Other(Element::Tensor),
            Value::Function(_) => Self::Other(Element::Function),
        }
    }

    /// Returns the number that a function reads from the value; 0 for another kind of value.
    pub(super) fn number(&self) -> i64 {
        if let Self::Int(number) = self { *number } else { 0 }
    }

    /// Returns the type that a function reads from the value.
    pub(super) fn data_type(&self) -> i32 {
        if let Self::Type(number) = self { *number } else { 0 }
    }

    /// Returns the types that a function reads from the value.
    pub(super) fn types(&self) -> TypeList {
        if let Self::List(list) = self { list.types.clone() } else { TypeList::default() }
    }

    /// Returns true if the value names a function.
    pub(super) fn is_function(&self) -> bool {
        matches!(self, Self::Other(Element::Function))
    }

    /// Returns true if the value is of this kind, independent of its types.
    pub(super) fn is_of(&self, kind: AttributeKind) -> bool {
        match self {
            // An unset value is read as an empty list.
            Self::Unset => kind.is_list,
            // Calls from a graph have no placeholders.
            Self::Placeholder => false,
            Self::Int(_) => kind == scalar(Element::Int),
            Self::Type(_) => kind == scalar(Element::Type),
            Self::Other(element) => kind == scalar(*element),
            Self::List(list) => {
                kind.is_list && (list.is_empty || list.element == Some(kind.element))
            }
        }
    }

    /// Returns true if a release knows all types of the value.
    pub(super) fn is_known(&self, registry: &Registry) -> bool {
        match self {
            Self::Type(number) => registry.has_type(*number),
            Self::List(list) => {
                list.types.runs().iter().all(|run| registry.has_type(run.element.data_type))
            }
            _ => true,
        }
    }
}

fn scalar(element: Element) -> AttributeKind {
    AttributeKind { element, is_list: false }
}

/// Returns an element type that is not a reference.
pub(super) fn value_type(data_type: i32) -> ElementType {
    ElementType::new(data_type, false)
}

impl BoundList {
    fn of(list: List<'_>) -> Self {
        let mut types = TypeList::default();
        for run in list.types() {
            types.push(value_type(run.data_type), run.count);
        }
        let element = list.element().filter(|_| !list.is_mixed());
        Self { element, is_empty: list.is_empty(), types }
    }
}

/// The attributes of a call.
#[derive(Clone, Debug, Default)]
pub(super) struct Binding(HashMap<Box<[u8]>, BoundValue>);

impl Binding {
    /// Returns the attributes that a node of a graph passes to the function that it calls.
    pub(super) fn of_graph(attributes: &Attributes) -> Self {
        let values = attributes.iter().map(|(name, value)| (name.into(), BoundValue::of(value)));
        Self(values.collect())
    }

    /// Returns the attributes that a node of a function passes to the function that it calls.
    /// Placeholders are replaced by values of the function `around` the node.
    pub(super) fn of_body(attributes: &Attributes, around: Scope<'_>) -> Self {
        let bind = |(name, value): (&[u8], _)| Some((name.into(), around.bind(value)?));
        Self(attributes.iter().filter_map(bind).collect())
    }
}

impl Binding {
    /// Adds the defaults of attributes that are not given.
    pub(super) fn complete(&mut self, signature: Operation<'_>) {
        for attribute in signature.attributes() {
            if let Some(default) = attribute.default() {
                let entry = self.0.entry(attribute.name().as_bytes().into());
                entry.or_insert_with(|| BoundValue::of_default(default));
            }
        }
    }
}

/// The values of the placeholders of one function.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scope<'a> {
    pub(super) binding: &'a Binding,
    /// The signature of the function.
    pub(super) signature: Operation<'a>,
}

impl Scope<'_> {
    /// Returns the value that the call gives for an attribute.
    pub(super) fn given(&self, name: &str) -> Option<&BoundValue> {
        self.binding.0.get(name.as_bytes())
    }

    /// Returns the value of an attribute of the function: from the call, or the default.
    pub(super) fn get(&self, name: &[u8]) -> Option<BoundValue> {
        let default = || {
            let attribute = self.signature.attribute(std::str::from_utf8(name).ok()?)?;
            attribute.default().map(BoundValue::of_default)
        };
        self.binding.0.get(name).cloned().or_else(default)
    }

    /// Returns the bound value of a value in the function; `None` if it cannot be bound.
    pub(super) fn bind(&self, value: AttributeValue<'_>) -> Option<BoundValue> {
        match value {
            AttributeValue::None => None,
            AttributeValue::Placeholder(name) => self.get(name.bytes?),
            value => Some(BoundValue::of(value)),
        }
    }
}
