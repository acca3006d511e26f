//! The rules for the values of attributes, and the resulting types.
//!
//! Measured on TensorFlow 2.12 to 2.21; the order of the checks is the importer's. TensorFlow does
//! not define which of several wrong attributes is reported first; here it is the first one of the
//! definition.

use super::{
    ElementType, NodeRuleDiagnostic, NodeType, TypeList,
    diagnostic::{at_least, element_type, kind, minimum, not_allowed, number, one_of},
};
use crate::{
    attributes::{AttributeValue, Attributes},
    ops::{
        Argument, ArgumentSource, Attribute, AttributeKind, Element, Operation, Registry, Value,
        Values, type_name,
    },
};

/// The extent to which a loader checks a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Strictness {
    /// Completely: the C import.
    Import,
    /// Completely, except that an invalid value is replaced by the default, if there is one:
    /// Python's importers.
    PythonImport,
    /// Likewise after `tf.saved_model.load` has rewritten the nodes: it gives each resource its own
    /// name, replacing the previous value.
    Load,
    /// Only the types of inputs and outputs: a session, which loads a graph without other checks.
    Session,
}

impl Strictness {
    fn is_of_python(self) -> bool {
        matches!(self, Self::PythonImport | Self::Load)
    }
}

/// The rules of one release.
#[derive(Clone, Copy, Debug)]
pub struct NodeRules<'a> {
    /// The release, which determines the known types.
    pub registry: &'a Registry,
    /// The extent to which the node is checked.
    pub strictness: Strictness,
}

/// The value of an attribute: its own or the default.
#[derive(Clone, Copy, Debug)]
pub(super) enum Resolved<'a> {
    Own(AttributeValue<'a>),
    Default(Value<'a>),
}

impl Resolved<'_> {
    /// Returns the type; 0 for a value of another kind.
    fn data_type(self) -> i32 {
        match self {
            Self::Own(AttributeValue::Type(number)) | Self::Default(Value::Type(number)) => number,
            _ => 0,
        }
    }

    /// Returns the number; 0 for a value of another kind.
    fn number(self) -> i64 {
        match self {
            Self::Own(AttributeValue::Int(number)) | Self::Default(Value::Int(number)) => number,
            _ => 0,
        }
    }

    /// Appends its types to a list; nothing for a value of another kind.
    fn push_types(self, is_reference: bool, list: &mut TypeList) {
        let mut push =
            |data_type, count| list.push(ElementType::new(data_type, is_reference), count);
        match self {
            Self::Own(AttributeValue::List(own)) => {
                own.types().iter().for_each(|run| push(run.data_type, run.count));
            }
            Self::Default(Value::List(values)) => {
                values.for_each(|value| push(Resolved::Default(value).data_type(), 1));
            }
            _ => {}
        }
    }
}

