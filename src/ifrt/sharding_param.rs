//! The mapping of array dimensions onto the axes of a mesh of devices.

mod domains;
mod text;
mod verify;

use super::{IfrtError, Shape};
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, Validation,
        fields::Fields,
        wire_format::{Encoded, WireFormat, described_by_bytes},
    },
    proto::xla::ifrt::ShardingParamProto,
    version::SerDesVersion,
    wire::BackwardWriter,
};

/// A value without unreduced axes is written in format 0 at every version. Number 2, which is only
/// read, is the format of number 1.
const FORMATS: Formats = Formats::of("ShardingParam").negative_passes().older_where_it_will_do();

/// The format that has unreduced axes.
const WITH_UNREDUCED_AXES: i32 = FORMATS.number(1);

/// The number of shards in each dimension of an array, and their mapping to the axes of a mesh of
/// devices.
///
/// Upstream does not verify the parameters when it reads them, so they may be inconsistent:
/// [`verify`](Self::verify) checks them. All other methods return an error for inconsistent
/// parameters.
///
/// ```
/// use serdes::ifrt::{ShardingParam, Shape};
///
/// let param: ShardingParam = "2x1x3 to [1,0] on 3x2".parse()?;
/// assert_eq!(param.device_order()?.collect::<Vec<_>>(), [0, 3, 1, 4, 2, 5]);
/// assert_eq!(param.shard_shape(&Shape::new([8, 5, 9])?)?, Shape::new([4, 5, 3])?);
/// # Ok::<(), serdes::ifrt::IfrtError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ShardingParam {
    dim_shards: Vec<i64>,
    permutation: Vec<i32>,
    axis_sizes: Vec<i32>,
    unreduced_axes: Vec<i32>,
}

impl ShardingParam {
    /// Creates the parameters of `dim_shards` shards per dimension, over a mesh with axes of
    /// `axis_sizes` devices that are used in the order of `permutation`.
    ///
    /// # Errors
    /// [`IfrtError`] that names the values that [`verify`](Self::verify) refuses.
    pub fn new(
        dim_shards: impl Into<Vec<i64>>,
        permutation: impl Into<Vec<i32>>,
        axis_sizes: impl Into<Vec<i32>>,
    ) -> Result<Self, IfrtError> {
        let param = Self::new_lenient(dim_shards, permutation, axis_sizes, []);
        param.verify(Validation::Strict)?;
        Ok(param)
    }

    /// Sets the axes along which partial results are not summed yet.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_unreduced_axes(mut self, axes: impl Into<Vec<i32>>) -> Result<Self, IfrtError> {
        self.unreduced_axes = axes.into();
        self.verify(Validation::Strict)?;
        Ok(self)
    }

    /// Like [`new`](Self::new) and [`with_unreduced_axes`](Self::with_unreduced_axes) without
    /// checks, like upstream's reader.
    pub fn new_lenient(
        dim_shards: impl Into<Vec<i64>>,
        permutation: impl Into<Vec<i32>>,
        axis_sizes: impl Into<Vec<i32>>,
        unreduced_axes: impl Into<Vec<i32>>,
    ) -> Self {
        Self {
            dim_shards: dim_shards.into(),
            permutation: permutation.into(),
            axis_sizes: axis_sizes.into(),
            unreduced_axes: unreduced_axes.into(),
        }
    }

    /// Returns the number of shards of each dimension.
    pub fn dim_shards(&self) -> &[i64] {
        &self.dim_shards
    }

    /// Returns the axes of the mesh in the order in which they are used.
    pub fn permutation(&self) -> &[i32] {
        &self.permutation
    }

    /// Returns the number of devices along each axis of the mesh.
    pub fn axis_sizes(&self) -> &[i32] {
        &self.axis_sizes
    }

    /// Returns the axes along which partial results are not summed yet.
    pub fn unreduced_axes(&self) -> &[i32] {
        &self.unreduced_axes
    }

    /// Returns true if every device holds the whole array.
    pub fn is_fully_replicated(&self) -> bool {
        self.dim_shards.iter().all(|shards| *shards == 1)
    }

    /// Returns the number of devices: the product of the sizes of the axes.
    ///
    /// # Errors
    /// [`IfrtError::Overflow`] if it does not fit 32 bits.
    pub fn device_count(&self) -> Result<i32, IfrtError> {
        let mut sizes = self.axis_sizes.iter();
        sizes
            .try_fold(1_i32, |product, size| product.checked_mul(*size))
            .ok_or(IfrtError::Overflow { what: "the number of devices of the mesh", bits: 32 })
    }

    /// Returns the number of different shards: the product over the dimensions.
    ///
    /// # Errors
    /// [`IfrtError::Overflow`] if it does not fit 32 bits.
    pub fn shard_count(&self) -> Result<i32, IfrtError> {
        let mut shards = self.dim_shards.iter();
        shards
            .try_fold(1_i32, |product, shards| product.checked_mul(i32::try_from(*shards).ok()?))
            .ok_or(IfrtError::Overflow { what: "the number of shards", bits: 32 })
    }

    /// Returns the shape of a shard of an array of `shape`.
    ///
    /// # Errors
    /// [`IfrtError::RankMismatch`] or [`IfrtError::NotDivisible`].
    pub fn shard_shape(&self, shape: &Shape) -> Result<Shape, IfrtError> {
        if shape.rank() != self.dim_shards.len() {
            return Err(IfrtError::RankMismatch {
                what: "the shape",
                found: shape.rank(),
                other: "the sharding",
                expected: self.dim_shards.len(),
            });
        }
        let mut dims = Vec::with_capacity(shape.rank());
        for (index, (dimension, shards)) in shape.dims().iter().zip(&self.dim_shards).enumerate() {
            let (dimension, shards) = (*dimension, *shards);
            match (dimension.checked_rem(shards), dimension.checked_div(shards)) {
                (Some(0), Some(part)) if shards > 0 => dims.push(part),
                _ => return Err(IfrtError::NotDivisible { index, dimension, shards }),
            }
        }
        Shape::new(dims)
    }
}

