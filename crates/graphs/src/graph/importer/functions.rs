//! Finds faults in the library of functions, which the importer checks before it visits nodes.

use crate::graph::{StructureFault, StructureFaultKind, index::GraphIndex};

/// The first fault: functions are added before gradients.
pub(super) fn first_fault(index: &GraphIndex) -> Option<StructureFault> {
    let duplicate = index.duplicate_function().map(|function| function.name.as_str());
    let duplicate = (duplicate, StructureFaultKind::DuplicateFunction);
    let second = (index.second_gradient(), StructureFaultKind::SecondGradient);
    let mut found = [duplicate, second].into_iter();
    found.find_map(|(name, kind)| Some(StructureFault::new(kind, name?.to_owned())))
}
