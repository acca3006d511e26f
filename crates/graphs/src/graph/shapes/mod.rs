//! Shape functions: they infer the shapes of tensors before anything runs, and report nodes whose
//! inputs have impossible shapes.
//!
//! TensorFlow runs a shape function at each node that it imports. Here, [`first_diagnostic`]
//! follows shapes through a graph in the same order: where they come from (`state`), how operations
//! change them (`elementwise`, `linear`, `windows`, `arrangement`, `reduction`, `control_flow`),
//! and what attributes have to be (`settings`). At a node that calls a function it goes through
//! that one (`body`), with the shapes that the node gives it. Of nearly all operations it is known
//! besides which ranks their inputs may have (`measured`). Whatever is not known is of unknown
//! shape, so that nothing is refused that TensorFlow takes; a part of what it refuses is not found.
//!
//! Measured on TensorFlow 2.12, 2.16 and 2.21: `tests/interop/tensorflow_shapes.py`.
//!
//! Knows operations and shapes. It must never know which loader judges, nor how graphs are written.

mod arrangement;
mod body;
mod constants;
mod control_flow;
mod elementwise;
mod functions;
mod inference;
mod known;
mod linear;
mod main_graph;
mod measured;
mod node;
mod reduction;
mod settings;
mod shape;
mod state;
mod tensor;
mod windows;

pub(super) use self::{
    body::{BodyMismatch, ByNode, Called, CalledFunctions, ShapedFunction, ShapedSignatures},
    constants::Constants,
    main_graph::{ShapeDiagnostic, ShapedGraph, first_diagnostic},
    shape::{FunctionNode, Mismatch},
    tensor::Tensor,
};

#[cfg(test)]
mod tests;
