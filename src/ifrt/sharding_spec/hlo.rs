//! Specs as XLA describes shardings.

use std::fmt;

use super::{DeviceList, HloSharding, IfrtError, MemoryKind, Sharding, count::require_count};
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, Registered,
        fields::{Fields, Joined},
        serde_forms::deserialize_checked,
        wire_format::{Encoded, WireFormat, described_by_bytes},
    },
    ifrt::{Shape, sharding::tile_shape, xla::OpSharding},
    proto::xla::ifrt::HloShardingSpecProto,
    version::SerDesVersion,
    wire::BackwardWriter,
};

const FORMATS: Formats = Formats::of("HloShardingSpec");

/// A sharding of XLA without devices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize))]
pub struct HloShardingSpec {
    shards: i32,
    op_sharding: OpSharding,
}

deserialize_checked!(HloShardingSpec { shards: i32, op_sharding: OpSharding });

impl HloShardingSpec {
    /// Creates the sharding `op_sharding` over `shards` shards.
    ///
    /// # Errors
    /// [`IfrtError::Invalid`] if the number is negative, or if it differs from the number of tiles.
    pub fn new(shards: i32, op_sharding: OpSharding) -> Result<Self, IfrtError> {
        require_count(shards)?;
        match op_sharding.device_count() {
            Some(tiles) if tiles != i64::from(shards) => Err(IfrtError::Invalid(format!(
                "the sharding {op_sharding} has {tiles} tiles; expected {shards}, one for each shard"
            ))),
            _ => Ok(Self { shards, op_sharding }),
        }
    }

    /// Returns the sharding of XLA.
    pub const fn op_sharding(&self) -> &OpSharding {
        &self.op_sharding
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
    /// [`IfrtError::RankMismatch`] if the ranks of array and sharding differ.
    pub fn shard_shape(&self, shape: &Shape) -> Result<Shape, IfrtError> {
        match self.op_sharding.shards(shape.rank())? {
            None => Ok(shape.clone()),
            Some(tiles) => Shape::new(tile_shape(shape, &tiles)),
        }
    }

    pub(super) fn on(&self, devices: DeviceList, kind: MemoryKind) -> Result<Sharding, IfrtError> {
        Ok(HloSharding::new(devices, kind, self.op_sharding.clone())?.into())
    }
}

impl fmt::Display for HloShardingSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HloShardingSpec(num_shards: {}, {})", self.shards, self.op_sharding)
    }
}

impl Registered for HloShardingSpec {
    const TYPE_NAME: &'static str = "xla::ifrt::HloShardingSpec";
}

described_by_bytes! {
    /// Writes format 0 at version 5 and above.
    ToProto,
    /// Accepts format 0. The number of shards must be the number of tiles.
    FromProto for HloShardingSpec as HloShardingSpecProto
}

impl WireFormat for HloShardingSpec {
    const NAME: &'static str = "HloShardingSpec";

    fn can_write(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        FORMATS.for_request(version).map(drop)
    }

    fn write(&self, version: SerDesVersion, out: &mut BackwardWriter) -> Result<(), EncodeError> {
        out.nested(3, |out| self.op_sharding.write(out));
        out.number(2, self.shards);
        out.number(1, FORMATS.for_request(version)?);
        Ok(())
    }

    fn read(message: Encoded<'_>, _: &DeserializeOptions) -> Result<Self, DecodeError> {
        let (mut op_sharding, mut shards, mut recorded) = (Joined::default(), 0, 0);
        let mut fields = Fields::new(Self::NAME, message.bytes());
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => recorded = value.number()?,
                2 => shards = value.number()?,
                3 => op_sharding.add(value.bytes()?),
                _ => {}
            }
        }
        FORMATS.check_recorded(recorded)?;
        let op_sharding = OpSharding::read(Self::NAME, op_sharding.bytes())?;
        Self::new(shards, op_sharding).map_err(|error| error.decoding(Self::NAME))
    }
}
