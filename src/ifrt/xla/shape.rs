//! Shapes of XLA and their layouts. They are defined together: a shape has a layout, and the layout
//! of a sparse array has the shape of its buffer.

use super::{
    PrimitiveType,
    dimensions::{DimLevelType, SplitConfig, Tile},
};
use crate::{
    codec::{DecodeError, DeserializeOptions, serde_forms::serde_as_message},
    ifrt::{IfrtError, permutation::check_permutation},
    proto::xla,
};

/// A shape of XLA: an array of one element type, or a tuple of shapes (`xla.ShapeProto`).
///
/// Formatted and parsed in the notation of HLO:
///
/// ```
/// use serdes::ifrt::xla::{PrimitiveType, Shape};
///
/// let shape: Shape = "(f32[2,<=3]{1,0}, s32[])".parse()?;
/// assert_eq!(shape.tuple_shapes()[1], Shape::array(PrimitiveType::S32, []));
/// assert_eq!(shape.to_string(), "(f32[2,<=3]{1,0}, s32[])");
/// # Ok::<(), serdes::ifrt::xla::ShapeTextError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Shape {
    element_type: PrimitiveType,
    dimensions: Vec<i64>,
    is_dynamic_dimension: Vec<bool>,
    tuple_shapes: Vec<Self>,
    layout: Option<Layout>,
}

impl Shape {
    /// The size of a dynamic dimension without a bound, printed as `?`.
    pub const UNBOUNDED: i64 = i64::MIN;

    /// Creates an array shape with static dimensions, in elements, and without a layout.
    pub fn array(element_type: PrimitiveType, dimensions: impl Into<Vec<i64>>) -> Self {
        let dimensions = dimensions.into();
        let is_dynamic_dimension = vec![false; dimensions.len()];
        Self { element_type, dimensions, is_dynamic_dimension, ..Self::default() }
    }

    /// Creates a tuple shape.
    pub fn tuple(shapes: impl Into<Vec<Self>>) -> Self {
        Self { element_type: PrimitiveType::TUPLE, tuple_shapes: shapes.into(), ..Self::default() }
    }

    /// Creates a buffer shape with this content.
    pub fn buffer(content: Self) -> Self {
        Self { element_type: PrimitiveType::BUFFER, tuple_shapes: vec![content], ..Self::default() }
    }

    /// Sets the layout.
    #[must_use]
    pub fn with_layout(mut self, layout: Layout) -> Self {
        self.layout = Some(layout);
        self
    }

    /// Sets the dynamic dimensions, whose sizes are then bounds. Missing flags mean static.
    #[must_use]
    pub fn with_dynamic_dimensions(mut self, is_dynamic: impl Into<Vec<bool>>) -> Self {
        self.is_dynamic_dimension = is_dynamic.into();
        self
    }

    /// Returns the element type; [`PrimitiveType::TUPLE`] for a tuple.
    pub const fn element_type(&self) -> PrimitiveType {
        self.element_type
    }

    /// Returns the sizes of the dimensions in elements.
    pub fn dimensions(&self) -> &[i64] {
        &self.dimensions
    }

    /// Returns one flag per dimension, true if it is dynamic. As in the message, there may be fewer
    /// flags than dimensions.
    pub fn is_dynamic_dimension(&self) -> &[bool] {
        &self.is_dynamic_dimension
    }

    /// Returns the shapes of a tuple, or the content of a buffer.
    pub fn tuple_shapes(&self) -> &[Self] {
        &self.tuple_shapes
    }

    /// Returns the layout, if the shape has one.
    pub const fn layout(&self) -> Option<&Layout> {
        self.layout.as_ref()
    }

    /// Returns the shape as a message.
    pub fn to_proto(&self) -> xla::ShapeProto {
        xla::ShapeProto {
            element_type: self.element_type.number(),
            dimensions: self.dimensions.clone(),
            tuple_shapes: self.tuple_shapes.iter().map(Self::to_proto).collect(),
            layout: self.layout.as_ref().map(|layout| Box::new(layout.to_proto())),
            is_dynamic_dimension: self.is_dynamic_dimension.clone(),
        }
    }

