//! Finds the diagnostics in the library of functions, which the importer checks before it visits
//! nodes.

use crate::graph::{StructureDiagnostic, StructureDiagnosticKind, index::GraphIndex};

/// Returns the first diagnostic: functions are added before gradients.
pub(super) fn first_diagnostic(index: &GraphIndex) -> Option<StructureDiagnostic> {
    let duplicate = index.duplicate_function().map(|function| function.name.as_str());
    let duplicate = (duplicate, StructureDiagnosticKind::DuplicateFunction);
    let second = (index.second_gradient(), StructureDiagnosticKind::SecondGradient);
    let mut found = [duplicate, second].into_iter();
    found.find_map(|(name, kind)| Some(StructureDiagnostic::new(kind, name?.to_owned())))
}