described_by_bytes! {
    /// Records format 1 if there are unreduced axes, else 0: a value without them has the same
    /// bytes at every version.
    ToProto,
    /// Accepts 0, 1, 2 (read as 1) and negative numbers. The parameters are verified in strict mode
    /// only.
    ///
    /// At format 0 unreduced axes are ignored, as in upstream; strict mode refuses them.
    FromProto for ShardingParam as ShardingParamProto
}

impl WireFormat for ShardingParam {
    const NAME: &'static str = "ShardingParam";

    fn can_write(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        let format = FORMATS.for_request(version)?;
        if format < WITH_UNREDUCED_AXES && !self.unreduced_axes.is_empty() {
            return Err(EncodeError::unsupported_at_version(
                Self::NAME,
                "unreduced_axes",
                version,
                WITH_UNREDUCED_AXES,
            ));
        }
        Ok(())
    }

    fn write(&self, version: SerDesVersion, out: &mut BackwardWriter) -> Result<(), EncodeError> {
        self.can_write(version)?;
        let newest = FORMATS.for_request(version)?;
        out.packed(5, &self.unreduced_axes);
        out.number(4, if self.unreduced_axes.is_empty() { 0 } else { newest });
        out.packed(3, &self.axis_sizes);
        out.packed(2, &self.permutation);
        out.packed(1, &self.dim_shards);
        Ok(())
    }

    fn read(message: Encoded<'_>, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        let mut param = Self::new_lenient([], [], [], []);
        let mut recorded = 0;
        let mut fields = Fields::new(Self::NAME, message.bytes());
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => value.many(&mut param.dim_shards)?,
                2 => value.many(&mut param.permutation)?,
                3 => value.many(&mut param.axis_sizes)?,
                4 => recorded = value.number()?,
                5 => value.many(&mut param.unreduced_axes)?,
                _ => {}
            }
        }
        let format = FORMATS.check_recorded(recorded)?;
        if format < WITH_UNREDUCED_AXES && !param.unreduced_axes.is_empty() {
            if options.is_strict() {
                let found = &param.unreduced_axes;
                return Err(DecodeError::invalid_value(
                    Self::NAME,
                    format!("format {format} has no unreduced_axes, but found {found:?}"),
                ));
            }
            param.unreduced_axes = Vec::new();
        }
        if options.is_strict() {
            param.verify(Validation::Strict).map_err(|error| error.decoding(Self::NAME))?;
        }
        Ok(param)
    }
}

#[cfg(test)]
mod tests;