    /// Returns the shape in a message.
    ///
    /// # Errors
    /// As [`Layout::from_proto`]; in strict mode also for negative dimensions and for more or fewer
    /// flags than dimensions.
    pub fn from_proto(
        proto: &xla::ShapeProto,
        options: &DeserializeOptions,
    ) -> Result<Self, DecodeError> {
        if options.is_strict() {
            if let Some(dimension) = proto.dimensions.iter().find(|dimension| **dimension < 0) {
                return Err(DecodeError::invalid_value(
                    "xla.Shape",
                    format!("a dimension is {dimension}; sizes are at least 0"),
                ));
            }
            let flags = proto.is_dynamic_dimension.len();
            if flags != 0 && flags != proto.dimensions.len() {
                return Err(DecodeError::invalid_value(
                    "xla.Shape",
                    format!("{flags} dynamic flags for {} dimensions", proto.dimensions.len()),
                ));
            }
        }
        Ok(Self {
            element_type: PrimitiveType::from_number(proto.element_type),
            dimensions: proto.dimensions.clone(),
            is_dynamic_dimension: proto.is_dynamic_dimension.clone(),
            tuple_shapes: proto
                .tuple_shapes
                .iter()
                .map(|shape| Self::from_proto(shape, options))
                .collect::<Result<_, _>>()?,
            layout: proto
                .layout
                .as_ref()
                .map(|layout| Layout::from_proto(layout, options))
                .transpose()?,
        })
    }
}

serde_as_message!(
    Shape,
    |value| {
        use prost::Message as _;
        Ok(value.to_proto().encode_to_vec().into())
    },
    |bytes| {
        let options = DeserializeOptions::new();
        Self::from_proto(&crate::codec::decode_message("xla.Shape", bytes, &options)?, &options)
    }
);

/// A layout of XLA (`xla.LayoutProto`): the order of the dimensions in memory with tiles, padding,
/// element size and memory space.
///
/// Formatted and parsed in the notation of HLO (`xla/layout.cc`, the layout rule of the HLO
/// parser): `{1,0:T(8,128)(2,1)E(4)S(5)}`.
///
/// ```
/// use serdes::ifrt::xla::Layout;
///
/// let layout: Layout = "{1,0:T(8,128)S(5)}".parse()?;
/// assert_eq!(layout.minor_to_major(), [1, 0]);
/// assert_eq!(layout.tiles()[0].dimensions(), [8, 128]);
/// assert_eq!(layout.memory_space(), 5);
/// assert_eq!(layout.to_string(), "{1,0:T(8,128)S(5)}");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    pub(super) minor_to_major: Vec<i64>,
    pub(super) dim_level_types: Vec<DimLevelType>,
    pub(super) dim_unique: Vec<bool>,
    pub(super) dim_ordered: Vec<bool>,
    pub(super) tiles: Vec<Tile>,
    pub(super) tail_padding_alignment_in_elements: i64,
    pub(super) index_primitive_type: PrimitiveType,
    pub(super) pointer_primitive_type: PrimitiveType,
    pub(super) element_size_in_bits: i64,
    pub(super) memory_space: i64,
    pub(super) split_configs: Vec<SplitConfig>,
    pub(super) physical_shape: Option<Box<Shape>>,
    pub(super) dynamic_shape_metadata_prefix_bytes: i64,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            minor_to_major: Vec::new(),
            dim_level_types: Vec::new(),
            dim_unique: Vec::new(),
            dim_ordered: Vec::new(),
            tiles: Vec::new(),
            tail_padding_alignment_in_elements: 1,
            index_primitive_type: PrimitiveType::INVALID,
            pointer_primitive_type: PrimitiveType::INVALID,
            element_size_in_bits: 0,
            memory_space: 0,
            split_configs: Vec::new(),
            physical_shape: None,
            dynamic_shape_metadata_prefix_bytes: 0,
        }
    }
}