impl NodeRules<'_> {
    /// Returns the types of the inputs and outputs of a node of this operation with these
    /// attributes.
    ///
    /// # Errors
    /// [`NodeRuleDiagnostic`]: the first thing that keeps it from being a node of this operation.
    /// Attributes beyond the limit are a diagnostic as well.
    pub fn node_type(
        &self,
        operation: Operation<'_>,
        attributes: &Attributes,
    ) -> Result<NodeType, Box<NodeRuleDiagnostic>> {
        if attributes.is_oversized() {
            return Err(NodeRuleDiagnostic::oversized());
        }
        if operation.is_name_alone() {
            return Ok(NodeType { inputs: TypeList::open(), outputs: TypeList::open() });
        }
        if self.strictness != Strictness::Session {
            self.check(operation, attributes)?;
        }
        let node = Node { rules: *self, operation, attributes };
        let inputs = node.types(operation.inputs())?;
        Ok(NodeType { inputs, outputs: node.types(operation.outputs())? })
    }

    /// Checks the values of all attributes that the operation defines, then that none is missing.
    fn check(
        &self,
        operation: Operation<'_>,
        attributes: &Attributes,
    ) -> Result<(), Box<NodeRuleDiagnostic>> {
        let mut missing = Vec::new();
        for attribute in operation.attributes() {
            let has_default = attribute.has_default();
            let value = match attributes.get(attribute.name()) {
                Some(AttributeValue::None) if self.strictness.is_of_python() && has_default => None,
                found => found,
            };
            match value {
                _ if self.is_rewritten(operation, attribute.name()) => {}
                Some(value) => self.check_value(&attribute, value)?,
                None if has_default => {}
                None => missing.push(attribute.name().to_owned()),
            }
        }
        if missing.is_empty() { Ok(()) } else { Err(NodeRuleDiagnostic::missing(missing)) }
    }

    /// Returns true if the loader overwrites the attribute.
    fn is_rewritten(&self, operation: Operation<'_>, attribute: &str) -> bool {
        let is_sharing = attribute == "use_node_name_sharing" && operation.name() == "HashTableV2";
        self.strictness == Strictness::Load && (attribute == "shared_name" || is_sharing)
    }

    fn check_value(
        &self,
        attribute: &Attribute<'_>,
        value: AttributeValue<'_>,
    ) -> Result<(), Box<NodeRuleDiagnostic>> {
        if let AttributeValue::Placeholder(name) = value
            && name.length > 0
        {
            return Ok(());
        }
        let name = attribute.name();
        if !fits(attribute.kind(), value) {
            let expected = attribute.kind().to_string();
            return Err(NodeRuleDiagnostic::of_value(kind, name, value, expected));
        }
        self.check_types(name, value)?;
        if let Some(least) = attribute.minimum()
            && measure(value).is_some_and(|measured| measured < i128::from(least))
        {
            let expected = at_least(attribute, least);
            return Err(NodeRuleDiagnostic::of_value(minimum, name, value, expected));
        }
        match attribute.allowed() {
            Some(allowed) if !is_allowed(value, allowed) => {
                Err(NodeRuleDiagnostic::of_value(not_allowed, name, value, one_of(allowed)))
            }
            _ => Ok(()),
        }
    }

    /// Fails if a type of the value is not an element type of the release.
    fn check_types(
        &self,
        name: &str,
        value: AttributeValue<'_>,
    ) -> Result<(), Box<NodeRuleDiagnostic>> {
        let Some(unknown) = self.unknown_type(value) else { return Ok(()) };
        let found = match value {
            AttributeValue::List(_) => format!("[…, {}, …]", type_name(unknown)),
            _ => type_name(unknown).into_owned(),
        };
        let expected = format!("an element type of TensorFlow {}", self.registry.release());
        Err(NodeRuleDiagnostic::of_value(element_type, name, found, expected))
    }

    /// Returns the first type of the value that is not an element type of the release.
    fn unknown_type(&self, value: AttributeValue<'_>) -> Option<i32> {
        let is_unknown = |number: i32| number == 0 || !self.registry.has_type(number);
        match value {
            AttributeValue::Type(number) => Some(number).filter(|number| is_unknown(*number)),
            AttributeValue::List(list) => {
                list.types().iter().map(|run| run.data_type).find(|number| is_unknown(*number))
            }
            _ => None,
        }
    }
}

/// Returns true if a value is of the kind of its attribute. An empty list is of every list kind,
/// and an unset value is an empty list.
pub fn fits(kind: AttributeKind, value: AttributeValue<'_>) -> bool {
    match value {
        AttributeValue::None => kind.is_list,
        AttributeValue::List(list) if list.is_empty() => kind.is_list,
        _ => value.kind() == Some(kind),
    }
}

/// Returns the number that is compared with a minimum: an integer, or the length of a list.
fn measure(value: AttributeValue<'_>) -> Option<i128> {
    match value {
        AttributeValue::Int(number) => Some(number.into()),
        AttributeValue::List(list) => Some(list.len().into()),
        AttributeValue::None => Some(0),
        _ => None,
    }
}

/// Returns true if a type or text, or each of a list, is an allowed one.
fn is_allowed(value: AttributeValue<'_>, allowed: Values<'_>) -> bool {
    let is_one_of = |value: AttributeValue<'_>| {
        let mut allowed = allowed;
        allowed.any(|other| value.equals(other))
    };
    match value {
        AttributeValue::None => true,
        AttributeValue::List(list) if list.element() == Some(Element::Type) => {
            list.types().iter().all(|run| is_one_of(AttributeValue::Type(run.data_type)))
        }
        AttributeValue::List(list) => list.values().all(is_one_of),
        one => is_one_of(one),
    }
}

