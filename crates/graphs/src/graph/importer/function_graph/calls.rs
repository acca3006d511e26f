//! The calls in a function from which Python creates a graph: the called functions and the
//! arguments passed to them.
//!
//! Depends on the functions that were loaded before, but not on their order.

use std::collections::HashSet;

use super::{
    super::{
        concrete_functions::LoadDefinitions,
        instantiate::{BoxedDiagnostic, FunctionDiagnostic, numbered},
    },
    FunctionGraph,
};
use crate::graph::{
    ImportDiagnosticKind,
    attributes::AttributeValue,
    index::{BodyCall, BodyNode},
    rules::is_partitioned_call,
};

impl FunctionGraph<'_> {
    /// Returns the diagnostic of an argument that a node gives to the function that is its
    /// operation; it shows only once that function is built.
    pub(super) fn wrong_binding(
        &self,
        definitions: &LoadDefinitions<'_>,
    ) -> Option<FunctionDiagnostic> {
        let mut direct = self.function.calls.iter().filter(|call| call.call.direct);
        direct.find_map(|call| {
            let node = self.function.nodes.get(call.node as usize)?;
            let signature = self.function.node_signatures.get(node.signature as usize)?;
            let callee = definitions.loaded.get(call.call.function)?;
            let wrong_binding = callee.wrong_binding(&signature.attributes, definitions.registry);
            wrong_binding.or_else(|| {
                // Arguments and results that are nodes in the function may have numbers that no
                // call has.
                let types =
                    self.signature(node)?.types.as_ref().ok().filter(|_| call.call.inside)?;
                callee.call_diagnostic((types.inputs.len(), types.outputs.len()))
            })
        })
    }

    /// Returns the diagnostic of an argument that a PartitionedCall gives to a function that
    /// another node has as its operation. Other functions are not checked.
    pub(super) fn partitioned(
        &self,
        called: &[u64],
        definitions: &LoadDefinitions<'_>,
    ) -> Option<FunctionDiagnostic> {
        let there: HashSet<u64> = called.iter().copied().collect();
        let is_there = |call: &&BodyCall| {
            !call.call.direct && call.call.inside && there.contains(&call.call.function)
        };
        self.function.calls.iter().filter(is_there).find_map(|call| {
            let node = self.function.nodes.get(call.node as usize)?;
            let types = self.signature(node)?.types.as_ref().ok()?;
            let callee = definitions.loaded.get(call.call.function)?;
            let tensors = (types.inputs.len(), types.outputs.len());
            definitions.wrong_binding_of(call).or_else(|| callee.call_diagnostic(tensors))
        })
    }

    /// Returns the functions that nodes have as their operations.
    pub(super) fn called(&self, definitions: &LoadDefinitions<'_>) -> Vec<u64> {
        let operations =
            self.function.node_signatures.iter().map(|signature| signature.operation.as_bytes());
        operations.filter_map(|operation| definitions.names.find(operation)).collect()
    }

    /// Returns a PartitionedCall that does not say which function it calls.
    pub(super) fn target(&self, definitions: &LoadDefinitions<'_>) -> Option<BoxedDiagnostic> {
        let calls_nothing = |node: &BodyNode| {
            let signature = self.function.node_signatures.get(node.signature as usize)?;
            let is_call = is_partitioned_call(signature.operation.as_bytes())
                && definitions.function(&signature.operation).is_none();
            let target = signature.attributes.get("f").filter(|_| is_call)?;
            Some(!matches!(target, AttributeValue::Function(_)))
        };
        let mut nodes = numbered(&self.function.nodes);
        let (number, _) = nodes.find(|(_, node)| calls_nothing(node) == Some(true))?;
        let diagnostic = self.at_node(number, ImportDiagnosticKind::Python);
        Some(diagnostic.with("a call of no function", "a function as attribute f"))
    }
}
