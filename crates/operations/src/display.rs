//! Operations as text: signatures, values, and the differences between two definitions.

use std::fmt;

use serdes_graph_format::data_type::describe;

use super::{
    ArgumentDefinition, ArgumentType, AttributeDefinition, OperationDefinition, ValueDefinition,
};

/// One difference between two definitions of an operation.
///
/// ```
/// use serdes_operations::{Difference, Registry};
///
/// let definition = |release| {
///     let registry = Registry::tensorflow(release)?;
///     Ok::<_, serdes_operations::UnknownRelease>(registry.operation("MatMul").unwrap().to_definition())
/// };
/// let differences = Difference::between(&definition("2.15")?, &definition("2.16")?);
/// assert_eq!(differences[0].to_string(), "attribute grad_a: added, bool = false");
/// # Ok::<(), serdes_operations::UnknownRelease>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The item that differs: `attribute grad_a`, `inputs`, `stateful`.
    pub what: String,
    /// The item in the old definition; `None` if it has no such item.
    pub old: Option<String>,
    /// The item in the new definition; `None` if it has no such item.
    pub new: Option<String>,
}

impl Difference {
    /// Lists the differences between the definitions, attributes first; empty if they are equal.
    #[must_use]
    pub fn between(old: &OperationDefinition, new: &OperationDefinition) -> Vec<Self> {
        let mut differences = Vec::new();
        let mut compare = |what: String, old: Option<String>, new: Option<String>| {
            if old != new {
                differences.push(Self { what, old, new });
            }
        };
        let find = |definition: &OperationDefinition, name: &str| {
            let found = definition.attributes.iter().find(|attribute| attribute.name == name);
            found.map(|attribute| Described(attribute).to_string())
        };
        let gone = old.attributes.iter().filter(|attribute| find(new, &attribute.name).is_none());
        for attribute in new.attributes.iter().chain(gone) {
            let name = &attribute.name;
            compare(format!("attribute {name}"), find(old, name), find(new, name));
        }
        let mut both = |what: &str, old: String, new: String| {
            compare(what.to_owned(), Some(old), Some(new));
        };
        both("inputs", listed(&old.inputs), listed(&new.inputs));
        both("outputs", listed(&old.outputs), listed(&new.outputs));
        for (what, is_set) in FLAGS {
            both(what, is_set(old).to_string(), is_set(new).to_string());
        }
        let since = |definition: &OperationDefinition| {
            definition.deprecated_since.map(|version| version.to_string())
        };
        compare("deprecated since GraphDef version".to_owned(), since(old), since(new));
        differences
    }
}

type Flag = (&'static str, fn(&OperationDefinition) -> bool);

const FLAGS: [Flag; 5] = [
    ("stateful", |definition| definition.is_stateful),
    ("commutative", |definition| definition.is_commutative),
    ("aggregate", |definition| definition.is_aggregate),
    ("allows uninitialized input", |definition| definition.allows_uninitialized_input),
    ("known by its name alone", |definition| definition.is_name_alone),
];

/// Writes a difference: `attribute grad_a: added, bool = false`.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = &self.what;
        match (&self.old, &self.new) {
            (None, Some(new)) => write!(f, "{what}: added, {new}"),
            (Some(old), None) => write!(f, "{what}: removed, {old}"),
            (Some(old), Some(new)) => write!(f, "{what}: {old} -> {new}"),
            (None, None) => f.write_str(what),
        }
    }
}

fn listed(arguments: &[ArgumentDefinition]) -> String {
    let texts: Vec<String> = arguments.iter().map(ToString::to_string).collect();
    format!("({})", texts.join(", "))
}

/// Writes an argument: `values: N * T`, `x: list(Tin)`, `ref: Ref(float32)`.
impl fmt::Display for ArgumentDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: ", self.name)?;
        if let Some(number) = &self.number_attribute {
            write!(f, "{number} * ")?;
        }
        let element = match &self.element {
            ArgumentType::Fixed(number) => describe(*number),
            ArgumentType::Attribute(name) => name.clone(),
            ArgumentType::List(name) => format!("list({name})"),
        };
        if self.is_reference { write!(f, "Ref({element})") } else { f.write_str(&element) }
    }
}

/// Writes an attribute without its name.
struct Described<'a>(&'a AttributeDefinition);

/// Writes a kind with its constraints and default: `int >= 1 = 3`, `type in {float32, float64}`.
impl fmt::Display for Described<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self(attribute) = self;
        write!(f, "{}", attribute.kind)?;
        if let Some(allowed) = &attribute.allowed {
            write!(f, " in {{{}}}", Joined(allowed))?;
        }
        if let Some(minimum) = attribute.minimum {
            let what = if attribute.kind.is_list { " of length" } else { "" };
            write!(f, "{what} >= {minimum}")?;
        }
        match &attribute.default {
            Some(default) => write!(f, " = {default}"),
            None => Ok(()),
        }
    }
}

/// Writes an attribute: `strides: list(int)`, `transpose_a: bool = false`.
impl fmt::Display for AttributeDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, Described(self))
    }
}

/// Writes a signature: `MatMul(a: T, b: T) -> (product: T)`.
impl fmt::Display for OperationDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_name_alone {
            return f.write_str(&self.name);
        }
        write!(f, "{}{} -> {}", self.name, listed(&self.inputs), listed(&self.outputs))
    }
}

struct Joined<'a>(&'a [ValueDefinition]);

impl fmt::Display for Joined<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, value) in self.0.iter().enumerate() {
            let comma = if position == 0 { "" } else { ", " };
            write!(f, "{comma}{value}")?;
        }
        Ok(())
    }
}

impl fmt::Display for ValueDefinition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String(bytes) => write!(f, "{:?}", String::from_utf8_lossy(bytes)),
            Self::Int(number) => write!(f, "{number}"),
            Self::Float(bits) => write!(f, "{:?}", f32::from_bits(*bits)),
            Self::Bool(flag) => write!(f, "{flag}"),
            Self::Type(number) => f.write_str(&describe(*number)),
            Self::Shape(None) => f.write_str("<unknown rank>"),
            Self::Shape(Some(dimensions)) => write!(f, "{dimensions:?}"),
            Self::Tensor(bytes) => write!(f, "<tensor of {} bytes>", bytes.len()),
            Self::Function(name) => write!(f, "function {name:?}"),
            Self::List(values) => write!(f, "[{}]", Joined(values)),
        }
    }
}
