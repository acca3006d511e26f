//! Diagnostics of nodes that do not fit the definitions of their operations.

use std::fmt::Display;

use crate::{
    ImportDiagnostic, ImportDiagnosticKind,
    ops::{Attribute, Value, Values, type_name},
    rules::shown,
};

/// A diagnostic of a node, without the node's name and place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeRuleDiagnostic {
    /// The kind of the diagnostic.
    pub kind: ImportDiagnosticKind,
    /// The value found: `T = DT_INT4`.
    pub found: String,
    /// The values that the release accepts: `one of DT_FLOAT, DT_HALF`.
    pub expected: String,
}

impl NodeRuleDiagnostic {
    /// Adds the node that has it.
    pub fn into_import_diagnostic(
        self,
        node: String,
        function: Option<String>,
        operation: String,
    ) -> ImportDiagnostic {
        let Self { kind, found, expected } = self;
        ImportDiagnostic { kind, node, function, operation, found, expected }
    }

    /// Creates the diagnostic for an invalid value of an attribute.
    pub(super) fn of_value(
        kind: fn(String) -> ImportDiagnosticKind,
        attribute: &str,
        value: impl Display,
        expected: String,
    ) -> Box<Self> {
        let found = cut(&format!("{attribute} = {value}"));
        Box::new(Self { kind: kind(attribute.to_owned()), found, expected: cut(&expected) })
    }

    /// Creates the diagnostic of missing attributes without a default.
    pub(super) fn missing(attributes: Vec<String>) -> Box<Self> {
        let expected = match attributes.as_slice() {
            [one] => format!("attribute {one}"),
            several => format!("attributes {}", several.join(", ")),
        };
        let kind = ImportDiagnosticKind::AttributesMissing { attributes };
        Box::new(Self { kind, found: String::new(), expected: cut(&expected) })
    }

    /// Creates the diagnostic of more attributes than are checked.
    pub(super) fn oversized() -> Box<Self> {
        Box::new(Self {
            kind: ImportDiagnosticKind::Oversized,
            found: "over 8 MiB of names and texts in its attributes".to_owned(),
            expected: "a node that can be looked at".to_owned(),
        })
    }
}

pub(super) fn kind(attribute: String) -> ImportDiagnosticKind {
    ImportDiagnosticKind::AttributeKind { attribute }
}

pub(super) fn element_type(attribute: String) -> ImportDiagnosticKind {
    ImportDiagnosticKind::AttributeType { attribute }
}

pub(super) fn minimum(attribute: String) -> ImportDiagnosticKind {
    ImportDiagnosticKind::AttributeMinimum { attribute }
}

pub(super) fn not_allowed(attribute: String) -> ImportDiagnosticKind {
    ImportDiagnosticKind::AttributeNotAllowed { attribute }
}

pub(super) fn number(attribute: String) -> ImportDiagnosticKind {
    ImportDiagnosticKind::AttributeNumber { attribute }
}

pub(super) fn shape(_attribute: String) -> ImportDiagnosticKind {
    ImportDiagnosticKind::Shape
}

/// `one of DT_FLOAT, DT_HALF`
pub(super) fn one_of(allowed: Values<'_>) -> String {
    let allowed: Vec<String> = allowed.map(shown_value).collect();
    match allowed.as_slice() {
        [one] => one.clone(),
        several => format!("one of {}", several.join(", ")),
    }
}

/// Returns a type or text of a definition, as values of nodes are shown.
fn shown_value(value: Value<'_>) -> String {
    match value {
        Value::Type(number) => type_name(number).into_owned(),
        Value::String(bytes) => format!("{:?}", String::from_utf8_lossy(bytes)),
        other => other.to_definition().to_string(),
    }
}

/// `at least 1`, `at least 2 values`
pub(super) fn at_least(attribute: &Attribute<'_>, least: i64) -> String {
    match (attribute.kind().is_list, least) {
        (false, _) => format!("at least {least}"),
        (true, 1) => "at least 1 value".to_owned(),
        (true, _) => format!("at least {least} values"),
    }
}

/// Returns a text for messages, cut to a bearable length.
pub(super) fn cut(text: &str) -> String {
    shown(text.as_bytes())
}
