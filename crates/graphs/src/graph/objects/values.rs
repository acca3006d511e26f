//! Checks the structured values of a SavedModel as a loader in Python decodes them.
//!
//! The rules are those of `nested_structure_coder.py`, the same in TensorFlow 2.12, 2.16 and 2.21:
//! a value must be set, the release must have its type and be able to build its class, and the
//! names of a named tuple and of its fields must be valid in Python.
//!
//! Depends on values, but not on the objects or functions that they belong to.

use std::collections::HashSet;

use super::{
    names::is_no_field,
    structures::{At, Kind, Structures},
};
use crate::{
    graph::{ImportDiagnosticKind, rules::shown},
    ops::Registry,
};

/// Number of entries up to which the keys of a dictionary are compared pairwise; more keys are
/// collected in a set.
const FEW: usize = 16;

/// The numbers of the classes of types that are built in.
const BUILT_IN_CLASSES: std::ops::RangeInclusive<i32> = 1..=10;
/// The class of types that the loading program may have registered, and the class whose builder
/// comes with TensorFlow.
const REGISTERED_CLASSES: [i32; 2] = [12, 13];

/// A diagnostic of a structured value.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ValueDiagnostic {
    /// The value is unset.
    Unset,
    /// A type with this number, which a release may lack.
    Type(i32),
    /// A class with this number, which no release builds.
    Class(i32),
    /// A name that Python does not accept.
    Name(String),
    /// Two fields have one name.
    FieldTwice(String),
}

impl ValueDiagnostic {
    /// Returns true if a release finds the diagnostic.
    pub(super) fn is_found_by(&self, registry: &Registry) -> bool {
        match self {
            Self::Type(number) => !has_type(registry, *number),
            _ => true,
        }
    }

    /// Returns the kind of the diagnostic: a type that some release has does not mean damage.
    pub(super) fn kind(&self) -> ImportDiagnosticKind {
        let has = |release: &str, number| {
            Registry::tensorflow(release).is_ok_and(|registry| has_type(&registry, number))
        };
        match self {
            Self::Type(number) if Registry::releases().any(|release| has(release, *number)) => {
                ImportDiagnosticKind::ObjectType
            }
            _ => ImportDiagnosticKind::Objects,
        }
    }

    /// Returns the found value, as text.
    pub(super) fn text(&self) -> String {
        match self {
            Self::Unset => "a value that is nothing".to_owned(),
            Self::Type(number) => format!("the data type {number}"),
            Self::Class(number) => format!("a type of class {number}"),
            Self::Name(name) => format!("a named tuple with the name {name:?} in it"),
            Self::FieldTwice(name) => format!("a named tuple with two fields {name:?}"),
        }
    }
}

/// Returns true if a release has a type, or the type that it is a reference to.
pub(super) fn has_type(registry: &Registry, number: i32) -> bool {
    registry.has_type(number) || number.checked_sub(100).is_some_and(|n| registry.has_type(n))
}

/// Walks over values, reusing memory.
#[derive(Debug, Default)]
pub(super) struct ValueJudge {
    pending: Vec<At>,
    /// True if a dictionary has a key twice, so that it is unknown which value counts.
    pub(super) is_unclear: bool,
}

impl ValueJudge {
    /// Reports all diagnostics of a value and its nested values.
    pub(super) fn judge(
        &mut self,
        structures: &Structures,
        value: Option<At>,
        mut tell: impl FnMut(ValueDiagnostic),
    ) {
        let Some(value) = value else { return tell(ValueDiagnostic::Unset) };
        self.pending.clear();
        self.pending.push(value);
        while let Some(at) = self.pending.pop() {
            self.pending.extend(structures.children(at));
            match structures.kind(Some(at)) {
                Kind::Unset => tell(ValueDiagnostic::Unset),
                // Some release may lack any of these types.
                Kind::DataType | Kind::TensorSpec => {
                    tell(ValueDiagnostic::Type(structures.number(at)));
                }
                Kind::TypeSpec => {
                    let class = structures.number(at);
                    if !BUILT_IN_CLASSES.contains(&class) && !REGISTERED_CLASSES.contains(&class) {
                        tell(ValueDiagnostic::Class(class));
                    }
                    if structures.children(at).next().is_none() {
                        tell(ValueDiagnostic::Unset);
                    }
                }
                Kind::Dict => self.is_unclear |= repeated(structures, at).is_some(),
                Kind::NamedTuple => named_tuple(structures, at, &mut tell),
                Kind::None
                | Kind::Number
                | Kind::Text
                | Kind::Shape
                | Kind::Tensor
                | Kind::List
                | Kind::Tuple => {}
            }
        }
    }
}

fn named_tuple(structures: &Structures, at: At, tell: &mut impl FnMut(ValueDiagnostic)) {
    let own = structures.text(at);
    if is_no_field(own, true) {
        tell(ValueDiagnostic::Name(shown(own)));
    }
    for field in structures.children(at) {
        let name = structures.key(field);
        if is_no_field(name, false) {
            tell(ValueDiagnostic::Name(shown(name)));
        }
    }
    if let Some(name) = repeated(structures, at) {
        tell(ValueDiagnostic::FieldTwice(shown(name)));
    }
}

/// Returns a key that occurs twice.
fn repeated(structures: &Structures, at: At) -> Option<&[u8]> {
    let keys = structures.children(at).map(|child| structures.key(child));
    if keys.clone().nth(FEW).is_none() {
        let is_repeated =
            |(position, key): (usize, &[u8])| keys.clone().take(position).any(|other| other == key);
        return keys.clone().enumerate().find(|found| is_repeated(*found)).map(|(_, key)| key);
    }
    let mut seen = HashSet::new();
    keys.clone().find(|key| !seen.insert(*key))
}
