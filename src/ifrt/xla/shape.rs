//! Shapes of XLA: arrays, tuples, and what is neither.

use super::{Layout, PrimitiveType};
use crate::{
    codec::{DecodeError, DeserializeOptions, hexadecimal::serde_as_message},
    proto::xla,
};

/// A shape of XLA: an array of one element type, or a tuple of shapes (`xla.ShapeProto`).
///
/// Printed and read in the notation of HLO:
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
    /// The size of a dynamic dimension without a bound, printed `?`.
    pub const UNBOUNDED: i64 = i64::MIN;

    /// An array of static dimensions, in elements, without a layout.
    pub fn array(element_type: PrimitiveType, dimensions: impl Into<Vec<i64>>) -> Self {
        let dimensions = dimensions.into();
        let is_dynamic_dimension = vec![false; dimensions.len()];
        Self { element_type, dimensions, is_dynamic_dimension, ..Self::default() }
    }

    /// A tuple of shapes.
    pub fn tuple(shapes: impl Into<Vec<Self>>) -> Self {
        Self { element_type: PrimitiveType::TUPLE, tuple_shapes: shapes.into(), ..Self::default() }
    }

    /// A buffer with this content.
    pub fn buffer(content: Self) -> Self {
        Self { element_type: PrimitiveType::BUFFER, tuple_shapes: vec![content], ..Self::default() }
    }

    /// The same shape with a layout.
    #[must_use]
    pub fn with_layout(mut self, layout: Layout) -> Self {
        self.layout = Some(layout);
        self
    }

    /// The same shape with other dynamic dimensions: the sizes are then bounds. Missing flags mean
    /// static.
    #[must_use]
    pub fn with_dynamic_dimensions(mut self, is_dynamic: impl Into<Vec<bool>>) -> Self {
        self.is_dynamic_dimension = is_dynamic.into();
        self
    }

    /// The element type; [`PrimitiveType::TUPLE`] for a tuple.
    pub const fn element_type(&self) -> PrimitiveType {
        self.element_type
    }

    /// The sizes of the dimensions in elements.
    pub fn dimensions(&self) -> &[i64] {
        &self.dimensions
    }

    /// Which dimensions are dynamic, as the message says it: may be shorter than the dimensions.
    pub fn is_dynamic_dimension(&self) -> &[bool] {
        &self.is_dynamic_dimension
    }

    /// The shapes of a tuple; the content of a buffer.
    pub fn tuple_shapes(&self) -> &[Self] {
        &self.tuple_shapes
    }

    /// The layout, if the shape has one.
    pub const fn layout(&self) -> Option<&Layout> {
        self.layout.as_ref()
    }

    /// The shape as a message.
    pub fn to_proto(&self) -> xla::ShapeProto {
        xla::ShapeProto {
            element_type: self.element_type.number(),
            dimensions: self.dimensions.clone(),
            tuple_shapes: self.tuple_shapes.iter().map(Self::to_proto).collect(),
            layout: self.layout.as_ref().map(|layout| Box::new(layout.to_proto())),
            is_dynamic_dimension: self.is_dynamic_dimension.clone(),
        }
    }

    /// The shape of a message.
    ///
    /// # Errors
    /// As [`Layout::from_proto`]; in strict mode also for negative dimensions and for as many flags
    /// as there are not dimensions.
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
