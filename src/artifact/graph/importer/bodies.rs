//! What is wrong with the functions that nodes call, release by release.

use super::{calls::CallFault, context::Context, judge, order::NodeFault};
use crate::artifact::graph::{
    GraphError, ImportFault, ImportFaultKind, StructureFaultKind, index::CallingNode, node_at,
    rules::shown,
};

/// The functions that the nodes of a graph call.
pub(super) struct Bodies<'c> {
    context: &'c Context<'c>,
    /// What is wrong with them whatever their operations are, by node.
    calls: &'c [CallFault],
}

impl<'c> Bodies<'c> {
    pub(super) fn new(context: &'c Context<'c>, calls: &'c [CallFault]) -> Self {
        Self { context, calls }
    }

    /// What a node finds wrong with the function that it calls.
    pub(super) fn fault(
        &mut self,
        call: &CallingNode,
        _view: usize,
    ) -> Result<Option<ImportFault>, GraphError> {
        let node = call.number;
        let Ok(position) = self.calls.binary_search_by_key(&node, |fault| fault.node) else {
            return Ok(None);
        };
        let Context { source, index, release, .. } = *self.context;
        let fault = NodeFault { node, kind: StructureFaultKind::CalledFunction };
        let structure = judge::named(source, index, fault, self.calls.get(position), release)?;
        let calling = node_at::read(source, call.place, None, release)?;
        Ok(Some(ImportFault {
            node: structure.node.clone(),
            function: structure.body.as_ref().map(|body| body.function.clone()),
            operation: shown(&calling.operation),
            kind: ImportFaultKind::Structure(structure),
            found: String::new(),
            expected: String::new(),
        }))
    }
}
