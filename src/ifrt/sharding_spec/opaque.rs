//! Specs that know only the number of shards.

use std::fmt;

use super::{DeviceList, IfrtError, MemoryKind, OpaqueSharding, Sharding, count::require_count};
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, Registered,
        fields::Fields,
        wire_format::{Encoded, WireFormat, described_by_bytes},
    },
    ifrt::Shape,
    proto::serdes::ifrt::OpaqueShardingSpecProto,
    version::SerDesVersion,
    wire::BackwardWriter,
};

const FORMATS: Formats = Formats::of("OpaqueShardingSpec");

/// A spec that knows only the number of shards.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "i32", into = "i32"))]
pub struct OpaqueShardingSpec {
    shards: i32,
}

impl OpaqueShardingSpec {
    /// Creates a spec of `shards` shards.
    ///
    /// # Errors
    /// [`IfrtError::Invalid`] if the number is negative.
    pub fn new(shards: i32) -> Result<Self, IfrtError> {
        require_count(shards)?;
        Ok(Self { shards })
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

described_by_bytes! {
    /// Writes format 0 at version 5 and above.
    ToProto,
    /// Accepts format 0. A negative number of shards is an error.
    FromProto for OpaqueShardingSpec as OpaqueShardingSpecProto
}

impl WireFormat for OpaqueShardingSpec {
    const NAME: &'static str = "OpaqueShardingSpec";

    fn can_write(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        FORMATS.for_request(version).map(drop)
    }

    fn write(&self, version: SerDesVersion, out: &mut BackwardWriter) -> Result<(), EncodeError> {
        out.number(2, self.shards);
        out.number(1, FORMATS.for_request(version)?);
        Ok(())
    }

    fn read(message: Encoded<'_>, _: &DeserializeOptions) -> Result<Self, DecodeError> {
        let (mut shards, mut recorded) = (0, 0);
        let mut fields = Fields::new(Self::NAME, message.bytes());
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => recorded = value.number()?,
                2 => shards = value.number()?,
                _ => {}
            }
        }
        FORMATS.check_recorded(recorded)?;
        Self::new(shards).map_err(|error| error.decoding(Self::NAME))
    }
}
