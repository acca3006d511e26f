//! The checks of the C import, `TF_GraphImportGraphDef`.

use super::checks::Checks;

/// The checks in the order of `GraphConstructor`.
pub(super) const CHECKS: Checks = Checks {
    before_versions: &[],
    after_versions: &[
        // Each node names an operation.
        |found| found.nameless_call.as_ref(),
        // The library is added to the graph: no function hides an operation.
        |found| found.function_name.as_ref(),
        // The nodes are created one after another.
        |found| found.import.as_ref(),
    ],
};
