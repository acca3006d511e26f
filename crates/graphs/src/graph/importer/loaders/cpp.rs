//! The checks of the C++ loader, `TF_LoadSessionFromSavedModel`.
//!
//! It checks constants and looks up the operations of all nodes first, and requires functions,
//! devices and kernels immediately, not when they are used. The existence of a device depends on
//! the machine: one that can be parsed counts as existing.

use super::checks::Checks;

/// The checks in the order of `loader.cc`.
pub(super) const CHECKS: Checks = Checks {
    before_versions: &[
        // The constants outside functions must have a known number of elements,
        |found| found.unsaved_constant.as_ref(),
        // and so must those in functions.
        |found| found.unsaved_function.as_ref(),
        // The operations of all nodes are looked up.
        |found| found.unknown_operation.as_ref(),
    ],
    after_versions: &[
        // A session creates the nodes and edges of the graph, with those checks of `import.rs` that
        // do not depend on attribute values.
        |found| found.nameless_call.as_ref(),
        |found| found.function_name.as_ref(),
        |found| found.session.as_ref(),
        // Nodes that call functions are placed with their functions.
        |found| found.missing_callee.as_ref(),
        // Each node outside of functions is placed on a device with a kernel,
        |found| found.node_placement.as_ref(),
        // and each node of the functions that are placed with it.
        |found| found.function_placement.as_ref(),
        // The rest of the C import.
        |found| found.import.as_ref(),
        // The initial operation and the assets are looked up.
        |found| found.references.cpp.as_ref(),
    ],
};

/// The checks of a graph that is not in a model: a session creates its nodes.
pub(super) const CHECKS_OF_GRAPH: Checks = Checks {
    before_versions: &[],
    after_versions: &[
        |found| found.nameless_call.as_ref(),
        |found| found.function_name.as_ref(),
        |found| found.session.as_ref(),
    ],
};
