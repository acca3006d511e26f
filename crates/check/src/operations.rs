//! Converts the diagnostics of a graph, for the operations of a release, to reasons and warnings.
//!
//! Maps each diagnostic of an import to its rule and message. Does not depend on how diagnostics
//! are found.
//!
//! | diagnostic | rule |
//! |---|---|
//! | the nodes or functions do not fit together, whatever the operations; so in a body | `corrupt` |
//! | no such operation; a function has the name of one; no shape function; no kernel | `unknown_op` |
//! | deprecated at the graph's producer | `deprecated_op` |
//! | attribute without a default that is not there | `missing_attribute` |
//! | attribute that the release does not know, where a loader minds | `unknown_attribute` |
//! | value of an attribute: kind, type, minimum, list of allowed ones, number of tensors; a device | `attribute_value` |
//! | number of inputs | `input_count` |
//! | the objects of a model do not fit together | `corrupt` |
//! | type in the object graph that the release does not have | `attribute_value` |
//! | function that saves an object and takes no text | `input_type` |
//! | more attributes than are looked at | `unsupported` |
//! | type of an input, output that its node does not have, body that the release cannot build, shapes | `input_type` |

use serdes_graphs::graph::{
    DeprecatedOperation, IgnoredAttribute, ImportDiagnostic, ImportDiagnosticKind,
    StructureDiagnostic,
};
use serdes_operations::{Operation, Registry};

use super::{Reason, Remedy, Rule, Warning, rule::messages};

/// Returns the place of a node in verdicts.
pub(super) fn place_of(node: &str, function: Option<&str>) -> String {
    match function {
        Some(function) if node.is_empty() => format!("function {function}"),
        Some(function) => format!("function {function}, node {node}"),
        None => node.to_owned(),
    }
}

/// Returns the name of a registry's release.
pub(super) fn name_of(registry: &Registry) -> String {
    format!("TensorFlow {}", registry.release())
}

/// Returns the reason for a diagnostic that concerns every consumer.
pub(super) fn of_structure(diagnostic: &StructureDiagnostic) -> Reason {
    let reason = Reason::from(messages::nodes_do_not_fit(diagnostic));
    reason.with_remedy(Remedy::ExportAgain).at(diagnostic.node.clone())
}

/// Returns the reason for a diagnostic that concerns a consumer with these operations.
pub(super) fn reason(diagnostic: &ImportDiagnostic, registry: &Registry) -> Reason {
    let ImportDiagnostic { kind, node, function, operation, found, expected } = diagnostic;
    let place = place_of(node, function.as_deref());
    let release = &name_of(registry);
    let message = match kind {
        ImportDiagnosticKind::Structure(diagnostic) => return of_structure(diagnostic),
        ImportDiagnosticKind::Deprecated(deprecated) => {
            return built_by_consumer(deprecated, node, function.as_deref());
        }
        ImportDiagnosticKind::UnknownOperation
        | ImportDiagnosticKind::FunctionName
        | ImportDiagnosticKind::NoShapeFunction
        | ImportDiagnosticKind::NoKernel => return of_operation(diagnostic, registry).at(place),
        ImportDiagnosticKind::AttributesMissing { attributes } => {
            return of_missing(diagnostic, attributes, release).at(place);
        }
        ImportDiagnosticKind::AttributeUnknown { attribute }
            if !knows(registry, operation, attribute) =>
        {
            return of_unknown(diagnostic, attribute, registry).at(place);
        }
        ImportDiagnosticKind::AttributeUnknown { attribute }
        | ImportDiagnosticKind::AttributeKind { attribute }
        | ImportDiagnosticKind::AttributeType { attribute }
        | ImportDiagnosticKind::AttributeNotAllowed { attribute }
        | ImportDiagnosticKind::AttributeMinimum { attribute }
        | ImportDiagnosticKind::AttributeNumber { attribute } => {
            return of_value(diagnostic, attribute, release).at(place);
        }
        ImportDiagnosticKind::InputCount => {
            messages::inputs_differ_in_number(operation, release, found, expected)
        }
        ImportDiagnosticKind::InputType { input } => {
            messages::input_is_of_another_type(input, operation, release, found, expected)
        }
        ImportDiagnosticKind::OutputIndex { input } => {
            messages::output_is_not_there(input, found, release, expected)
        }
        ImportDiagnosticKind::FunctionBody => {
            let function = function.as_deref().unwrap_or(operation);
            messages::function_cannot_be_built(function, release, found)
        }
        ImportDiagnosticKind::Shape => messages::shapes_do_not_fit(operation, release, found),
        ImportDiagnosticKind::Oversized => messages::node_is_too_large(found),
        ImportDiagnosticKind::Device => messages::device_is_refused(found),
        ImportDiagnosticKind::Python => messages::python_refuses(found),
        ImportDiagnosticKind::Objects => {
            let reason = Reason::from(messages::objects_do_not_fit(found));
            let reason = reason.with_numbers(found, expected).with_remedy(Remedy::ExportAgain);
            return reason.at(place);
        }
        ImportDiagnosticKind::NodeReference => {
            let reason = Reason::from(messages::names_do_not_fit(found));
            let reason = reason.with_numbers(found, expected).with_remedy(Remedy::ExportAgain);
            return reason.at(place);
        }
        ImportDiagnosticKind::ObjectType => messages::type_of_object_is_unknown(release, found),
        ImportDiagnosticKind::SaveFunction => messages::object_cannot_be_saved(release),
    };
    Reason::from(message).with_numbers(found, expected).at(place)
}

