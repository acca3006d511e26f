//! The spec of a single shard.

use std::fmt;

use super::{DeviceList, IfrtError, MemoryKind, Sharding, SingleDeviceSharding};
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, Registered,
        fields::Fields,
        wire_format::{Encoded, WireFormat, described_by_bytes},
    },
    ifrt::Shape,
    proto::serdes::ifrt::SingleDeviceShardingSpecProto,
    version::SerDesVersion,
    wire::BackwardWriter,
};

const FORMATS: Formats = Formats::of("SingleDeviceShardingSpec");

/// The spec of the whole array as a single shard.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SingleDeviceShardingSpec;

impl SingleDeviceShardingSpec {
    /// Returns 1.
    ///
    /// # Errors
    /// None.
    pub const fn shard_count(&self) -> Result<i32, IfrtError> {
        Ok(1)
    }

    /// Returns the shape of a shard.
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

described_by_bytes! {
    /// Writes format 0 at version 5 and above.
    ToProto,
    /// Accepts format 0.
    FromProto for SingleDeviceShardingSpec as SingleDeviceShardingSpecProto
}

impl WireFormat for SingleDeviceShardingSpec {
    const NAME: &'static str = "SingleDeviceShardingSpec";

    fn can_write(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        FORMATS.for_request(version).map(drop)
    }

    fn write(&self, version: SerDesVersion, out: &mut BackwardWriter) -> Result<(), EncodeError> {
        out.number(1, FORMATS.for_request(version)?);
        Ok(())
    }

    fn read(message: Encoded<'_>, _: &DeserializeOptions) -> Result<Self, DecodeError> {
        let mut recorded = 0;
        let mut fields = Fields::new(Self::NAME, message.bytes());
        while let Some((number, value)) = fields.next()? {
            if number == 1 {
                recorded = value.number()?;
            }
        }
        FORMATS.check_recorded(recorded)?;
        Ok(Self)
    }
}
