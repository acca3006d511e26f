//! Shape functions: they infer the shapes of tensors before anything runs, and report nodes whose
//! inputs have impossible shapes.
//!
//! TensorFlow runs a shape function at each node that it imports. Here, [`first_diagnostic`] infers
//! the shapes in a graph in the same order: their origins (`state`), the operations that change
//! them (`elementwise`, `linear`, `windows`, `arrangement`, `reduction`, `control_flow`), and the
//! constraints on attributes (`settings`). At a node that calls a function it infers the shapes in
//! the body (`body`), with the shapes of the node's inputs. For nearly all operations the permitted
//! ranks of inputs are known as well (`measured`). Everything else has an unknown shape, so that no
//! graph is refused that TensorFlow accepts; some graphs that it refuses are not detected.
//!
//! Measured on TensorFlow 2.12, 2.16 and 2.21: `tests/interop/tensorflow_shapes.py`.
//!
//! Depends on operations and shapes, but not on loaders or the encoding of graphs.

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
