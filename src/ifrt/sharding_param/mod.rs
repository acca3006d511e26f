//! The mapping of array dimensions onto the axes of a mesh of devices.

mod text;

use std::{collections::HashSet, fmt};

use smallvec::SmallVec;

use super::{
    IfrtError, Index, IndexDomain, Shape,
    sharding::{DEFAULT_ANSWER_BYTES, require_domains},
};
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

/// A value without unreduced axes is written in format 0 at every version. Number 2, which is only read, is the format of number 1.
const FORMATS: Formats = Formats::of("ShardingParam").negative_passes().older_where_it_will_do();

/// The format that has unreduced axes.
const WITH_UNREDUCED_AXES: i32 = FORMATS.number(1);

/// An axis of a mesh.
struct Axis {
    /// The number of devices along it.
    size: i32,
    /// From one device to the next along it, in logical numbers.
    stride: i32,
}

/// How an array lies on a verified mesh.
struct Tiles {
    axes: SmallVec<[Axis; 4]>,
    devices: i32,
    /// The number of devices that hold the same shard.
    replicas: i32,
    shard_shape: Shape,
}

/// How many shards each dimension of an array has, and how these lie on the axes of a mesh of devices.
///
/// Upstream does not verify one when it reads it, so that it may hold anything: [`verify`](Self::verify) says. All
/// questions are answered with an error then.
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
    /// `dim_shards` shards a dimension, over a mesh with axes of `axis_sizes` devices that are taken in the order of
    /// `permutation`.
    ///
    /// # Errors
    /// [`IfrtError`] that names what [`verify`](Self::verify) does not accept.
    pub fn new(
        dim_shards: impl Into<Vec<i64>>,
        permutation: impl Into<Vec<i32>>,
        axis_sizes: impl Into<Vec<i32>>,
    ) -> Result<Self, IfrtError> {
        let param = Self::new_lenient(dim_shards, permutation, axis_sizes, []);
        param.verify(Validation::Strict)?;
        Ok(param)
    }

    /// The same with axes along which partial results are not yet summed up.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_unreduced_axes(mut self, axes: impl Into<Vec<i32>>) -> Result<Self, IfrtError> {
        self.unreduced_axes = axes.into();
        self.verify(Validation::Strict)?;
        Ok(self)
    }

    /// As [`new`](Self::new) and [`with_unreduced_axes`](Self::with_unreduced_axes) without a check: what upstream reads.
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

    /// The number of shards of each dimension.
    pub fn dim_shards(&self) -> &[i64] {
        &self.dim_shards
    }

    /// The axes of the mesh, the one first that is taken first.
    pub fn permutation(&self) -> &[i32] {
        &self.permutation
    }

    /// The number of devices along each axis of the mesh.
    pub fn axis_sizes(&self) -> &[i32] {
        &self.axis_sizes
    }

    /// The axes along which partial results are not yet summed up.
    pub fn unreduced_axes(&self) -> &[i32] {
        &self.unreduced_axes
    }

    /// Whether every device holds the whole array.
    pub fn is_fully_replicated(&self) -> bool {
        self.dim_shards.iter().all(|shards| *shards == 1)
    }

    /// Checks that the parts make sense together, in the order of upstream.
    ///
    /// In strict mode also that all sizes are positive and that their products fit 32 bits, as newer builds do.
    ///
    /// # Errors
    /// [`IfrtError::Invalid`], which names the values found.
    pub fn verify(&self, validation: Validation) -> Result<(), IfrtError> {
        let axes = self.axis_sizes.len();
        if self.permutation.len() != axes || axes == 0 {
            return Err(IfrtError::Invalid(format!(
                "the permutation has {} axes and the mesh has {axes}; expected the same number, at least 1",
                self.permutation.len()
            )));
        }
        let mut seen = HashSet::new();
        if !self.permutation.iter().all(|axis| seen.insert(*axis)) {
            return Err(IfrtError::Invalid(format!(
                "the permutation {:?} names an axis twice; expected each axis once",
                self.permutation
            )));
        }
        for axis in &self.permutation {
            if self.axis_size(*axis).is_none() {
                return Err(IfrtError::Invalid(format!(
                    "the permutation names the axis {axis}, which a mesh of {} does not have; expected 0 to {}",
                    text::Crossed(&self.axis_sizes),
                    axes - 1
                )));
            }
        }
        let mut seen = HashSet::new();
        for axis in &self.unreduced_axes {
            if !seen.insert(*axis) {
                return Err(IfrtError::Invalid(format!(
                    "the unreduced axis {axis} is listed twice; expected each of the {axes} axes at most once"
                )));
            }
            if self.axis_size(*axis).is_none() {
                return Err(IfrtError::Invalid(format!(
                    "the unreduced axis {axis} is not an axis of the mesh; expected 0 to {}",
                    axes - 1
                )));
            }
        }
        if validation == Validation::Strict {
            self.verify_sizes()?;
        }
        self.verify_assignment()
    }

    /// What newer builds check in addition.
    fn verify_sizes(&self) -> Result<(), IfrtError> {
        if let Some(shards) = self.dim_shards.iter().find(|shards| **shards < 1) {
            return Err(IfrtError::Invalid(format!(
                "a dimension has {shards} shards; expected 1 or more"
            )));
        }
        if let Some(size) = self.axis_sizes.iter().find(|size| **size < 1) {
            return Err(IfrtError::Invalid(format!(
                "an axis of the mesh has {size} devices; expected 1 or more"
            )));
        }
        self.device_count()?;
        self.shard_count()?;
        Ok(())
    }

    /// Lays the dimensions on the axes: each takes as many whole axes, or parts of one, as it has shards.
    fn verify_assignment(&self) -> Result<(), IfrtError> {
        let shards = |dimension: usize| self.dim_shards.get(dimension).copied();
        let failure = || {
            IfrtError::Invalid(format!(
                "the shards {} do not fit a mesh of {}; expected shards whose products divide those of the axes, in \
                 the order of the permutation {:?}",
                text::Crossed(&self.dim_shards),
                text::Crossed(&self.axis_sizes),
                self.permutation
            ))
        };
        let mut dimension = 0;
        let mut cumulated: i64 = 1;
        for axis in &self.permutation {
            while shards(dimension) == Some(1) {
                dimension += 1;
            }
            if dimension == self.dim_shards.len() {
                break;
            }
            let size = self.axis_size(*axis).map_or(0, i64::from);
            cumulated = cumulated.checked_mul(size).ok_or_else(failure)?;
            while let Some(shards) = shards(dimension) {
                // A remainder by zero or a quotient that overflows is no fit either.
                if cumulated.checked_rem(shards).ok_or_else(failure)? != 0 {
                    break;
                }
                cumulated = cumulated.checked_div(shards).ok_or_else(failure)?;
                dimension += 1;
            }
        }
        while shards(dimension) == Some(1) {
            dimension += 1;
        }
        if dimension == self.dim_shards.len() { Ok(()) } else { Err(failure()) }
    }

    fn axis_size(&self, axis: i32) -> Option<i32> {
        usize::try_from(axis).ok().and_then(|axis| self.axis_sizes.get(axis)).copied()
    }

    /// The number of devices: the product of the sizes of the axes.
    ///
    /// # Errors
    /// [`IfrtError::Overflow`] if it does not fit 32 bits.
    pub fn device_count(&self) -> Result<i32, IfrtError> {
        let mut sizes = self.axis_sizes.iter();
        sizes
            .try_fold(1_i32, |product, size| product.checked_mul(*size))
            .ok_or(IfrtError::Overflow { what: "the number of devices of the mesh", bits: 32 })
    }

    /// The number of different shards: the product over the dimensions.
    ///
    /// # Errors
    /// [`IfrtError::Overflow`] if it does not fit 32 bits.
    pub fn shard_count(&self) -> Result<i32, IfrtError> {
        let mut shards = self.dim_shards.iter();
        shards
            .try_fold(1_i32, |product, shards| product.checked_mul(i32::try_from(*shards).ok()?))
            .ok_or(IfrtError::Overflow { what: "the number of shards", bits: 32 })
    }

    /// The logical numbers of the devices, in the order in which they hold the shards.
    ///
    /// Axis 0 of the mesh is the most minor one; the first axis of the permutation varies fastest.
    ///
    /// # Errors
    /// As [`verify`](Self::verify) in strict mode.
    pub fn device_order(&self) -> Result<impl Iterator<Item = i32> + use<>, IfrtError> {
        self.verify(Validation::Strict)?;
        let (axes, devices) = self.axes();
        Ok((0..devices).map(move |position| {
            let mut rest = position;
            let mut device = 0;
            for Axis { size, stride } in &axes {
                device += rest % size * stride;
                rest /= size;
            }
            device
        }))
    }

    /// The axes of a verified mesh that have several devices, the fastest first, and the number of all devices.
    fn axes(&self) -> (SmallVec<[Axis; 4]>, i32) {
        let mut devices = 1_i32;
        let mut strides = Vec::with_capacity(self.axis_sizes.len());
        for size in &self.axis_sizes {
            strides.push(devices);
            // Verified: the product of all sizes fits.
            devices = devices.saturating_mul(*size);
        }
        let axes = self.permutation.iter().filter_map(|axis| {
            let index = usize::try_from(*axis).ok()?;
            let axis = Axis { size: *self.axis_sizes.get(index)?, stride: *strides.get(index)? };
            (axis.size > 1).then_some(axis)
        });
        (axes.collect(), devices)
    }

    /// The shape of a shard of an array of `shape`.
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

    /// Which part of an array of `shape` each device holds, by its logical number.
    ///
    /// # Errors
    /// As [`verify`](Self::verify) in strict mode and [`shard_shape`](Self::shard_shape); [`IfrtError::LimitExceeded`] if the answer
    /// would take more than [`DEFAULT_ANSWER_BYTES`](super::sharding::DEFAULT_ANSWER_BYTES).
    pub fn index_domains(&self, shape: &Shape) -> Result<Vec<IndexDomain>, IfrtError> {
        self.index_domains_within(shape, DEFAULT_ANSWER_BYTES)
    }

    /// The same, in at most `limit` bytes of memory. A mesh of any size can be asked about single devices:
    /// [`index_domain_of`](Self::index_domain_of).
    ///
    /// # Errors
    /// As [`index_domains`](Self::index_domains).
    pub fn index_domains_within(
        &self,
        shape: &Shape,
        limit: u64,
    ) -> Result<Vec<IndexDomain>, IfrtError> {
        let tiles = self.tiles(shape)?;
        require_domains(tiles.devices.unsigned_abs().into(), shape.rank(), limit)?;
        (0..tiles.devices).map(|device| self.domain_of(&tiles, device)).collect()
    }

    /// Which part of an array of `shape` the device of this logical number holds.
    ///
    /// ```
    /// use serdes::ifrt::{ShardingParam, Shape};
    ///
    /// let huge: ShardingParam = "32768 to [0,1] on 32768x32768".parse()?;
    /// let domain = huge.index_domain_of((1 << 30) - 1, &Shape::new([65536])?)?;
    /// assert_eq!(domain.to_string(), "[65534]+[2]");
    /// # Ok::<(), serdes::ifrt::IfrtError>(())
    /// ```
    ///
    /// # Errors
    /// As [`verify`](Self::verify) in strict mode and [`shard_shape`](Self::shard_shape); [`IfrtError::Invalid`] if there is no such
    /// device.
    pub fn index_domain_of(&self, device: i32, shape: &Shape) -> Result<IndexDomain, IfrtError> {
        let tiles = self.tiles(shape)?;
        if !(0..tiles.devices).contains(&device) {
            return Err(IfrtError::Invalid(format!(
                "the mesh has no device {device}; expected 0 to {}",
                tiles.devices - 1
            )));
        }
        self.domain_of(&tiles, device)
    }

    fn tiles(&self, shape: &Shape) -> Result<Tiles, IfrtError> {
        self.verify(Validation::Strict)?;
        let shard_shape = self.shard_shape(shape)?;
        let (axes, devices) = self.axes();
        // Verified: the shards divide the devices among them.
        let replicas = (devices / self.shard_count()?.max(1)).max(1);
        Ok(Tiles { axes, devices, replicas, shard_shape })
    }

    fn domain_of(&self, tiles: &Tiles, device: i32) -> Result<IndexDomain, IfrtError> {
        // The place of the device in the order: its index along each axis, the first of which varies fastest.
        let (mut position, mut product) = (0, 1_i32);
        for Axis { size, stride } in &tiles.axes {
            position += device / stride % size * product;
            product = product.saturating_mul(*size);
        }
        let origin = self.origin(position / tiles.replicas, &tiles.shard_shape);
        IndexDomain::new(origin, tiles.shard_shape.clone())
    }

    /// Where the tile with this number begins; tiles are numbered in row-major order.
    fn origin(&self, tile: i32, shard_shape: &Shape) -> Index {
        let mut rest = i64::from(tile);
        let mut elements: SmallVec<[i64; 8]> = self
            .dim_shards
            .iter()
            .zip(shard_shape.dims())
            .rev()
            .map(|(shards, size)| {
                let index = rest % shards;
                rest /= shards;
                index * size
            })
            .collect();
        elements.reverse();
        Index::new(elements)
    }
}

/// `2x1 to [0,1] on 2x3`, then ` unreduced [0,1]` if there are such axes.
impl fmt::Display for ShardingParam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        text::write(self, f)
    }
}

impl std::str::FromStr for ShardingParam {
    type Err = IfrtError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let param = text::parse(text)?;
        param.verify(Validation::Strict)?;
        Ok(param)
    }
}

described_by_bytes! {
    /// Records format 1 if there are unreduced axes, else 0: a value without them has the same bytes at every version.
    ToProto,
    /// Accepts 0, 1, 2 (read as 1) and negative numbers. What it says is verified in strict mode only.
    ///
    /// At format 0 unreduced axes are ignored, as upstream does; strict mode refuses them.
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
