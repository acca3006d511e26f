//! The checks of `tf.saved_model.load`.
//!
//! It first loads every function of the library. For a model with an object graph it then creates
//! the objects, and ignores the nodes outside functions.

use super::checks::Checks;

/// The checks for a model with an object graph, in the order of `load.py`.
pub(super) const CHECKS_OF_OBJECTS: Checks = Checks {
    before_versions: &[
        // All functions are loaded, callees first.
        |found| found.reexported_function.as_ref(),
    ],
    after_versions: &[
        // The objects are created, and given their children.
        |found| found.objects.as_ref(),
    ],
};

/// The checks for a model without one, in the order of `load_v1_in_v2.py`.
pub(super) const CHECKS_OF_NODES: Checks = Checks {
    before_versions: &[
        // All functions are loaded, callees first.
        |found| found.reexported_function.as_ref(),
        // Each is added to the graph again: it must be equal to itself.
        |found| found.unequal_reexported_function.as_ref(),
    ],
    after_versions: &[
        // Functions get their new names in the attributes of nodes.
        |found| found.missing_function.as_ref(),
        // The nodes are imported.
        |found| found.reexported_nodes.as_ref(),
        // Python creates an object for each node, with a tensor for each output.
        |found| found.reexported_output_type.as_ref(),
        // It reads the attribute `_class` and the device of each node,
        |found| found.python_attribute.as_ref(),
        // and creates the saver.
        |found| found.saver.as_ref(),
        // It creates a function from the graph, whose attributes must have values.
        |found| found.placeholder.as_ref(),
        // It looks up what `load_v1` does, and the tensors of signatures.
        |found| found.references.load.as_ref(),
    ],
};

/// The check of a graph that is not in a model: only its nodes are compared.
pub(super) const CHECKS_OF_GRAPH: Checks =
    Checks { before_versions: &[], after_versions: &[|found| found.python_import.as_ref()] };