/// Returns the reason for missing attributes without default.
fn of_missing(diagnostic: &ImportDiagnostic, attributes: &[String], release: &str) -> Reason {
    let names = attributes.join(", ");
    let message = messages::attributes_are_missing(&names, &diagnostic.operation, release);
    Reason::from(message).with_numbers(&names, or(&diagnostic.expected, || "a value".to_owned()))
}

/// Returns the reason for an attribute that the release does not know.
fn of_unknown(diagnostic: &ImportDiagnostic, attribute: &str, registry: &Registry) -> Reason {
    let operation = &diagnostic.operation;
    let message = messages::attribute_is_unknown(attribute, operation, name_of(registry));
    Reason::from(message).with_numbers(
        or(&diagnostic.found, || attribute.to_owned()),
        or(&diagnostic.expected, || attributes_of(registry.operation(operation))),
    )
}

/// Returns the reason for an attribute's value.
fn of_value(diagnostic: &ImportDiagnostic, attribute: &str, release: &str) -> Reason {
    let found = or(&diagnostic.found, || attribute.to_owned());
    let expected = or(&diagnostic.expected, || "another value".to_owned());
    let value = without_name(&found, attribute);
    let message =
        messages::value_is_refused(release, attribute, &diagnostic.operation, value, &expected);
    Reason::from(message).with_numbers(found, expected)
}

fn knows(registry: &Registry, operation: &str, attribute: &str) -> bool {
    registry.operation(operation).is_some_and(|known| known.attribute(attribute).is_some())
}

/// Returns `text`, or a replacement if it is empty.
fn or(text: &str, instead: impl FnOnce() -> String) -> String {
    if text.is_empty() { instead() } else { text.to_owned() }
}

/// Returns the value in `T = DT_INT4`.
fn without_name<'f>(found: &'f str, attribute: &str) -> &'f str {
    let rest = found.strip_prefix(attribute).and_then(|rest| rest.strip_prefix(" = "));
    rest.unwrap_or(found)
}

/// Returns the names of an operation's attributes.
fn attributes_of(operation: Option<Operation<'_>>) -> String {
    let names = operation.map(|found| found.attributes().map(|one| one.name()).collect::<Vec<_>>());
    names.unwrap_or_default().join(", ")
}

/// Returns the reason for an operation that is missing, or lacks something that the loader needs.
fn of_operation(diagnostic: &ImportDiagnostic, registry: &Registry) -> Reason {
    let (operation, release) = (&diagnostic.operation, name_of(registry));
    let (message, expected) = match diagnostic.kind {
        ImportDiagnosticKind::FunctionName => (
            messages::function_has_name_of_operation(operation, &release, since(operation)),
            "a name that no operation has",
        ),
        ImportDiagnosticKind::NoShapeFunction => (
            messages::operation_has_no_shape_function(operation, &release),
            "an operation with a shape function",
        ),
        ImportDiagnosticKind::NoKernel => (
            messages::operation_has_no_kernel(operation, &release),
            "an operation with a kernel for the CPU",
        ),
        _ => (
            messages::operation_is_unknown(&release, operation, history(operation)),
            "an operation of this release",
        ),
    };
    let reason = Reason::from(message).with_numbers(operation, expected);
    match diagnostic.kind {
        ImportDiagnosticKind::UnknownOperation => {
            reason.with_remedy(match registry.version_before(operation) {
                Some(older) => Remedy::UseOlderOperation {
                    operation: older.name().to_owned(),
                    release: first_release(operation),
                },
                None if Registry::operation_of_any_release(operation).is_none() => {
                    Remedy::NameOperation { operation: operation.clone() }
                }
                None => Remedy::General(Rule::UnknownOp),
            })
        }
        _ => reason,
    }
}

