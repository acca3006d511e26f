//! Shardings without devices: the cutting of an array, and the number of shards.
//!
//! Builds know them since version 5, and below that they are refused. Real builds write only one of
//! the six kinds, `HloShardingSpec` (jaxlib 0.12.0.1 registers no name of the others); the messages
//! of the others are in our own package, and follow upstream's newest sources.

mod concrete;
mod concrete_even;
mod count;
mod hlo;
mod opaque;
mod param;
mod single_device;

pub use concrete::ConcreteShardingSpec;
pub use concrete_even::ConcreteEvenShardingSpec;
use count::count;
pub use hlo::HloShardingSpec;
pub use opaque::OpaqueShardingSpec;
pub use param::ShardingParamShardingSpec;
pub use single_device::SingleDeviceShardingSpec;

use super::{
    ConcreteEvenSharding, ConcreteSharding, DeviceList, HloSharding, IfrtError, MemoryKind,
    OpaqueSharding, Shape, Sharding, ShardingParamSharding, SingleDeviceSharding, kinds::kinds,
};
use crate::proto::xla::ifrt as wire;

kinds! {
    ($) by for_each_kind
    /// A sharding spec of any kind.
    enum ShardingSpec {
        /// A single shard.
        SingleDevice(SingleDeviceShardingSpec),
        /// Only the number of shards is known.
        Opaque(OpaqueShardingSpec),
        /// The shape of every shard is listed.
        Concrete(ConcreteShardingSpec),
        /// Equal shards of one array shape.
        ConcreteEven(ConcreteEvenShardingSpec),
        /// Dimensions mapped to the axes of a mesh.
        ShardingParam(ShardingParamShardingSpec),
        /// A sharding as XLA describes it.
        Hlo(HloShardingSpec),
    }
    /// The envelope has no version: the spec inside is written at the requested one.
    ToProto,
    /// The envelope has no version: the spec inside records its own. No options are needed.
    FromProto as wire::ShardingSpecProto
}

impl ShardingSpec {
    /// Returns the number of shards.
    ///
    /// # Errors
    /// [`IfrtError::Overflow`] if it does not fit 32 bits.
    pub fn shard_count(&self) -> Result<i32, IfrtError> {
        for_each_kind!(self, spec => spec.shard_count())
    }

    /// Returns the sharding of this spec on `devices`, one per shard.
    ///
    /// # Errors
    /// [`IfrtError`] if there are not as many devices as shards.
    pub fn on(&self, devices: DeviceList, memory_kind: MemoryKind) -> Result<Sharding, IfrtError> {
        let shards = self.shard_count()?;
        if usize::try_from(shards) != Ok(devices.len()) {
            return Err(IfrtError::CountMismatch {
                what: "devices",
                found: devices.len() as u64,
                other: "shards of the spec",
                expected: u64::try_from(shards).unwrap_or_default(),
            });
        }
        for_each_kind!(self, spec => spec.on(devices, memory_kind))
    }

    /// Returns the shape of a shard of an array of `shape`, if all shards have the same shape.
    ///
    /// # Errors
    /// [`IfrtError`] if the kind of spec does not know the shape of its shards, or not for this
    /// array.
    pub fn shard_shape(&self, shape: &Shape) -> Result<Shape, IfrtError> {
        for_each_kind!(self, spec => spec.shard_shape(shape))
    }
}

/// Removes the devices and the memory kind from a sharding.
impl TryFrom<&Sharding> for ShardingSpec {
    type Error = IfrtError;

    fn try_from(sharding: &Sharding) -> Result<Self, IfrtError> {
        let shards = count(sharding.devices().len())?;
        Ok(match sharding {
            Sharding::SingleDevice(_) => SingleDeviceShardingSpec.into(),
            Sharding::Opaque(_) => OpaqueShardingSpec::new(shards)?.into(),
            Sharding::Concrete(sharding) => {
                ConcreteShardingSpec::new(sharding.shapes().clone()).into()
            }
            Sharding::ConcreteEven(sharding) => ConcreteEvenShardingSpec::new_lenient(
                shards,
                sharding.shape().clone(),
                sharding.shard_shape(sharding.shape())?,
                sharding.is_fully_replicated(),
            )
            .into(),
            Sharding::ShardingParam(sharding) => {
                ShardingParamShardingSpec::new_lenient(sharding.param().clone()).into()
            }
            Sharding::Hlo(sharding) => {
                HloShardingSpec::new(shards, sharding.op_sharding().clone())?.into()
            }
            #[allow(
                unreachable_patterns,
                reason = "kinds to come have no spec until one is written"
            )]
            other => {
                return Err(IfrtError::NotKnown {
                    sharding: other.type_name(),
                    what: "spec",
                    remedy: "use a kind of sharding that has one, such as an HloSharding",
                });
            }
        })
    }
}

#[cfg(test)]
mod tests;
