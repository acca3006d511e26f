//! Shapes, layouts and shardings of XLA, which IFRT messages nest.
//!
//! They have no version of their own: XLA only adds fields. The content of XLA messages is checked
//! only as far as IFRT needs it.

mod dimensions;
mod layout_text;
mod op_sharding;
mod primitive_type;
mod shape;
mod shape_text;
mod tile_assignment;

pub use dimensions::{DimLevelType, SplitConfig, Tile};
pub use layout_text::LayoutTextError;
pub use op_sharding::{OpSharding, OpShardingType};
pub use primitive_type::PrimitiveType;
pub use shape::{Layout, Shape};
pub use shape_text::ShapeTextError;
pub use tile_assignment::TileAssignment;