impl Layout {
    /// Creates a dense layout without tiles; `minor_to_major` has the dimensions from the fastest
    /// to the slowest.
    ///
    /// # Errors
    /// [`IfrtError::Invalid`] if they are not a permutation of 0 to n - 1.
    pub fn new(minor_to_major: impl Into<Vec<i64>>) -> Result<Self, IfrtError> {
        let minor_to_major = minor_to_major.into();
        check_permutation("minor_to_major", &minor_to_major)?;
        Ok(Self { minor_to_major, ..Self::default() })
    }

    /// Returns the row-major layout of `rank` dimensions: the last dimension is the fastest.
    pub fn descending(rank: u16) -> Self {
        Self { minor_to_major: (0..i64::from(rank)).rev().collect(), ..Self::default() }
    }

    /// Sets the tiles, the outermost first.
    #[must_use]
    pub fn with_tiles(mut self, tiles: impl Into<Vec<Tile>>) -> Self {
        self.tiles = tiles.into();
        self
    }

    /// Sets the size of an element in bits; 0 for the size of the element type.
    #[must_use]
    pub fn with_element_size_in_bits(mut self, bits: i64) -> Self {
        self.element_size_in_bits = bits;
        self
    }

    /// Sets the memory space; 0 is the default.
    #[must_use]
    pub fn with_memory_space(mut self, memory_space: i64) -> Self {
        self.memory_space = memory_space;
        self
    }

    /// Returns the dimensions from the fastest to the slowest.
    pub fn minor_to_major(&self) -> &[i64] {
        &self.minor_to_major
    }

    /// Returns the storage of each dimension; empty if all are dense.
    pub fn dim_level_types(&self) -> &[DimLevelType] {
        &self.dim_level_types
    }

    /// Returns one flag per dimension, true if its elements are unique; empty if all are true.
    pub fn dim_unique(&self) -> &[bool] {
        &self.dim_unique
    }

    /// Returns one flag per dimension, true if its elements are ordered; empty if all are true.
    pub fn dim_ordered(&self) -> &[bool] {
        &self.dim_ordered
    }

    /// Returns the tiles, the outermost first.
    pub fn tiles(&self) -> &[Tile] {
        &self.tiles
    }

    /// Returns the alignment to which the number of elements is padded; 1 for no padding.
    pub const fn tail_padding_alignment_in_elements(&self) -> i64 {
        self.tail_padding_alignment_in_elements
    }

    /// Returns the type of the indices of a sparse layout, or invalid.
    pub const fn index_primitive_type(&self) -> PrimitiveType {
        self.index_primitive_type
    }

    /// Returns the type of the positions of a sparse layout, or invalid.
    pub const fn pointer_primitive_type(&self) -> PrimitiveType {
        self.pointer_primitive_type
    }

    /// Returns the size of an element in bits; 0 for the size of the element type.
    pub const fn element_size_in_bits(&self) -> i64 {
        self.element_size_in_bits
    }

    /// Returns the memory space; 0 is the default.
    pub const fn memory_space(&self) -> i64 {
        self.memory_space
    }

    /// Returns the splits of dimensions over memories.
    pub fn split_configs(&self) -> &[SplitConfig] {
        &self.split_configs
    }

    /// Returns the shape of the buffer that holds a sparse array.
    pub fn physical_shape(&self) -> Option<&Shape> {
        self.physical_shape.as_deref()
    }

    /// Returns the number of bytes before a dynamic array that hold its sizes.
    pub const fn dynamic_shape_metadata_prefix_bytes(&self) -> i64 {
        self.dynamic_shape_metadata_prefix_bytes
    }

