//! The attributes of one node, read during a walk.
//!
//! [`AttributeReader`] receives the visitor events inside a node, of a graph or of a function, in
//! either form, and fills [`Attributes`]: keys with their [`AttributeValue`]s. It implements
//! protobuf's merging: the last of several members of a value counts, repeated messages inside one
//! value are merged, and the last entry of equal keys counts.
//!
//! The memory kept for a node is bounded (see [`Attributes::is_oversized`]) and reused for the next
//! node, so that most nodes need no allocation. For long lists of numbers and shapes, for tensors
//! and for long strings only the length and the beginning are kept.
//!
//! Depends on the encoding of attributes and on the equality with defaults, but not on the
//! operation that has them or the permitted values.

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
