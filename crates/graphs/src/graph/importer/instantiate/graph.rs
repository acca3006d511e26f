//! Finds the diagnostics that occur once the nodes of a body are put into a graph.

use super::{
    build::{Definitions, Instantiation, numbered},
    diagnostic::{BoxedDiagnostic, InstantiationDiagnostic},
    types::SignatureTypes,
};
use crate::graph::{
    ImportDiagnosticKind,
    attributes::AttributeValue,
    diagnostic::{BodyDiagnosticKind, Part},
    importer::{
        binding::BoundValue,
        body::{Body, Owner},
        count,
        visits::{NEVER, Visits},
    },
};

/// The found and the expected item for an input that should be a reference.
const NO_REFERENCE: (&str, &str) = ("no reference", "a reference to a variable");

fn missing_reference(input: u32) -> ImportDiagnosticKind {
    ImportDiagnosticKind::InputType { input }
}

impl<D: Definitions> Instantiation<'_, D> {
    /// Checks the nodes as the importer puts them into a graph.
    pub(super) fn graph(&mut self) -> Result<(), BoxedDiagnostic> {
        self.made_nodes()?;
        self.arguments_by_hand()?;
        self.called_functions()?;
        self.argument_nodes()?;
        for (number, node) in numbered(&self.function.nodes) {
            if self.types_of(node).is_some_and(|types| !types.has_shape_function) {
                let diagnostic = self.at_node(number, ImportDiagnosticKind::NoShapeFunction);
                self.built.no_shape_function = Some(diagnostic);
                break;
            }
        }
        Ok(())
    }

    /// Checks that each node can be created after its inputs; nodes behind a cycle cannot.
    fn made_nodes(&self) -> Result<(), BoxedDiagnostic> {
        let visits = (!self.is_ambiguous).then(|| self.visits());
        let is_late = |types: &Option<SignatureTypes>| {
            types.as_ref().is_some_and(|types| types.late_diagnostic.is_some())
        };
        if !self.missing_references.is_empty() || self.node_signatures.iter().any(is_late) {
            match &visits {
                Some(visits) => visits.in_order().try_for_each(|node| self.made_node(node)),
                None => (0..count(self.function.nodes.len())).try_for_each(|n| self.made_node(n)),
            }?;
        }
        let is_made = |result: &&u32| {
            let node = self.returned_node(**result);
            let visits = visits.as_ref();
            node.is_none_or(|node| visits.is_none_or(|visits| visits.of(node) != NEVER))
        };
        if let Some(result) = self.missing_result_references.iter().find(is_made) {
            let diagnostic =
                InstantiationDiagnostic::of(Part::Result(*result), missing_reference(0));
            let mut diagnostic = diagnostic.with(NO_REFERENCE.0, NO_REFERENCE.1);
            diagnostic.operation = "_Retval".to_owned();
            return Err(diagnostic);
        }
        match visits.and_then(|visits| visits.unvisited()) {
            Some(node) => {
                Err(InstantiationDiagnostic::names(Part::Node(node), BodyDiagnosticKind::Cycle))
            }
            None => Ok(()),
        }
    }

    fn visits(&self) -> Visits {
        let arguments = self.argument_names.iter();
        let arguments = arguments.map(|(name, number)| (*name, Owner::Argument(*number)));
        let nodes = self.node_names.iter().map(|(name, node)| (*name, Owner::Node(*node)));
        let body = Body { function: self.function, owners: arguments.chain(nodes).collect() };
        body.visits(|target| self.item(target).is_none_or(|item| item.count > 0))
    }

    /// Checks that one node can be created.
    fn made_node(&self, number: u32) -> Result<(), BoxedDiagnostic> {
        let node = self.function.nodes.get(number as usize);
        let types = node.and_then(|node| self.types_of(node));
        if let Some(late) = types.and_then(|types| types.late_diagnostic.as_ref()) {
            return Err(late.diagnostic(Part::Node(number)).of_operation(self.function, number));
        }
        match self.missing_references.binary_search_by_key(&number, |(node, _)| *node) {
            Ok(found) => {
                let input = self.missing_references.get(found).map_or(0, |(_, input)| *input);
                let diagnostic = self.at_node(number, missing_reference(input));
                Err(diagnostic.with(NO_REFERENCE.0, NO_REFERENCE.1))
            }
            Err(_) => Ok(()),
        }
    }

    /// Returns the node that gives a result.
    fn returned_node(&self, result: u32) -> Option<u32> {
        let result = self.function.results.get(result as usize)?;
        let target = self.function.returns.get(&result.name).copied().flatten()?;
        self.node_names.get(&target.name).copied()
    }

    /// Checks that the node of each argument can have the declared type.
    fn argument_nodes(&self) -> Result<(), BoxedDiagnostic> {
        for (number, argument) in numbered(&self.function.arguments) {
            if let Some((found, expected)) =
                self.function.given.importer_diagnostic(number, argument)
            {
                let diagnostic = InstantiationDiagnostic::of(
                    Part::Argument(number),
                    ImportDiagnosticKind::Shape,
                );
                return Err(diagnostic.with(found, expected));
            }
        }
        Ok(())
    }

    /// Checks that each PartitionedCall that is inlined names the function that it calls.
    fn called_functions(&self) -> Result<(), BoxedDiagnostic> {
        for (number, node) in numbered(&self.function.nodes) {
            let Some(signature) = self.function.node_signatures.get(node.signature as usize) else {
                continue;
            };
            let is_call =
                matches!(&*signature.operation, "PartitionedCall" | "StatefulPartitionedCall");
            let disabled = signature.attributes.get("_disable_call_shape_inference");
            let is_looked_into = !matches!(
                disabled,
                Some(AttributeValue::Bool(true) | AttributeValue::Placeholder(_))
            );
            if !is_call || !is_looked_into {
                continue;
            }
            let name = || "f".to_owned();
            let value = signature.attributes.get("f").and_then(|value| self.scope.bind(value));
            match value {
                Some(value) if value.is_function() => {}
                Some(_) => {
                    let kind = ImportDiagnosticKind::AttributeKind { attribute: name() };
                    return Err(self.at_node(number, kind).with("f is no function", "func"));
                }
                None => {
                    let kind = ImportDiagnosticKind::AttributesMissing { attributes: vec![name()] };
                    return Err(self.at_node(number, kind).with("", "attribute f"));
                }
            }
        }
        Ok(())
    }

    /// Arguments and results that are nodes name an argument or result of the call by its number.
    fn arguments_by_hand(&mut self) -> Result<(), BoxedDiagnostic> {
        for (number, node) in numbered(&self.function.nodes) {
            let Some(signature) = self.function.node_signatures.get(node.signature as usize) else {
                continue;
            };
            let is_argument = signature.operation == "_Arg";
            if !is_argument && signature.operation != "_Retval" {
                continue;
            }
            let index = signature.attributes.get("index").and_then(|value| self.scope.bind(value));
            let index = match index {
                Some(BoundValue::Int(index)) => u64::try_from(index).ok(),
                None => {
                    let attributes = vec!["index".to_owned()];
                    let kind = ImportDiagnosticKind::AttributesMissing { attributes };
                    return Err(self.at_node(number, kind).with("", "attribute index"));
                }
                Some(_) => None,
            };
            let Some(index) = index else {
                let diagnostic = self.at_node(number, ImportDiagnosticKind::FunctionBody);
                return Err(diagnostic.with("an index that is none", "the number of an argument"));
            };
            let most = if is_argument { &mut self.built.inputs } else { &mut self.built.outputs };
            *most = (*most).max(index.saturating_add(1));
        }
        Ok(())
    }
}