    /// Returns the layout as a message.
    pub fn to_proto(&self) -> xla::LayoutProto {
        xla::LayoutProto {
            minor_to_major: self.minor_to_major.clone(),
            dim_level_types: self.dim_level_types.iter().map(|kind| kind.number()).collect(),
            dim_unique: self.dim_unique.clone(),
            dim_ordered: self.dim_ordered.clone(),
            tiles: self
                .tiles
                .iter()
                .map(|tile| xla::TileProto { dimensions: tile.dimensions().to_vec() })
                .collect(),
            tail_padding_alignment_in_elements: self.tail_padding_alignment_in_elements,
            element_size_in_bits: self.element_size_in_bits,
            memory_space: self.memory_space,
            index_primitive_type: self.index_primitive_type.number(),
            pointer_primitive_type: self.pointer_primitive_type.number(),
            physical_shape: self.physical_shape.as_ref().map(|shape| Box::new(shape.to_proto())),
            dynamic_shape_metadata_prefix_bytes: self.dynamic_shape_metadata_prefix_bytes,
            split_configs: self
                .split_configs
                .iter()
                .map(|split| xla::SplitConfigProto {
                    dimension: split.dimension(),
                    split_indices: split.split_indices().to_vec(),
                })
                .collect(),
        }
    }

    /// Returns the layout in a message. A tail padding of 0, which old writers omitted, means 1.
    ///
    /// # Errors
    /// [`DecodeError::InvalidValue`] for an unknown dimension level type; in strict mode also if
    /// `minor_to_major` is not a permutation, or if the tail padding or the element size is
    /// negative.
    pub fn from_proto(
        proto: &xla::LayoutProto,
        options: &DeserializeOptions,
    ) -> Result<Self, DecodeError> {
        if options.is_strict() {
            check_permutation("minor_to_major", &proto.minor_to_major)
                .map_err(|error| error.decoding("xla.Layout"))?;
            for (what, value) in [
                ("tail padding", proto.tail_padding_alignment_in_elements),
                ("element size", proto.element_size_in_bits),
            ] {
                if value < 0 {
                    return Err(DecodeError::invalid_value(
                        "xla.Layout",
                        format!("the {what} is {value}; expected at least 0"),
                    ));
                }
            }
        }
        let tail_padding_alignment_in_elements = match proto.tail_padding_alignment_in_elements {
            0 => 1,
            alignment => alignment,
        };
        Ok(Self {
            minor_to_major: proto.minor_to_major.clone(),
            dim_level_types: proto
                .dim_level_types
                .iter()
                .map(|number| DimLevelType::from_number(*number))
                .collect::<Result<_, _>>()?,
            dim_unique: proto.dim_unique.clone(),
            dim_ordered: proto.dim_ordered.clone(),
            tiles: proto.tiles.iter().map(|tile| Tile::new(tile.dimensions.clone())).collect(),
            tail_padding_alignment_in_elements,
            index_primitive_type: PrimitiveType::from_number(proto.index_primitive_type),
            pointer_primitive_type: PrimitiveType::from_number(proto.pointer_primitive_type),
            element_size_in_bits: proto.element_size_in_bits,
            memory_space: proto.memory_space,
            split_configs: proto
                .split_configs
                .iter()
                .map(|split| SplitConfig::new(split.dimension, split.split_indices.clone()))
                .collect(),
            physical_shape: proto
                .physical_shape
                .as_ref()
                .map(|shape| Shape::from_proto(shape, options).map(Box::new))
                .transpose()?,
            dynamic_shape_metadata_prefix_bytes: proto.dynamic_shape_metadata_prefix_bytes,
        })
    }
}

serde_as_message!(
    Layout,
    |value| {
        use prost::Message as _;
        Ok(value.to_proto().encode_to_vec().into())
    },
    |bytes| {
        let options = DeserializeOptions::new();
        Self::from_proto(&crate::codec::decode_message("xla.Layout", bytes, &options)?, &options)
    }
);
