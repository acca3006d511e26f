//! What is seen once the nodes of a body are put into a graph.

use super::{
    build::{Definitions, Instantiation, numbered},
    finding::{BodyFinding, Finding},
};
use crate::artifact::graph::{
    ImportFaultKind,
    attributes::AttributeValue,
    fault::Part,
    importer::{
        binding::BoundValue,
        body::{Body, Owner},
    },
    index::Target,
};

impl<D: Definitions> Instantiation<'_, D> {
    /// What is seen once the nodes are put into a graph.
    pub(super) fn graph(&mut self) -> Result<(), BodyFinding> {
        for (number, node) in numbered(&self.function.nodes) {
            if let Some(late) = self.types_of(node).and_then(|types| types.late_fault.as_ref()) {
                let fault = late.finding(Part::Node(number));
                return Err(fault.of_operation(self.function, number));
            }
            if let Some(fault) = &self.reference_fault
                && fault.part == Part::Node(number)
            {
                return Err(fault.clone());
            }
        }
        if let Some(fault) = &self.result_fault {
            return Err(fault.clone());
        }
        if !self.is_ambiguous {
            let arguments = self.argument_names.iter();
            let arguments = arguments.map(|(name, number)| (*name, Owner::Argument(*number)));
            let nodes = self.node_names.iter().map(|(name, node)| (*name, Owner::Node(*node)));
            let body = Body { function: self.function, owners: arguments.chain(nodes).collect() };
            let is_tensor = |target: &Target| self.item(target).is_none_or(|item| item.count > 0);
            if let Some(cycle) = body.cycle(is_tensor) {
                return Err(Finding::names(cycle.part, cycle.kind));
            }
        }
        self.arguments_by_hand()?;
        self.called_functions()?;
        self.argument_nodes()?;
        for (number, node) in numbered(&self.function.nodes) {
            if self.types_of(node).is_some_and(|types| !types.has_shape_function) {
                let fault = self.at_node(number, ImportFaultKind::NoShapeFunction);
                self.built.no_shape_function = Some(fault);
                break;
            }
        }
        Ok(())
    }

    /// Whether the node of each argument can be what the function says of it.
    fn argument_nodes(&self) -> Result<(), BodyFinding> {
        for (number, argument) in numbered(&self.function.arguments) {
            if let Some((found, expected)) = self.function.given.importer_fault(number, argument) {
                let fault = Finding::of(Part::Argument(number), ImportFaultKind::Shape);
                return Err(fault.with(found, expected));
            }
        }
        Ok(())
    }

    /// Whether each PartitionedCall that is looked into says which function it calls.
    fn called_functions(&self) -> Result<(), BodyFinding> {
        for (number, node) in numbered(&self.function.nodes) {
            let Some(kind) = self.function.kinds.get(node.kind as usize) else { continue };
            let is_call = matches!(&*kind.operation, "PartitionedCall" | "StatefulPartitionedCall");
            let disabled = kind.attributes.get("_disable_call_shape_inference");
            let is_looked_into = !matches!(
                disabled,
                Some(AttributeValue::Bool(true) | AttributeValue::Placeholder(_))
            );
            if !is_call || !is_looked_into {
                continue;
            }
            let name = || "f".to_owned();
            let value = kind.attributes.get("f").and_then(|value| self.scope.bind(value));
            match value {
                Some(value) if value.is_function() => {}
                Some(_) => {
                    let kind = ImportFaultKind::AttributeKind { attribute: name() };
                    return Err(self.at_node(number, kind).with("f is no function", "func"));
                }
                None => {
                    let kind = ImportFaultKind::AttributesMissing { attributes: vec![name()] };
                    return Err(self.at_node(number, kind).with("", "attribute f"));
                }
            }
        }
        Ok(())
    }

    /// Arguments and results that are written as nodes name one of the call by its number.
    fn arguments_by_hand(&mut self) -> Result<(), BodyFinding> {
        for (number, node) in numbered(&self.function.nodes) {
            let Some(kind) = self.function.kinds.get(node.kind as usize) else { continue };
            let is_argument = kind.operation == "_Arg";
            if !is_argument && kind.operation != "_Retval" {
                continue;
            }
            let index = kind.attributes.get("index").and_then(|value| self.scope.bind(value));
            let index = match index {
                Some(BoundValue::Int(index)) => u64::try_from(index).ok(),
                None => {
                    let attributes = vec!["index".to_owned()];
                    let kind = ImportFaultKind::AttributesMissing { attributes };
                    return Err(self.at_node(number, kind).with("", "attribute index"));
                }
                Some(_) => None,
            };
            let Some(index) = index else {
                let fault = self.at_node(number, ImportFaultKind::FunctionBody);
                return Err(fault.with("an index that is none", "the number of an argument"));
            };
            let most = if is_argument { &mut self.built.inputs } else { &mut self.built.outputs };
            *most = (*most).max(index.saturating_add(1));
        }
        Ok(())
    }
}
