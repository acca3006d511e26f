use std::fmt;

use super::{DeviceList, HloSharding, IfrtError, MemoryKind, Sharding, simple::require_count};
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, FromProto, Registered, ToProto,
    },
    ifrt::{Shape, sharding::tile_shape, xla::OpSharding},
    proto::xla::ifrt::HloShardingSpecProto,
    version::SerDesVersion,
};

const FORMATS: Formats = Formats::of("HloShardingSpec");

/// A sharding of XLA without devices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "Unchecked"))]
pub struct HloShardingSpec {
    shards: i32,
    op_sharding: OpSharding,
}

#[cfg(feature = "serde")]
#[derive(serde::Deserialize)]
struct Unchecked {
    shards: i32,
    op_sharding: OpSharding,
}

#[cfg(feature = "serde")]
impl TryFrom<Unchecked> for HloShardingSpec {
    type Error = IfrtError;

    fn try_from(unchecked: Unchecked) -> Result<Self, Self::Error> {
        Self::new(unchecked.shards, unchecked.op_sharding)
    }
}

impl HloShardingSpec {
    /// `op_sharding` over `shards` shards.
    ///
    /// # Errors
    /// [`IfrtError::Invalid`] if the number is negative, or if the sharding has another number of tiles.
    pub fn new(shards: i32, op_sharding: OpSharding) -> Result<Self, IfrtError> {
        require_count(shards)?;
        match op_sharding.device_count() {
            Some(tiles) if tiles != i64::from(shards) => Err(IfrtError::Invalid(format!(
                "the sharding {op_sharding} has {tiles} tiles; expected {shards}, one for each shard"
            ))),
            _ => Ok(Self { shards, op_sharding }),
        }
    }

    /// The sharding of XLA.
    pub const fn op_sharding(&self) -> &OpSharding {
        &self.op_sharding
    }

    /// The number of shards.
    ///
    /// # Errors
    /// None.
    pub const fn shard_count(&self) -> Result<i32, IfrtError> {
        Ok(self.shards)
    }

    /// The shape of a shard.
    ///
    /// # Errors
    /// [`IfrtError::RankMismatch`] if the array has another rank than the sharding.
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

/// Writes format 0 from version 5 on.
impl ToProto for HloShardingSpec {
    type Proto = HloShardingSpecProto;

    fn to_proto(&self, version: SerDesVersion) -> Result<Self::Proto, EncodeError> {
        Ok(HloShardingSpecProto {
            version_number: FORMATS.for_request(version)?,
            num_shards: self.shards,
            xla_op_sharding: Some(self.op_sharding.proto().clone()),
        })
    }

    fn can_serialize_at(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        FORMATS.for_request(version).map(drop)
    }
}

/// Accepts format 0. There must be as many shards as the sharding has tiles.
impl FromProto for HloShardingSpec {
    type Proto = HloShardingSpecProto;
    const NAME: &'static str = "HloShardingSpec";

    fn from_proto(proto: &Self::Proto, _: &DeserializeOptions) -> Result<Self, DecodeError> {
        FORMATS.check_recorded(proto.version_number)?;
        let op_sharding = proto.xla_op_sharding.clone().unwrap_or_default();
        let op_sharding = OpSharding::from_proto(Self::NAME, op_sharding)?;
        Self::new(proto.num_shards, op_sharding).map_err(|error| error.decoding(Self::NAME))
    }
}
