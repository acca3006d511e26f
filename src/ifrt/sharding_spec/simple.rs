use std::fmt;

use super::{
    DeviceList, IfrtError, MemoryKind, OpaqueSharding, Sharding, ShardingParamSharding,
    SingleDeviceSharding,
};
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, FromProto, Registered, ToProto,
        Validation,
    },
    ifrt::{Shape, ShardingParam, nested},
    proto::serdes::ifrt as wire,
    version::SerDesVersion,
};

const SINGLE_DEVICE_FORMATS: Formats = Formats::of("SingleDeviceShardingSpec");
const OPAQUE_FORMATS: Formats = Formats::of("OpaqueShardingSpec");
const PARAM_FORMATS: Formats = Formats::of("ShardingParamShardingSpec");

/// The whole array as a single shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SingleDeviceShardingSpec;

impl SingleDeviceShardingSpec {
    /// 1.
    ///
    /// # Errors
    /// None.
    pub const fn shard_count(&self) -> Result<i32, IfrtError> {
        Ok(1)
    }

    /// The shape of a shard.
    ///
    /// # Errors
    /// None: it is the array.
    pub fn shard_shape(&self, shape: &Shape) -> Result<Shape, IfrtError> {
        Ok(shape.clone())
    }

    pub(super) fn on(&self, devices: DeviceList, kind: MemoryKind) -> Result<Sharding, IfrtError> {
        let device = devices.ids().first().copied().unwrap_or_default();
        Ok(SingleDeviceSharding::new(device).with_memory_kind(kind).into())
    }
}

impl fmt::Display for SingleDeviceShardingSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SingleDeviceShardingSpec")
    }
}

impl Registered for SingleDeviceShardingSpec {
    const TYPE_NAME: &'static str = "xla::ifrt::SingleDeviceShardingSpec";
}

/// Writes format 0 from version 5 on.
impl ToProto for SingleDeviceShardingSpec {
    type Proto = wire::SingleDeviceShardingSpecProto;

    fn to_proto(&self, version: SerDesVersion) -> Result<Self::Proto, EncodeError> {
        let version_number = SINGLE_DEVICE_FORMATS.for_request(version)?;
        Ok(wire::SingleDeviceShardingSpecProto { version_number })
    }

    fn can_serialize_at(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        SINGLE_DEVICE_FORMATS.for_request(version).map(drop)
    }
}

/// Accepts format 0.
impl FromProto for SingleDeviceShardingSpec {
    type Proto = wire::SingleDeviceShardingSpecProto;
    const NAME: &'static str = "SingleDeviceShardingSpec";

    fn from_proto(proto: &Self::Proto, _: &DeserializeOptions) -> Result<Self, DecodeError> {
        SINGLE_DEVICE_FORMATS.check_recorded(proto.version_number)?;
        Ok(Self)
    }
}

/// Shards of which only the number is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "i32", into = "i32"))]
pub struct OpaqueShardingSpec {
    shards: i32,
}

impl OpaqueShardingSpec {
    /// `shards` shards.
    ///
    /// # Errors
    /// [`IfrtError::Invalid`] if the number is negative.
    pub fn new(shards: i32) -> Result<Self, IfrtError> {
        require_count(shards)?;
        Ok(Self { shards })
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
    /// [`IfrtError::NotKnown`], always.
    pub fn shard_shape(&self, _: &Shape) -> Result<Shape, IfrtError> {
        Err(IfrtError::NotKnown {
            sharding: "OpaqueShardingSpec",
            what: "shard shape",
            remedy: "use a spec that describes its shards, such as a ConcreteEvenShardingSpec",
        })
    }

    pub(super) fn on(&self, devices: DeviceList, kind: MemoryKind) -> Result<Sharding, IfrtError> {
        Ok(OpaqueSharding::new(devices, kind).into())
    }
}

pub(super) fn require_count(shards: i32) -> Result<(), IfrtError> {
    if shards < 0 {
        return Err(IfrtError::Invalid(format!("found {shards} shards; expected 0 or more")));
    }
    Ok(())
}

impl TryFrom<i32> for OpaqueShardingSpec {
    type Error = IfrtError;

