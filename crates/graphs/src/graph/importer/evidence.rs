//! The diagnostics of a graph for one release, independent of the loader that finds them first.
//!
//! Does not depend on the order of a loader's checks.

use super::node_references::ReferenceDiagnostics;
use crate::graph::{IgnoredAttribute, ImportDiagnostic};

/// The diagnostics that one release finds in a graph. Each loader takes the first one in its own
/// order (`loaders/`); checks that no loader of the graph makes have none.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct Evidence {
    /// A node without an operation that calls the function without a name.
    pub(super) nameless_call: Option<ImportDiagnostic>,
    /// A function of the library with the name of an operation.
    pub(super) function_name: Option<ImportDiagnostic>,
    /// The first diagnostic of the nodes, or of how they fit together, in the C import.
    pub(super) import: Option<ImportDiagnostic>,
    /// The first diagnostic in Python's import.
    pub(super) python_import: Option<ImportDiagnostic>,
    /// The first diagnostic in a session, which creates the nodes before the values of attributes
    /// are checked.
    pub(super) session: Option<ImportDiagnostic>,
    /// The first diagnostic in `tf.saved_model.load`, which renames functions first.
    pub(super) reexported_nodes: Option<ImportDiagnostic>,

    /// An output of a type for which Python has no name.
    pub(super) output_type: Option<ImportDiagnostic>,
    /// The same in the nodes after `tf.saved_model.load` has renamed functions.
    pub(super) reexported_output_type: Option<ImportDiagnostic>,
    /// An attribute `_class` or a device that Python cannot read.
    pub(super) python_attribute: Option<ImportDiagnostic>,
    /// A function of the library that Python cannot turn into its own.
    pub(super) python_function: Option<ImportDiagnostic>,
    /// A function of the library that is not found equal to itself.
    pub(super) unequal_function: Option<ImportDiagnostic>,
    /// A saver that lacks a name.
    pub(super) saver: Option<ImportDiagnostic>,
    /// Names of nodes in other fields of the meta graph.
    pub(super) references: ReferenceDiagnostics,

    /// A function of the library that `tf.saved_model.load` cannot load.
    pub(super) reexported_function: Option<ImportDiagnostic>,
    /// A loaded function that is not found equal to itself.
    pub(super) unequal_reexported_function: Option<ImportDiagnostic>,
    /// A node with an attribute that names a function missing in the library.
    pub(super) missing_function: Option<ImportDiagnostic>,
    /// An attribute that the release does not know, and whose value is a placeholder.
    pub(super) placeholder: Option<ImportDiagnostic>,
    /// The objects of Python.
    pub(super) objects: Option<ImportDiagnostic>,

    /// A constant outside functions whose number of elements is unknown.
    pub(super) unsaved_constant: Option<ImportDiagnostic>,
    /// The same in a function.
    pub(super) unsaved_function: Option<ImportDiagnostic>,
    /// A node of an operation that is neither in the release nor in the library.
    pub(super) unknown_operation: Option<ImportDiagnostic>,
    /// A PartitionedCall of a function that is not in the library.
    pub(super) missing_callee: Option<ImportDiagnostic>,
    /// A node without a kernel, or with a device that sessions cannot parse.
    pub(super) node_placement: Option<ImportDiagnostic>,
    /// The same in a function whose nodes a session places.
    pub(super) function_placement: Option<ImportDiagnostic>,

    /// Attributes that the release ignores, although their values matter.
    pub(super) ignored: Vec<IgnoredAttribute>,
}

impl Evidence {
    /// Returns a diagnostic of the nodes that every loader finds.
    pub(super) fn of_nodes(diagnostic: &ImportDiagnostic) -> Self {
        let found = || Some(diagnostic.clone());
        Self { import: found(), python_import: found(), session: found(), ..Self::default() }
    }

    /// Returns true if Python's import accepts the nodes.
    pub(super) fn is_imported_by_python(&self) -> bool {
        let Self { nameless_call, function_name, python_import, .. } = self;
        [nameless_call, function_name, python_import].into_iter().all(Option::is_none)
    }
}
