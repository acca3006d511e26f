//! Finds the diagnostics that a session reports in functions when it places the nodes that call
//! them.
//!
//! A resource handle must be on the device of the resource. So if a PartitionedCall calls a
//! function whose signature has one, a session also places each node of that function, and those of
//! functions that it calls in the same way. Measured on TensorFlow 2.12, 2.16 and 2.21.
//!
//! Depends on the placed functions, but not on the existing devices.

use std::collections::{HashMap, HashSet};

use super::{
    callee_diagnostics::to_diagnostic,
    control_flow,
    function_memo::Library,
    instantiate::{FunctionDiagnostic, InstantiationDiagnostic, numbered},
};
use crate::{
    graph::{GraphError, ImportDiagnostic, ImportDiagnosticKind, diagnostic::Part, source::Extent},
    ops::Registry,
};

/// Limit on the operations that are kept: more than any release has.
const MOST_OPERATIONS: usize = 1 << 14;

/// The first node of a function with some property.
#[derive(Clone, Copy, Debug)]
struct Place {
    function: Extent,
    node: u32,
}

/// The nodes of the functions that a session looks into.
#[derive(Debug, Default)]
pub(super) struct PlacementCheck {
    /// The first node with a device that no session can read.
    device: Option<Place>,
    /// The first node of each operation other than a function, and the time when it was found.
    operations: HashMap<String, (usize, Place)>,
    /// The first function with invalid loops.
    loops: Option<FunctionDiagnostic>,
}

impl PlacementCheck {
    /// Reads the functions that PartitionedCalls of functions with these names reach.
    pub(super) fn read<'n>(
        library: Library<'_>,
        calls: impl Iterator<Item = &'n str>,
    ) -> Result<Self, GraphError> {
        let mut found = Self::default();
        let mut seen = HashSet::new();
        for call in calls {
            let mut waiting: Vec<u64> = library.names.find(call.as_bytes()).into_iter().collect();
            while let Some(function) = waiting.pop() {
                if seen.insert(function) {
                    found.add(library, function, &mut waiting)?;
                }
            }
        }
        Ok(found)
    }

    /// Adds a function if a session places its nodes, and records its calls.
    fn add(
        &mut self,
        library: Library<'_>,
        function: u64,
        waiting: &mut Vec<u64>,
    ) -> Result<(), GraphError> {
        let Library { names, memo, .. } = library;
        let Some(place) = names.get(function).map(|function| function.place) else {
            return Ok(());
        };
        if !memo.summary(library, place)?.gives_resource {
            return Ok(());
        }
        let index = memo.index(library, place)?;
        if self.loops.is_none() {
            let diagnostic = control_flow::diagnostic(library, (&index, place))?;
            self.loops = diagnostic.map(|diagnostic| FunctionDiagnostic {
                function: place,
                diagnostic: diagnostic.into(),
            });
        }
        let mut node_signatures = HashSet::new();
        for (node, body) in numbered(&index.nodes) {
            let at = Place { function: place, node };
            if body.bad_session_device {
                self.device.get_or_insert(at);
            }
            let operation =
                index.node_signatures.get(body.signature as usize).filter(|_| !body.is_function);
            if let Some(signature) = operation.filter(|_| node_signatures.insert(body.signature))
                && self.operations.len() < MOST_OPERATIONS
                && !self.operations.contains_key(&signature.operation)
            {
                let number = self.operations.len();
                self.operations.insert(signature.operation.clone(), (number, at));
            }
        }
        let calls = index.calls.iter().map(|inner| inner.call).filter(|call| !call.direct);
        waiting.extend(calls.map(|call| call.function));
        Ok(())
    }

    /// Returns the first node that cannot be placed in a release: its loop is invalid, its device
    /// cannot be parsed, or its operation has no kernel.
    pub(super) fn diagnostic(
        &self,
        library: Library<'_>,
        registry: &Registry,
    ) -> Result<Option<ImportDiagnostic>, GraphError> {
        if let Some(found) = &self.loops {
            return to_diagnostic(library, Extent::default(), found).map(Some);
        }
        let (at, kind, operation) = match self.device {
            Some(device) => (device, ImportDiagnosticKind::Device, None),
            None => match self.without_kernel(registry) {
                Some((place, operation)) => {
                    (place, ImportDiagnosticKind::NoKernel, Some(operation))
                }
                None => return Ok(None),
            },
        };
        let index = library.memo.index(library, at.function)?;
        let diagnostic =
            InstantiationDiagnostic::of(Part::Node(at.node), kind).of_operation(&index, at.node);
        let diagnostic = match operation {
            Some(operation) => diagnostic.with(operation, "an operation with a kernel for a CPU"),
            None => {
                diagnostic.with("a device that is none", "/job:NAME/replica:0/task:0/device:CPU:0")
            }
        };
        let found = FunctionDiagnostic { function: at.function, diagnostic: diagnostic.into() };
        to_diagnostic(library, Extent::default(), &found).map(Some)
    }

    fn without_kernel(&self, registry: &Registry) -> Option<(Place, &str)> {
        let lacking = self.operations.iter().filter(|(operation, _)| {
            let known = registry.operation(operation);
            known.is_some_and(|known| !known.has_cpu_kernel())
        });
        let (operation, (_, place)) = lacking.min_by_key(|(_, (number, _))| *number)?;
        Some((*place, operation))
    }
}