    fn try_from(shards: i32) -> Result<Self, Self::Error> {
        Self::new(shards)
    }
}

impl From<OpaqueShardingSpec> for i32 {
    fn from(spec: OpaqueShardingSpec) -> Self {
        spec.shards
    }
}

impl fmt::Display for OpaqueShardingSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OpaqueShardingSpec(num_shards: {})", self.shards)
    }
}

impl Registered for OpaqueShardingSpec {
    const TYPE_NAME: &'static str = "xla::ifrt::OpaqueShardingSpec";
}

/// Writes format 0 from version 5 on.
impl ToProto for OpaqueShardingSpec {
    type Proto = wire::OpaqueShardingSpecProto;

    fn to_proto(&self, version: SerDesVersion) -> Result<Self::Proto, EncodeError> {
        let version_number = OPAQUE_FORMATS.for_request(version)?;
        Ok(wire::OpaqueShardingSpecProto { version_number, num_shards: self.shards })
    }

    fn can_serialize_at(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        OPAQUE_FORMATS.for_request(version).map(drop)
    }
}

/// Accepts format 0. A negative number of shards is an error.
impl FromProto for OpaqueShardingSpec {
    type Proto = wire::OpaqueShardingSpecProto;
    const NAME: &'static str = "OpaqueShardingSpec";

    fn from_proto(proto: &Self::Proto, _: &DeserializeOptions) -> Result<Self, DecodeError> {
        OPAQUE_FORMATS.check_recorded(proto.version_number)?;
        Self::new(proto.num_shards).map_err(|error| error.decoding(Self::NAME))
    }
}

/// A [`ShardingParam`] without devices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct ShardingParamShardingSpec {
    param: ShardingParam,
}

impl ShardingParamShardingSpec {
    /// The spec of `param`.
    ///
    /// # Errors
    /// [`IfrtError`] if it does not [verify](ShardingParam::verify).
    pub fn new(param: ShardingParam) -> Result<Self, IfrtError> {
        param.verify(Validation::Strict)?;
        Ok(Self { param })
    }

    pub(super) const fn new_lenient(param: ShardingParam) -> Self {
        Self { param }
    }

    /// How the array lies on the mesh.
    pub const fn param(&self) -> &ShardingParam {
        &self.param
    }

    /// The number of devices of the mesh.
    ///
    /// # Errors
    /// [`IfrtError::Overflow`] if it does not fit 32 bits.
    pub fn shard_count(&self) -> Result<i32, IfrtError> {
        self.param.device_count()
    }

    /// The shape of a shard.
    ///
    /// # Errors
    /// As [`ShardingParam::shard_shape`].
    pub fn shard_shape(&self, shape: &Shape) -> Result<Shape, IfrtError> {
        self.param.shard_shape(shape)
    }

    pub(super) fn on(&self, devices: DeviceList, kind: MemoryKind) -> Result<Sharding, IfrtError> {
        Ok(ShardingParamSharding::new_lenient(self.param.clone(), devices, kind)?.into())
    }
}

impl fmt::Display for ShardingParamShardingSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ShardingParamShardingSpec({})", self.param)
    }
}

impl Registered for ShardingParamShardingSpec {
    const TYPE_NAME: &'static str = "xla::ifrt::ShardingParamShardingSpec";
}

/// Writes format 0 from version 5 on; the param inside has formats of its own.
impl ToProto for ShardingParamShardingSpec {
    type Proto = wire::ShardingParamShardingSpecProto;

    fn to_proto(&self, version: SerDesVersion) -> Result<Self::Proto, EncodeError> {
        Ok(wire::ShardingParamShardingSpecProto {
            version_number: PARAM_FORMATS.for_request(version)?,
            sharding_param: Some(self.param.to_proto(version)?),
        })
    }

    fn can_serialize_at(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        PARAM_FORMATS.for_request(version)?;
        self.param.can_serialize_at(version)
    }
}

/// Accepts format 0. The param is verified in strict mode only.
impl FromProto for ShardingParamShardingSpec {
    type Proto = wire::ShardingParamShardingSpecProto;
    const NAME: &'static str = "ShardingParamShardingSpec";

    fn from_proto(proto: &Self::Proto, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        PARAM_FORMATS.check_recorded(proto.version_number)?;
        Ok(Self { param: nested(proto.sharding_param.as_ref(), options)? })
    }
}
