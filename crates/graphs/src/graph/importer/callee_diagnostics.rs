//! Reports the diagnostics of the functions that nodes call, for each release.

use super::{
    context::Context,
    function_memo::Library,
    instantiate::{FunctionDiagnostic, InstantiationDiagnosticKind},
    instantiated_callees::InstantiatedCallees,
    signatures::Signatures,
    visits::Visits,
};
use crate::graph::{
    BodyDiagnostic, GraphError, ImportDiagnostic, ImportDiagnosticKind, StructureDiagnostic,
    StructureDiagnosticKind, diagnostic::Part, index::CallingNode, node_signatures::LoaderProfile,
    source::Extent,
};

/// Diagnostics of the functions that the nodes of a graph call.
pub(super) struct CalleeDiagnostics<'c> {
    library: Library<'c>,
    called: InstantiatedCallees<'c>,
}

impl<'c> CalleeDiagnostics<'c> {
    /// Reads and judges the called functions, each for the first node that reaches it.
    pub(super) fn read(context: &Context<'c>, visits: &Visits) -> Result<Self, GraphError> {
        let library = context.library();
        let mut calls: Vec<&CallingNode> = context.index.calls().iter().collect();
        calls.sort_by_key(|call| visits.of(call.number));
        let called =
            InstantiatedCallees::read(library, &mut Signatures::default(), calls.into_iter())?;
        Ok(Self { library, called })
    }

    /// Returns the diagnostic of the function that a node calls, for the node's numbers of inputs
    /// and outputs.
    pub(super) fn diagnostic(
        &self,
        call: &CallingNode,
        tensors: (u64, u64),
        profile: LoaderProfile,
    ) -> Result<Option<ImportDiagnostic>, GraphError> {
        let found = self.called.diagnostic(call, tensors, profile);
        found.map(|found| to_diagnostic(self.library, call.place, &found)).transpose()
    }
}

/// Returns a diagnostic of a function, as found by the node at `calling`.
pub(super) fn to_diagnostic(
    library: Library<'_>,
    calling: Extent,
    found: &FunctionDiagnostic,
) -> Result<ImportDiagnostic, GraphError> {
    let FunctionDiagnostic { function, diagnostic } = found;
    let (function, part) = library.memo.names(library, *function, diagnostic.part)?;
    let kind = match &diagnostic.kind {
        InstantiationDiagnosticKind::Import(kind) => kind.clone(),
        InstantiationDiagnosticKind::Names(kind) => {
            let node = library.memo.calling_node(library, calling)?;
            let mut structure =
                StructureDiagnostic::new(StructureDiagnosticKind::CalledFunction, node);
            let (function, part) = (function.clone(), part.clone());
            structure.body = Some(BodyDiagnostic { function, part, kind: *kind });
            ImportDiagnosticKind::Structure(structure)
        }
        InstantiationDiagnosticKind::Release(_) => ImportDiagnosticKind::FunctionBody,
    };
    let found = match &diagnostic.kind {
        InstantiationDiagnosticKind::Names(kind) | InstantiationDiagnosticKind::Release(kind)
            if diagnostic.found.is_empty() =>
        {
            match diagnostic.part {
                Part::Function => kind.to_string(),
                _ => format!("{part:?}: {kind}"),
            }
        }
        _ => diagnostic.found.clone(),
    };
    Ok(ImportDiagnostic {
        kind,
        node: if matches!(diagnostic.part, Part::Node(_)) { part } else { String::new() },
        function: Some(function),
        operation: diagnostic.operation.clone(),
        found,
        expected: diagnostic.expected.clone(),
    })
}

#[cfg(test)]
mod tests;
