//! The diagnostics of shapes that occur while the nodes of a graph are visited.
//!
//! Depends on the results of shape functions, but not on shape inference.

use super::{super::diagnostics::NodeDiagnostic, Walk};
use crate::graph::{
    ImportDiagnostic, ImportDiagnosticKind, node_signatures::LoaderProfile, shapes::FunctionNode,
};

impl Walk<'_> {
    /// Returns the diagnostic of shapes of inputs that a shape function refuses.
    pub(super) fn shapes_of_inputs(&self, node: u32) -> Option<NodeDiagnostic> {
        let diagnostic = self.shapes.filter(|diagnostic| diagnostic.node == node)?;
        let is_own = diagnostic.mismatch.within.is_none();
        is_own.then(|| NodeDiagnostic::ShapesOfInputs(diagnostic.mismatch.clone()))
    }

    /// Returns the same in the function that a node calls.
    pub(super) fn shapes_of_called(&self, node: u32) -> Option<ImportDiagnostic> {
        let mismatch = &self.shapes.filter(|diagnostic| diagnostic.node == node)?.mismatch;
        let FunctionNode { function, node, operation } = mismatch.within.clone()?;
        Some(ImportDiagnostic {
            kind: ImportDiagnosticKind::Shape,
            node,
            function: Some(function),
            operation,
            found: mismatch.found.clone(),
            expected: mismatch.expected.clone(),
        })
    }

    /// Returns the diagnostic of declared output shapes: too few, or invalid ones.
    pub(super) fn output_shapes(
        &self,
        node: u32,
        profile: LoaderProfile,
    ) -> Option<NodeDiagnostic> {
        let said = self.context.index.output_shapes_of(node)?;
        let outputs = &self.types(node, profile)?.outputs;
        if said.count < outputs.len() && !outputs.may_be(said.count) {
            let (found, expected) = (said.count, outputs.len());
            return Some(NodeDiagnostic::FewShapes { found, expected });
        }
        let is_bad = said.valid < outputs.len().min(said.count);
        is_bad.then_some(NodeDiagnostic::BadShape { output: said.valid })
    }
}
