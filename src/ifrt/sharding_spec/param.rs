//! Specs that map dimensions to the axes of a mesh.

use std::fmt;

use super::{DeviceList, IfrtError, MemoryKind, Sharding, ShardingParamSharding};
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, Registered, Validation,
        fields::{Fields, Joined},
        wire_format::{Encoded, WireFormat, described_by_bytes},
    },
    ifrt::{Shape, ShardingParam},
    proto::serdes::ifrt::ShardingParamShardingSpecProto,
    version::SerDesVersion,
    wire::BackwardWriter,
};

const FORMATS: Formats = Formats::of("ShardingParamShardingSpec");

/// A [`ShardingParam`] without devices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(transparent))]
pub struct ShardingParamShardingSpec {
    param: ShardingParam,
}

impl ShardingParamShardingSpec {
    /// Creates the spec of `param`.
    ///
    /// # Errors
    /// [`IfrtError`] if it does not [verify](ShardingParam::verify).
    pub fn new(param: ShardingParam) -> Result<Self, IfrtError> {
        param.verify(Validation::Strict)?;
        Ok(Self { param })
    }

    pub(in crate::ifrt) const fn new_lenient(param: ShardingParam) -> Self {
        Self { param }
    }

    /// Returns the parameters of the sharding: the mapping of the array to the mesh.
    pub const fn param(&self) -> &ShardingParam {
        &self.param
    }

    /// Returns the number of devices of the mesh.
    ///
    /// # Errors
    /// [`IfrtError::Overflow`] if it does not fit 32 bits.
    pub fn shard_count(&self) -> Result<i32, IfrtError> {
        self.param.device_count()
    }

    /// Returns the shape of a shard.
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

described_by_bytes! {
    /// Writes format 0 at version 5 and above; the param inside has formats of its own.
    ToProto,
    /// Accepts format 0. The param is verified in strict mode only.
    FromProto for ShardingParamShardingSpec as ShardingParamShardingSpecProto
}

impl WireFormat for ShardingParamShardingSpec {
    const NAME: &'static str = "ShardingParamShardingSpec";

    fn can_write(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        FORMATS.for_request(version)?;
        self.param.can_write(version)
    }

    fn write(&self, version: SerDesVersion, out: &mut BackwardWriter) -> Result<(), EncodeError> {
        out.message(2, |out| self.param.write(version, out))?;
        out.number(1, FORMATS.for_request(version)?);
        Ok(())
    }

    fn read(message: Encoded<'_>, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        let (mut param, mut recorded) = (Joined::default(), 0);
        let mut fields = Fields::new(Self::NAME, message.bytes());
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => recorded = value.number()?,
                2 => param.add(value.bytes()?),
                _ => {}
            }
        }
        FORMATS.check_recorded(recorded)?;
        Ok(Self { param: ShardingParam::read(message.part(param.bytes()), options)? })
    }
}
