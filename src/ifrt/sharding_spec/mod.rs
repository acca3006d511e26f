//! Shardings without devices: how an array is to be cut, and into how many shards.
//!
//! Builds know them from version 5 on, and below that they are refused. Of the six kinds real builds write `HloShardingSpec` alone (jaxlib
//! 0.12.0.1 registers no name of the others); the messages of the others are of our own package, after upstream's newest sources.

mod concrete;
mod hlo;
mod simple;

use std::fmt;

pub use concrete::{ConcreteEvenShardingSpec, ConcreteShardingSpec};
pub use hlo::HloShardingSpec;
pub use simple::{OpaqueShardingSpec, ShardingParamShardingSpec, SingleDeviceShardingSpec};

use super::{
    ConcreteEvenSharding, ConcreteSharding, DeviceList, HloSharding, IfrtError, MemoryKind,
    OpaqueSharding, Shape, Sharding, ShardingParamSharding, SingleDeviceSharding,
};
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, FromProto, Registered, Serialized, ToProto,
    },
    proto::xla::ifrt as wire,
    version::SerDesVersion,
};

/// A sharding spec of any kind.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[non_exhaustive]
pub enum ShardingSpec {
    /// A single shard.
    SingleDevice(SingleDeviceShardingSpec),
    /// Only the number of shards is known.
    Opaque(OpaqueShardingSpec),
    /// The shape of every shard is listed.
    Concrete(ConcreteShardingSpec),
    /// Equal shards of one array shape.
    ConcreteEven(ConcreteEvenShardingSpec),
    /// Dimensions on the axes of a mesh.
    ShardingParam(ShardingParamShardingSpec),
    /// In the form of XLA.
    Hlo(HloShardingSpec),
}

/// Runs `$body` with the spec inside `$self` as `$spec`, whatever its kind.
macro_rules! for_each_kind {
    ($self:expr, $spec:ident => $body:expr) => {
        match $self {
            ShardingSpec::SingleDevice($spec) => $body,
            ShardingSpec::Opaque($spec) => $body,
            ShardingSpec::Concrete($spec) => $body,
            ShardingSpec::ConcreteEven($spec) => $body,
            ShardingSpec::ShardingParam($spec) => $body,
            ShardingSpec::Hlo($spec) => $body,
        }
    };
}

/// Makes the conversion into a [`ShardingSpec`], and the reading of one by its type name.
macro_rules! kinds {
    ($($variant:ident($kind:ty)),* $(,)?) => {
        $(impl From<$kind> for ShardingSpec {
            fn from(spec: $kind) -> Self {
                Self::$variant(spec)
            }
        })*

        impl ShardingSpec {
            fn from_message(
                serialized: wire::Serialized,
                options: &DeserializeOptions,
            ) -> Result<Self, DecodeError> {
                match serialized.type_name.as_str() {
                    $(<$kind>::TYPE_NAME => {
                        <$kind>::from_bytes(serialized.data, options).map(Self::$variant)
                    })*
                    _ => Err(super::not_a("ShardingSpec", serialized.type_name)),
                }
            }
        }
    };
}

kinds! {
    SingleDevice(SingleDeviceShardingSpec),
    Opaque(OpaqueShardingSpec),
    Concrete(ConcreteShardingSpec),
    ConcreteEven(ConcreteEvenShardingSpec),
    ShardingParam(ShardingParamShardingSpec),
    Hlo(HloShardingSpec),
}

impl ShardingSpec {
    /// The number of shards.
    ///
    /// # Errors
    /// [`IfrtError::Overflow`] if it does not fit 32 bits.
    pub fn shard_count(&self) -> Result<i32, IfrtError> {
        for_each_kind!(self, spec => spec.shard_count())
    }

    /// The sharding by this spec on `devices`, one a shard.
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

    /// The shape of a shard of an array of `shape`, where all shards have the same.
    ///
    /// # Errors
    /// [`IfrtError`] if the kind of spec does not know it, or not for this shape.
    pub fn shard_shape(&self, shape: &Shape) -> Result<Shape, IfrtError> {
        for_each_kind!(self, spec => spec.shard_shape(shape))
    }

    /// The type name in the data.
    pub fn type_name(&self) -> &'static str {
        fn name_of<T: Registered>(_: &T) -> &'static str {
            T::TYPE_NAME
        }
        for_each_kind!(self, spec => name_of(spec))
    }

    /// The spec under the name of its type.
    ///
    /// # Errors
    /// As [`ToProto::to_proto`].
    pub fn to_serialized(&self, version: SerDesVersion) -> Result<Serialized, EncodeError> {
        for_each_kind!(self, spec => Serialized::of(spec, version))
    }

    /// The spec of data under the name of its type.
    ///
    /// # Errors
    /// As [`FromProto::from_proto`].
    pub fn from_serialized(
        serialized: Serialized,
        options: &DeserializeOptions,
    ) -> Result<Self, DecodeError> {
        Self::from_message(serialized.into(), options)
    }
}

/// The number of shards as the messages carry it.
fn count(shards: usize) -> Result<i32, IfrtError> {
    let overflow = IfrtError::Overflow { what: "the number of shards", bits: 31 };
    i32::try_from(shards).map_err(|_| overflow)
}

impl fmt::Display for ShardingSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for_each_kind!(self, spec => spec.fmt(f))
    }
}

/// What remains of a sharding without its devices and its memory kind.
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
        })
    }
}

/// The envelope has no version: the spec inside is written at the requested one.
impl ToProto for ShardingSpec {
    type Proto = wire::ShardingSpecProto;

    fn to_proto(&self, version: SerDesVersion) -> Result<Self::Proto, EncodeError> {
        let serialized = self.to_serialized(version)?;
        Ok(wire::ShardingSpecProto { serialized_sharding_spec: Some(serialized.into()) })
    }

    fn can_serialize_at(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        for_each_kind!(self, spec => spec.can_serialize_at(version))
    }
}

/// The envelope has no version: the spec inside says its own. No options are needed.
impl FromProto for ShardingSpec {
    type Proto = wire::ShardingSpecProto;
    const NAME: &'static str = "ShardingSpec";

    fn from_proto(proto: &Self::Proto, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        Self::from_owned_proto(proto.clone(), options)
    }

    fn from_owned_proto(
        proto: Self::Proto,
        options: &DeserializeOptions,
    ) -> Result<Self, DecodeError> {
        Self::from_message(proto.serialized_sharding_spec.unwrap_or_default(), options)
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
