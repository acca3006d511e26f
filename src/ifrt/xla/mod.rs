//! Shapes, layouts and shardings of XLA, which IFRT messages nest.
//!
//! They have no version of their own: XLA only ever adds fields. What a message of XLA means is checked no further than
//! IFRT needs it.

mod layout;
mod layout_text;
mod primitive_type;
mod shape;

pub use layout::{DimLevelType, Layout, SplitConfig, Tile};
pub use layout_text::LayoutTextError;
pub use primitive_type::PrimitiveType;
pub use shape::Shape;