/// A node whose types are being found.
struct Node<'a> {
    rules: NodeRules<'a>,
    operation: Operation<'a>,
    attributes: &'a Attributes,
}

impl<'a> Node<'a> {
    /// Returns the value of an attribute that an argument needs.
    fn resolve(&self, name: &str) -> Result<Resolved<'a>, Box<NodeRuleDiagnostic>> {
        let default = || {
            let attribute = self.operation.attribute(name)?;
            attribute.default().map(Resolved::Default)
        };
        let found = match self.attributes.get(name) {
            // Without a default it stays an empty list.
            Some(value @ AttributeValue::None) if self.rules.strictness.is_of_python() => {
                default().or(Some(Resolved::Own(value)))
            }
            Some(value) => Some(Resolved::Own(value)),
            None => default(),
        };
        found.ok_or_else(|| NodeRuleDiagnostic::missing(vec![name.to_owned()]))
    }

    /// Returns the types of inputs or outputs.
    fn types(
        &self,
        arguments: impl Iterator<Item = Argument<'a>>,
    ) -> Result<TypeList, Box<NodeRuleDiagnostic>> {
        let mut list = TypeList::default();
        for argument in arguments {
            let is_reference = argument.is_reference();
            if let ArgumentSource::List(name) = argument.source() {
                let found = self.resolve(name)?;
                if is_reference {
                    refuse_reference(name, found)?;
                }
                found.push_types(is_reference, &mut list);
                continue;
            }
            let count = match argument.number_attribute() {
                None => 1,
                Some(name) => self.count(name)?,
            };
            let data_type = match argument.source() {
                ArgumentSource::Attribute(name) => {
                    let found = self.resolve(name)?;
                    // For a single type, a value of another kind is an invalid type.
                    if argument.number_attribute().is_some() {
                        expect(
                            name,
                            found,
                            AttributeKind { element: Element::Type, is_list: false },
                        )?;
                    }
                    if argument.number_attribute().is_some()
                        && let Resolved::Own(value) = found
                    {
                        self.rules.check_types(name, value)?;
                    }
                    if is_reference {
                        refuse_reference(name, found)?;
                    }
                    found.data_type()
                }
                ArgumentSource::Fixed(number) => number,
                ArgumentSource::List(_) => 0,
            };
            list.push(ElementType::new(data_type, is_reference), count.into());
        }
        Ok(list)
    }

    /// Returns the number of tensors of an argument.
    fn count(&self, name: &str) -> Result<u32, Box<NodeRuleDiagnostic>> {
        let resolved = self.resolve(name)?;
        expect(name, resolved, AttributeKind { element: Element::Int, is_list: false })?;
        let found = resolved.number();
        let count = i32::try_from(found).ok().and_then(|count| u32::try_from(count).ok());
        count.ok_or_else(|| {
            let expected = format!("a number from 0 to {}", i32::MAX);
            NodeRuleDiagnostic::of_value(number, name, found, expected)
        })
    }
}

/// Fails if the value that determines an argument's types is of another kind: a placeholder, or one
/// that was not checked before.
fn expect(
    name: &str,
    found: Resolved<'_>,
    expected: AttributeKind,
) -> Result<(), Box<NodeRuleDiagnostic>> {
    match found {
        Resolved::Own(value) if value.kind() != Some(expected) => {
            Err(NodeRuleDiagnostic::of_value(kind, name, value, expected.to_string()))
        }
        _ => Ok(()),
    }
}

/// Fails if an argument is a reference to a reference.
fn refuse_reference(name: &str, found: Resolved<'_>) -> Result<(), Box<NodeRuleDiagnostic>> {
    let mut types = TypeList::default();
    found.push_types(false, &mut types);
    types.push(ElementType::new(found.data_type(), false), 1);
    let mut types = types.runs().iter().map(|run| run.element.data_type);
    match types.find(|data_type| *data_type > REFERENCES) {
        Some(reference) => {
            let found = type_name(reference).into_owned();
            Err(NodeRuleDiagnostic::of_value(
                element_type,
                name,
                found,
                "a type that is no reference".into(),
            ))
        }
        None => Ok(()),
    }
}

/// Type numbers above this one are reference types.
const REFERENCES: i32 = 100;
