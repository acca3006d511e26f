//! The attributes of one node, read while its bytes pass by.
//!
//! [`AttributeReader`] is told what a visitor is told inside of a node, of a graph or of a
//! function, in either form, and fills [`Attributes`]: keys with their [`AttributeValue`]s. The
//! merging of protobuf is part of the reading: of several members of a value the last one counts, a
//! message that comes twice inside of one value is put together, and of equal keys the last entry
//! counts.
//!
//! What is kept of a node is bounded (see [`Attributes::is_oversized`]), and is used again for the
//! next node, so that most nodes cost no allocation. Of long lists of numbers and shapes, of
//! tensors and of long texts only the length and the beginning are kept.
//!
//! Knows how attributes are written, and what equals a default. It must never know which
//! operation has them, nor what may stand there.

mod arena;
mod reader;
mod value;

pub use self::{
    arena::Attributes,
    reader::AttributeReader,
    value::{AttributeValue, List, ShapeValue, TensorDiagnostic, TensorValue, Text},
};

#[cfg(test)]
pub mod tests;
