//! A loaded function after it is exported again.
//!
//! Depends on the exported form, but not on the diagnostics of the function.

use std::{collections::HashSet, rc::Rc};

use super::{
    super::{
        concrete_functions::{ConcreteCall, ConcreteFunction, LoadDefinitions, loaded_definition},
        instantiate::{BoxedDiagnostic, Definitions, numbered},
    },
    FunctionGraph, SignatureInGraph, placeholders,
};
use crate::{
    graph::{
        ImportDiagnosticKind,
        attributes::AttributeValue,
        index::{BodySignature, OUTPUT_SHAPES},
        node_rules::{ElementType, NodeType, TypeList},
        source::Extent,
    },
    ops::{ArgumentType, AttributeDefinition, OperationDefinition},
};

impl FunctionGraph<'_> {
    /// Returns the exported form of the function.
    pub(super) fn concrete_function(
        &self,
        place: Extent,
        definitions: &LoadDefinitions<'_>,
    ) -> ConcreteFunction {
        let function = self.function;
        let (mut inputs, mut outputs) = (TypeList::default(), TypeList::default());
        let mut definition = loaded_definition(function);
        for argument in &function.arguments {
            inputs.push(ElementType::new(argument.data_type, false), 1);
        }
        for (result, written) in function.results.iter().zip(&mut definition.outputs) {
            let target = function.returns.get(&result.name).copied().flatten();
            let element = target.and_then(|target| self.element(&target));
            let data_type = element.map_or(result.data_type, |element| element.data_type);
            outputs.push(ElementType::new(data_type, false), 1);
            written.element = ArgumentType::Fixed(data_type);
        }
        self.open_attributes(&mut definition, definitions);
        let types = NodeType { inputs, outputs };
        let unset = self.unset(definitions).or_else(|| self.uncallable());
        let needs = self.needs(&types);
        ConcreteFunction::new(place, definition, types, needs, unset, self.calls(definitions))
    }

    /// Returns the number of tensors that a call must take and give: arguments and results may be
    /// written as nodes that name them by their numbers.
    fn needs(&self, types: &NodeType) -> (u64, u64) {
        let (mut inputs, mut outputs) = (types.inputs.len(), types.outputs.len());
        for signature in &self.function.node_signatures {
            let most = match &*signature.operation {
                "_Arg" => &mut inputs,
                "_Retval" => &mut outputs,
                _ => continue,
            };
            if let Some(AttributeValue::Int(index)) = signature.attributes.get("index") {
                *most = (*most).max(u64::try_from(index).unwrap_or_default().saturating_add(1));
            }
        }
        (inputs, outputs)
    }

    /// Returns the attributes of the function: those that its placeholders name.
    fn open_attributes(
        &self,
        definition: &mut OperationDefinition,
        definitions: &LoadDefinitions<'_>,
    ) {
        let mut known = HashSet::new();
        for signature in &self.function.node_signatures {
            let Some(operation) = definitions.find(&signature.operation) else { continue };
            for (attribute, name) in placeholders(signature) {
                let declared = operation.attribute(&attribute);
                // The name of a resource is generated again.
                let Some(declared) = declared.filter(|one| one.name() != "shared_name") else {
                    continue;
                };
                if known.insert(name.clone()) {
                    definition.attributes.push(AttributeDefinition {
                        name,
                        kind: declared.kind(),
                        default: None,
                        minimum: None,
                        allowed: None,
                    });
                }
            }
        }
    }

    /// Returns a node that has an attribute without a value after defaults are filled in.
    fn unset(&self, definitions: &LoadDefinitions<'_>) -> Option<BoxedDiagnostic> {
        let unset = |(signature, in_graph): (&Rc<BodySignature>, &Option<SignatureInGraph>)| {
            let operation = definitions.registry.operation(&signature.operation);
            let operation =
                operation.filter(|_| definitions.function(&signature.operation).is_none());
            let is_filled_in = |name: &[u8]| {
                let name = std::str::from_utf8(name).unwrap_or_default();
                let known = operation.and_then(|operation| operation.attribute(name));
                name == "shared_name" && known.is_some()
                    || known.is_some_and(|attribute| attribute.has_default())
            };
            // The importer reads a missing value as no shapes, and strips the attribute if it has
            // the shapes of all outputs.
            let is_stripped = |name: &[u8]| {
                let types = in_graph.as_ref().and_then(|signature| signature.types.as_ref().ok());
                name == OUTPUT_SHAPES && types.is_some_and(|types| types.outputs.is_empty())
            };
            let is_unset = |(name, value): &(&[u8], AttributeValue<'_>)| match value {
                AttributeValue::None => !is_filled_in(name) && !is_stripped(name),
                AttributeValue::Placeholder(of) => of.length == 0,
                _ => false,
            };
            let own = signature.attributes.iter().find(is_unset);
            let name = own.map(|(name, _)| name);
            let name = name.or_else(|| Some(signature.attributes.nested().next()?.0))?;
            Some(String::from_utf8_lossy(name).into_owned())
        };
        let unset: Vec<Option<String>> =
            self.function.node_signatures.iter().zip(self.node_signatures).map(unset).collect();
        let mut nodes = numbered(&self.function.nodes);
        nodes.find_map(|(number, node)| {
            let name = unset.get(node.signature as usize)?.as_ref()?;
            let diagnostic = self.at_node(number, ImportDiagnosticKind::FunctionBody);
            Some(
                diagnostic
                    .with(format!("{name} = no value"), "a value, or an attribute of the call"),
            )
        })
    }

    /// Returns the calls of functions that an importer looks into.
    fn calls(&self, definitions: &LoadDefinitions<'_>) -> Box<[ConcreteCall]> {
        let inside = self.function.calls.iter().filter(|call| call.call.inside);
        let calls = inside.map(|found| {
            let node = self.function.nodes.get(found.node as usize);
            let signature = node.and_then(|node| self.signature(node));
            let types = signature.and_then(|signature| signature.types.as_ref().ok());
            let tensors = types
                .map_or((u64::MAX, u64::MAX), |types| (types.inputs.len(), types.outputs.len()));
            let call = found.call;
            ConcreteCall {
                function: call.function,
                direct: call.direct,
                tensors,
                node: found.node,
                wrong_binding: definitions.wrong_binding(found),
            }
        });
        calls.collect()
    }
}
