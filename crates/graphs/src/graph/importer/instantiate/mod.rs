//! Builds the body of a function for one release, as its importer does for the first call.
//!
//! The order is TensorFlow's: the attributes of the call, the arguments, placeholders and
//! operations, the outputs of all nodes, their inputs, the returned values, names; then the
//! resulting graph: references, cycles, shape functions. Attributes are read only if the type or
//! number of an argument depends on them; a value of another kind then counts as the default, such
//! as the number 0.
//!
//! Depends on the function, the release and the call, but not on the caller or the encoding.

mod build;
mod diagnostic;
mod graph;
mod inputs;
mod results;
mod types;

pub(super) use self::{
    build::{Built, Definitions, instantiate, numbered, wrong_binding},
    diagnostic::{
        BoxedDiagnostic, FunctionDiagnostic, InstantiationDiagnostic, InstantiationDiagnosticKind,
    },
    types::{argument_types, fixed_types},
};
