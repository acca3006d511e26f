//! Checks one node by the definition of its operation alone.
//!
//! [`NodeRules::node_type`] does the steps of the importer between the look-up of the operation and
//! the check of its inputs: defaults, kinds of values, minima, allowed values, missing attributes,
//! and the resulting types of inputs and outputs ([`NodeType`]). The signature of a function of the
//! library is a definition like any other: read it into an
//! [`OperationDefinition`](crate::ops::OperationDefinition) and ask an
//! [`OperationList`](crate::ops::OperationList) for it. [`unknown_attributes()`] returns the
//! attributes that a release does not know and ignores, [`shape_diagnostic`] the attributes that a
//! shape function refuses for any inputs.
//!
//! Pure functions of a definition and of attributes, which do not depend on graphs or files.

mod diagnostic;
mod gradient_name;
mod node_type;
mod python_colocation;
mod saved_tensor;
mod shape_rules;
mod unknown_attributes;
mod value_rules;

pub use self::{
    diagnostic::NodeRuleDiagnostic,
    gradient_name::GradientName,
    node_type::{ElementType, NodeType, TypeList, TypeRun},
    python_colocation::PythonColocation,
    saved_tensor::SavedTensorDiagnostic,
    shape_rules::shape_diagnostic,
    unknown_attributes::{UnknownAttribute, unknown_attributes},
    value_rules::{NodeRules, Strictness, fits},
};

#[cfg(test)]
mod tests;
