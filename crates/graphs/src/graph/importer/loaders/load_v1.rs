//! The checks of `tf.compat.v1.saved_model.load`, and of Python's `import_graph_def`.

use super::checks::Checks;

/// The checks in the order of `importer.py`, then `meta_graph.py`.
pub(super) const CHECKS: Checks = Checks {
    before_versions: &[],
    after_versions: &[
        // The C import, as in `import.rs`, of nodes to which Python has added defaults.
        |found| found.nameless_call.as_ref(),
        |found| found.function_name.as_ref(),
        |found| found.python_import.as_ref(),
        // Python creates an object for each node, with a tensor for each output.
        |found| found.output_type.as_ref(),
        // It reads the attribute `_class` and the device of each node.
        |found| found.python_attribute.as_ref(),
        // It creates its own function from each function of the library,
        |found| found.python_function.as_ref(),
        // and adds it to the graph, which already has one of this name: they must be equal.
        |found| found.unequal_function.as_ref(),
        // It creates the saver,
        |found| found.saver.as_ref(),
        // and looks up the nodes of collections, the saver, the initial operation and assets.
        |found| found.references.load_v1.as_ref(),
    ],
};
