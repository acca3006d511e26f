//! Specs of equal shards, for one shape of the array.

use std::fmt;

use super::{
    ConcreteEvenSharding, DeviceList, IfrtError, MemoryKind, Shape, Sharding, count::require_count,
};
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, Registered,
        fields::{Fields, Joined},
        wire_format::{Encoded, WireFormat, described_by_bytes},
    },
    ifrt::sharding::check_even,
    proto::serdes::ifrt::ConcreteEvenShardingSpecProto,
    version::SerDesVersion,
    wire::BackwardWriter,
};

const FORMATS: Formats = Formats::of("ConcreteEvenShardingSpec");

/// A spec of shards of equal shape, for one shape of the array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ConcreteEvenShardingSpec {
    shards: i32,
    shape: Shape,
    shard_shape: Shape,
    is_fully_replicated: bool,
}

impl ConcreteEvenShardingSpec {
    /// Creates the spec of an array of `shape` in `shards` shards of `shard_shape`.
    ///
    /// # Errors
    /// [`IfrtError`] if the number is negative, if the shapes differ in rank, or if every shard is
    /// the whole array and `shard_shape` differs from `shape`.
    pub fn new(
        shards: i32,
        shape: Shape,
        shard_shape: Shape,
        is_fully_replicated: bool,
    ) -> Result<Self, IfrtError> {
        require_count(shards)?;
        check_even(&shape, &shard_shape, is_fully_replicated)?;
        Ok(Self { shards, shape, shard_shape, is_fully_replicated })
    }

    pub(in crate::ifrt) const fn new_lenient(
        shards: i32,
        shape: Shape,
        shard_shape: Shape,
        is_fully_replicated: bool,
    ) -> Self {
        Self { shards, shape, shard_shape, is_fully_replicated }
    }

    /// Returns the number of shards.
    ///
    /// # Errors
    /// None.
    pub const fn shard_count(&self) -> Result<i32, IfrtError> {
        Ok(self.shards)
    }

    /// Returns the shape of a shard.
    ///
    /// # Errors
    /// [`IfrtError::ShapeMismatch`] if `shape` is not the one that the spec describes.
    pub fn shard_shape(&self, shape: &Shape) -> Result<Shape, IfrtError> {
        if *shape != self.shape {
            return Err(IfrtError::shape_mismatch(shape, &self.shape));
        }
        Ok(self.shard_shape.clone())
    }

    pub(super) fn on(&self, devices: DeviceList, kind: MemoryKind) -> Result<Sharding, IfrtError> {
        let Self { shape, shard_shape, is_fully_replicated, .. } = self.clone();
        let sharding = ConcreteEvenSharding::new_lenient(
            devices,
            kind,
            shape,
            shard_shape,
            is_fully_replicated,
        );
        Ok(sharding.into())
    }
}

impl fmt::Display for ConcreteEvenShardingSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { shards, shape, shard_shape, is_fully_replicated } = self;
        write!(
            f,
            "ConcreteEvenShardingSpec(num_shards: {shards}, shape: {shape}, shard_shape: {shard_shape}, \
             is_fully_replicated: {is_fully_replicated})"
        )
    }
}

impl Registered for ConcreteEvenShardingSpec {
    const TYPE_NAME: &'static str = "xla::ifrt::ConcreteEvenShardingSpec";
}

described_by_bytes! {
    /// Writes format 0 at version 5 and above.
    ToProto,
    /// Accepts format 0. The agreement of the shapes is checked in strict mode only.
    FromProto for ConcreteEvenShardingSpec as ConcreteEvenShardingSpecProto
}

impl WireFormat for ConcreteEvenShardingSpec {
    const NAME: &'static str = "ConcreteEvenShardingSpec";

    fn can_write(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        self.shape.can_write(version)?;
        self.shard_shape.can_write(version)?;
        FORMATS.for_request(version).map(drop)
    }

    fn write(&self, version: SerDesVersion, out: &mut BackwardWriter) -> Result<(), EncodeError> {
        out.number(5, i32::from(self.is_fully_replicated));
        out.message(4, |out| self.shard_shape.write(version, out))?;
        out.message(3, |out| self.shape.write(version, out))?;
        out.number(2, self.shards);
        out.number(1, FORMATS.for_request(version)?);
        Ok(())
    }

    fn read(message: Encoded<'_>, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        let (mut shape, mut shard_shape) = <(Joined, Joined)>::default();
        let (mut shards, mut is_fully_replicated, mut recorded) = (0, false, 0);
        let mut fields = Fields::new(Self::NAME, message.bytes());
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => recorded = value.number()?,
                2 => shards = value.number()?,
                3 => shape.add(value.bytes()?),
                4 => shard_shape.add(value.bytes()?),
                5 => is_fully_replicated = value.truth()?,
                _ => {}
            }
        }
        FORMATS.check_recorded(recorded)?;
        require_count(shards).map_err(|error| error.decoding(Self::NAME))?;
        let shape = Shape::read(message.part(shape.bytes()), options)?;
        let shard_shape = Shape::read(message.part(shard_shape.bytes()), options)?;
        if options.is_strict() {
            check_even(&shape, &shard_shape, is_fully_replicated)
                .map_err(|error| error.decoding(Self::NAME))?;
        }
        Ok(Self { shards, shape, shard_shape, is_fully_replicated })
    }
}