fn first_release(operation: &str) -> Option<String> {
    let known = Registry::operation_of_any_release(operation)?;
    known.first_release().map(str::to_owned)
}

/// Describes which releases have an operation.
fn history(operation: &str) -> String {
    let known = Registry::operation_of_any_release(operation);
    match known.and_then(|known| known.first_release().zip(known.last_release())) {
        Some((first, last)) if first == last => format!("; TensorFlow {first} has it"),
        Some((first, last)) => format!("; TensorFlow {first} to {last} have it"),
        None => "; no known release has it, so that it is one of a library of custom operations, \
                 or misspelt"
            .to_owned(),
    }
}

/// Describes the first release with an operation, if it is newer than the oldest.
fn since(operation: &str) -> String {
    let first = first_release(operation);
    let is_younger = first.as_deref() != Registry::releases().next();
    first.filter(|_| is_younger).map(|first| format!(", since {first}")).unwrap_or_default()
}

/// Returns the reason for a deprecated operation in a function, for a loader that builds functions
/// as if the consumer had produced them.
pub(super) fn built_by_consumer(
    operation: &DeprecatedOperation,
    node: &str,
    function: Option<&str>,
) -> Reason {
    let DeprecatedOperation { name, version, replacement } = operation;
    Reason::from(messages::function_is_built_with_deprecated(name, version))
        .with_numbers(name, format_args!("an operation that is not deprecated at {version}"))
        .with_remedy(Remedy::ReplaceOperation { replacement: replacement.clone() })
        .at(place_of(node, function))
}

/// Returns the warning about an attribute that the release ignores.
pub(super) fn ignored(attribute: &IgnoredAttribute, registry: &Registry) -> Warning {
    let IgnoredAttribute { node, function, operation, attribute, value, since, nodes } = attribute;
    let since = match since {
        Some(since) => format!("{since} is the first that does"),
        None => "no known release does".to_owned(),
    };
    let count = show_count(*nodes);
    let release = name_of(registry);
    let message =
        messages::attribute_is_forgotten(&release, attribute, operation, since, value, count);
    Warning::from(message).at(place_of(node, function.as_deref()))
}

/// Formats a number of nodes.
pub(super) fn show_count(count: u64) -> String {
    if count == 1 { "one node".to_owned() } else { format!("{count} nodes") }
}

#[cfg(test)]
mod tests {
    use serdes_graphs::graph::{StructureDiagnostic, StructureDiagnosticKind};

    use super::*;
    use crate::Outcome;

    fn diagnostic(
        kind: ImportDiagnosticKind,
        operation: &str,
        found: &str,
        expected: &str,
    ) -> ImportDiagnostic {
        ImportDiagnostic {
            kind,
            node: "n".to_owned(),
            function: None,
            operation: operation.to_owned(),
            found: found.to_owned(),
            expected: expected.to_owned(),
        }
    }

    fn registry(release: &str) -> Registry {
        Registry::tensorflow(release).unwrap()
    }

