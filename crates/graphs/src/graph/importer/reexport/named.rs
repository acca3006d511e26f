//! The functions that a function names, which must be loaded before it.
//!
//! Depends on one function, but not on the loading order.

use std::collections::HashSet;

use super::super::instantiate::{BoxedDiagnostic, InstantiationDiagnostic, numbered};
use crate::graph::{
    ImportDiagnosticKind,
    attributes::{AttributeValue, Attributes, Text},
    diagnostic::Part,
    function_names::FunctionNames,
    index::FunctionIndex,
};

/// The functions that a function names.
#[derive(Debug, Default, PartialEq)]
pub(in super::super) struct Named {
    /// The hashes of the names of functions that must be loaded before it.
    pub(super) functions: Box<[u64]>,
    /// The hashes of other functions that are attributes of nodes, by signature. Python needs
    /// these, although it does not wait for them.
    pub(super) needed: Box<[(u64, u32)]>,
    /// A node names a missing function.
    pub(super) unresolved: Option<BoxedDiagnostic>,
}

/// Returns the functions that the nodes of a function name: each by its operation, or else by its
/// registered gradient, or else by function-valued attributes.
pub(in super::super) fn named_by(
    function: &FunctionIndex,
    names: &FunctionNames,
) -> Option<Box<Named>> {
    let mut named = HashSet::new();
    let (mut needed, mut unresolved) = (Vec::new(), None);
    for (node, gradient) in &function.registered {
        if names.get(*gradient).is_some() {
            named.insert(*gradient);
        } else if unresolved.is_none() {
            let diagnostic =
                InstantiationDiagnostic::of(Part::Node(*node), ImportDiagnosticKind::Python);
            let found = "a registered gradient that is not there";
            let diagnostic = diagnostic.of_operation(function, *node);
            unresolved = Some(diagnostic.with(found, "a function of the library"));
        }
    }
    let without_gradient = signatures_without_gradient(function);
    for (number, signature) in (0_u32..).zip(&function.node_signatures) {
        let called = names.find(signature.operation.as_bytes());
        named.extend(called);
        let waits = called.is_none()
            && without_gradient
                .as_ref()
                .is_none_or(|node_signatures| node_signatures.contains(&number));
        match named_functions(&signature.attributes, names) {
            Ok(found) if waits => named.extend(found),
            Ok(found) => needed.extend(found.into_iter().map(|function| (function, number))),
            Err(name) if unresolved.is_none() => {
                unresolved = Some(unresolved_function(function, number, &name))
            }
            Err(_) => {}
        }
    }
    needed.retain(|(function, _)| !named.contains(function));
    let has_any = !named.is_empty() || !needed.is_empty() || unresolved.is_some();
    has_any.then(|| {
        Box::new(Named {
            functions: named.into_iter().collect(),
            needed: needed.into(),
            unresolved,
        })
    })
}

/// Returns the node signatures of which a node has no registered gradient; `None` if no node has
/// one.
fn signatures_without_gradient(function: &FunctionIndex) -> Option<HashSet<u32>> {
    if function.registered.is_empty() {
        return None;
    }
    let with: HashSet<u32> = function.registered.iter().map(|(node, _)| *node).collect();
    let nodes = numbered(&function.nodes).filter(|(number, _)| !with.contains(number));
    Some(nodes.map(|(_, node)| node.signature).collect())
}

/// Returns the functions that attributes name; a name that no function of the library has is an
/// error.
fn named_functions(attributes: &Attributes, names: &FunctionNames) -> Result<Vec<u64>, String> {
    let mut found = Vec::new();
    let mut note = |name: Text<'_>| {
        let bytes = name.bytes.unwrap_or_default();
        match names.find(bytes) {
            Some(hash) => {
                found.push(hash);
                Ok(())
            }
            None => Err(String::from_utf8_lossy(bytes).into_owned()),
        }
    };
    for (_, value) in attributes.iter() {
        match value {
            AttributeValue::List(list) => list.functions().try_for_each(&mut note)?,
            AttributeValue::Function(name) => note(name)?,
            _ => {}
        }
    }
    Ok(found)
}

/// Returns the diagnostic for the first node of a signature that names a missing function.
fn unresolved_function(function: &FunctionIndex, signature: u32, name: &str) -> BoxedDiagnostic {
    let node =
        function.nodes.iter().position(|node| node.signature == signature).unwrap_or_default();
    let node = u32::try_from(node).unwrap_or(u32::MAX);
    InstantiationDiagnostic::of(Part::Node(node), ImportDiagnosticKind::Python)
        .of_operation(function, node)
        .with(format!("a function {name:?} as an attribute"), "a function of the library")
}
