//! Reports faults of the functions that nodes call, for each release.

use super::{
    context::Context,
    instantiate::FindingKind,
    instantiated_callees::{FunctionFinding, InstantiatedCallees, Library},
    order::Visits,
    signatures::Signatures,
};
use crate::graph::{
    BodyFault, GraphError, ImportFault, ImportFaultKind, StructureFault, StructureFaultKind,
    fault::Part, index::CallingNode, kinds::LoaderProfile, source::Extent,
};

/// Diagnostics of the functions that the nodes of a graph call.
pub(super) struct CalleeDiagnostics<'c> {
    library: Library<'c>,
    called: InstantiatedCallees<'c>,
}

impl<'c> CalleeDiagnostics<'c> {
    /// Reads and judges what the nodes call, each function for the node that comes to it first.
    pub(super) fn read(context: &Context<'c>, visits: &Visits) -> Result<Self, GraphError> {
        let library = context.library();
        let mut calls: Vec<&CallingNode> = context.index.calls().iter().collect();
        calls.sort_by_key(|call| visits.of(call.number));
        let called =
            InstantiatedCallees::read(library, &mut Signatures::default(), calls.into_iter())?;
        Ok(Self { library, called })
    }

    /// The fault of the function that a node calls, for the number of tensors that the node takes
    /// and gives.
    pub(super) fn fault(
        &self,
        call: &CallingNode,
        tensors: (u64, u64),
        profile: LoaderProfile,
    ) -> Result<Option<ImportFault>, GraphError> {
        let found = self.called.finding(call, tensors, profile);
        found.map(|found| to_diagnostic(self.library, call.place, &found)).transpose()
    }
}

/// A fault of a function, where the node at `calling` finds it.
pub(super) fn to_diagnostic(
    library: Library<'_>,
    calling: Extent,
    found: &FunctionFinding,
) -> Result<ImportFault, GraphError> {
    let FunctionFinding { function, finding } = found;
    let (function, part) = library.memo.names(library, *function, finding.part)?;
    let kind = match &finding.kind {
        FindingKind::Import(kind) => kind.clone(),
        FindingKind::Names(kind) => {
            let node = library.memo.calling_node(library, calling)?;
            let mut fault = StructureFault::new(StructureFaultKind::CalledFunction, node);
            let (function, part) = (function.clone(), part.clone());
            fault.body = Some(BodyFault { function, part, kind: *kind });
            ImportFaultKind::Structure(fault)
        }
        FindingKind::Release(_) => ImportFaultKind::FunctionBody,
    };
    let found = match &finding.kind {
        FindingKind::Names(kind) | FindingKind::Release(kind) if finding.found.is_empty() => {
            match finding.part {
                Part::Function => kind.to_string(),
                _ => format!("{part:?}: {kind}"),
            }
        }
        _ => finding.found.clone(),
    };
    Ok(ImportFault {
        kind,
        node: if matches!(finding.part, Part::Node(_)) { part } else { String::new() },
        function: Some(function),
        operation: finding.operation.clone(),
        found,
        expected: finding.expected.clone(),
    })
}

#[cfg(test)]
mod tests;