    #[test]
    fn each_diagnostic_breaks_its_rule_and_says_what_was_found() {
        let attribute = || "T".to_owned();
        for (kind, rule) in [
            (ImportDiagnosticKind::UnknownOperation, Rule::UnknownOp),
            (ImportDiagnosticKind::FunctionName, Rule::UnknownOp),
            (ImportDiagnosticKind::NoShapeFunction, Rule::UnknownOp),
            (ImportDiagnosticKind::NoKernel, Rule::UnknownOp),
            (ImportDiagnosticKind::AttributeKind { attribute: attribute() }, Rule::AttributeValue),
            (ImportDiagnosticKind::AttributeType { attribute: attribute() }, Rule::AttributeValue),
            (
                ImportDiagnosticKind::AttributeNotAllowed { attribute: attribute() },
                Rule::AttributeValue,
            ),
            (
                ImportDiagnosticKind::AttributeMinimum { attribute: attribute() },
                Rule::AttributeValue,
            ),
            (
                ImportDiagnosticKind::AttributeNumber { attribute: attribute() },
                Rule::AttributeValue,
            ),
            (
                ImportDiagnosticKind::AttributeUnknown { attribute: "x".to_owned() },
                Rule::UnknownAttribute,
            ),
            (
                ImportDiagnosticKind::AttributeUnknown { attribute: attribute() },
                Rule::AttributeValue,
            ),
            (
                ImportDiagnosticKind::AttributesMissing { attributes: vec![attribute()] },
                Rule::MissingAttribute,
            ),
            (ImportDiagnosticKind::InputCount, Rule::InputCount),
            (ImportDiagnosticKind::InputType { input: 1 }, Rule::InputType),
            (ImportDiagnosticKind::OutputIndex { input: 1 }, Rule::InputType),
            (ImportDiagnosticKind::FunctionBody, Rule::InputType),
            (ImportDiagnosticKind::Shape, Rule::InputType),
            (ImportDiagnosticKind::Device, Rule::AttributeValue),
            (ImportDiagnosticKind::Python, Rule::AttributeValue),
            (ImportDiagnosticKind::ObjectType, Rule::AttributeValue),
            (ImportDiagnosticKind::SaveFunction, Rule::InputType),
        ] {
            let shown = format!("{kind:?}");
            let reason =
                reason(&diagnostic(kind, "MatMul", "T = DT_INT4", "DT_FLOAT"), &registry("2.12"));
            assert_eq!(reason.rule, rule, "{shown}");
            assert_eq!(reason.rule.outcome(), Outcome::Unacceptable, "{shown}");
            assert_eq!(reason.place.as_deref(), Some("n"), "{shown}");
            assert!(reason.found.is_some() && reason.expected.is_some(), "{shown}");
        }
        let objects =
            reason(&diagnostic(ImportDiagnosticKind::Objects, "", "x", "y"), &registry("2.12"));
        assert_eq!((objects.rule, objects.rule.outcome()), (Rule::Corrupt, Outcome::Unreadable));
        let oversized = diagnostic(ImportDiagnosticKind::Oversized, "NoOp", "over 8 MiB", "less");
        assert_eq!(reason(&oversized, &registry("2.12")).rule, Rule::Unsupported);
        let structure = StructureDiagnostic {
            node: "a".to_owned(),
            kind: StructureDiagnosticKind::Cycle,
            body: None,
        };
        let reason = reason(
            &diagnostic(ImportDiagnosticKind::Structure(structure), "", "", ""),
            &registry("2.12"),
        );
        assert_eq!((reason.rule, reason.place.as_deref()), (Rule::Corrupt, Some("a")));
    }

    #[test]
    fn unknown_operation_names_the_releases_that_have_it() {
        let unknown = |operation, release| {
            reason(
                &diagnostic(ImportDiagnosticKind::UnknownOperation, operation, "", ""),
                &registry(release),
            )
        };
        let newer = unknown("Conv", "2.12");
        assert!(newer.message.contains("TensorFlow 2.14 to 2.21 have it"), "{newer}");
        let older = unknown("SegmentMaxV2", "2.12");
        let Remedy::UseOlderOperation { operation, release } = &older.remedy else {
            panic!("{older}")
        };
        assert_eq!((operation.as_str(), release.as_deref()), ("SegmentMax", Some("2.13")));
        let own = unknown("OurFusedOp", "2.12");
        assert!(own.message.contains("no known release has it"), "{own}");
        assert_eq!(own.remedy, Remedy::NameOperation { operation: "OurFusedOp".to_owned() });
        let taken = diagnostic(ImportDiagnosticKind::FunctionName, "Conv", "", "");
        let taken = reason(&taken, &registry("2.16"));
        assert!(taken.message.contains("since 2.14"), "{taken}");
    }

    #[test]
    fn a_place_is_the_node_and_the_function_around_it() {
        assert_eq!(place_of("a", None), "a");
        assert_eq!(place_of("a", Some("f")), "function f, node a");
        assert_eq!(place_of("", Some("f")), "function f");
    }

    #[test]
    fn forgotten_attribute_names_its_value_and_first_release() {
        let attribute = IgnoredAttribute {
            node: "mm".to_owned(),
            function: Some("f".to_owned()),
            operation: "MatMul".to_owned(),
            attribute: "grad_a".to_owned(),
            value: "true".to_owned(),
            since: Some("2.16"),
            nodes: 3,
        };
        let warning = ignored(&attribute, &registry("2.12"));
        assert_eq!(warning.rule, Rule::AttributeDropped);
        assert_eq!(warning.place.as_deref(), Some("function f, node mm"));
        for words in ["grad_a", "MatMul", "true", "2.16", "3 nodes", "TensorFlow 2.12"] {
            assert!(warning.message.contains(words), "{words}: {warning}");
        }
    }
}
