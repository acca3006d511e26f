//! Specs that list the shape of every shard.

use std::fmt;

use super::{ConcreteSharding, DeviceList, IfrtError, MemoryKind, Shape, Sharding, count};
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, Registered,
        fields::{Fields, Joined},
        wire_format::{Encoded, WireFormat, described_by_bytes, write_all},
    },
    ifrt::{
        IndexDomain,
        sharding::{ShardShapes, refuse_index_domains},
    },
    proto::serdes::ifrt::ConcreteShardingSpecProto,
    version::SerDesVersion,
    wire::BackwardWriter,
};

const FORMATS: Formats = Formats::of("ConcreteShardingSpec");

/// A spec that lists the shape of each shard, for one shape of the array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ConcreteShardingSpec {
    shapes: ShardShapes,
    index_domains: Option<Vec<IndexDomain>>,
}

impl ConcreteShardingSpec {
    /// Creates the spec of these shapes.
    pub const fn new(shapes: ShardShapes) -> Self {
        Self { shapes, index_domains: None }
    }

    /// Sets the part of the array that each shard holds.
    ///
    /// No version carries index domains: a spec with them cannot be serialized.
    ///
    /// # Errors
    /// [`IfrtError::CountMismatch`] if there is not one for each shard.
    pub fn with_index_domains(mut self, domains: Vec<IndexDomain>) -> Result<Self, IfrtError> {
        self.shapes.require_one_each(&domains)?;
        self.index_domains = Some(domains);
        Ok(self)
    }

    /// Removes the index domains, so that the spec can be serialized.
    #[must_use]
    pub fn without_index_domains(mut self) -> Self {
        self.index_domains = None;
        self
    }

    /// Returns the shapes of the array and of the shards.
    pub const fn shapes(&self) -> &ShardShapes {
        &self.shapes
    }

    /// Returns the number of shards.
    ///
    /// # Errors
    /// [`IfrtError::Overflow`] if it does not fit 31 bits.
    pub fn shard_count(&self) -> Result<i32, IfrtError> {
        count(self.shapes.shard_count())
    }

    /// Returns the shape of a shard.
    ///
    /// # Errors
    /// [`IfrtError::NotKnown`], always: the shards differ in shape.
    pub fn shard_shape(&self, _: &Shape) -> Result<Shape, IfrtError> {
        Err(IfrtError::NotKnown {
            sharding: "ConcreteShardingSpec",
            what: "shard shape common to all shards",
            remedy: "ask for the shapes of the single shards",
        })
    }

    pub(super) fn on(&self, devices: DeviceList, kind: MemoryKind) -> Result<Sharding, IfrtError> {
        let sharding = ConcreteSharding::new(devices, kind, self.shapes.clone())?;
        Ok(match &self.index_domains {
            Some(domains) => sharding.with_index_domains(domains.clone())?.into(),
            None => sharding.into(),
        })
    }
}

impl fmt::Display for ConcreteShardingSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ConcreteShardingSpec({})", self.shapes)
    }
}

impl Registered for ConcreteShardingSpec {
    const TYPE_NAME: &'static str = "xla::ifrt::ConcreteShardingSpec";
}

described_by_bytes! {
    /// Writes format 0 at version 5 and above. Index domains are refused: no version carries them.
    ToProto,
    /// Accepts format 0. If a message has both a static and a dynamic shape, the last one counts.
    FromProto for ConcreteShardingSpec as ConcreteShardingSpecProto
}

impl WireFormat for ConcreteShardingSpec {
    const NAME: &'static str = "ConcreteShardingSpec";

    fn can_write(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        refuse_index_domains(Self::NAME, self.index_domains.as_ref())?;
        self.shapes.can_write(version)?;
        FORMATS.for_request(version).map(drop)
    }

    fn write(&self, version: SerDesVersion, out: &mut BackwardWriter) -> Result<(), EncodeError> {
        refuse_index_domains(Self::NAME, self.index_domains.as_ref())?;
        match &self.shapes {
            ShardShapes::Static { shape, shard_shapes } => {
                write_all(4, shard_shapes, version, out)?;
                out.message(2, |out| shape.write(version, out))?;
            }
            ShardShapes::Dynamic { shape, shard_shapes } => {
                write_all(5, shard_shapes, version, out)?;
                out.message(3, |out| shape.write(version, out))?;
            }
        }
        out.number(1, FORMATS.for_request(version)?);
        Ok(())
    }

    fn read(message: Encoded<'_>, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        let (mut shape, mut dynamic_shape) = <(Joined, Joined)>::default();
        let (mut shard_shapes, mut dynamic_shard_shapes) = (Vec::new(), Vec::new());
        let mut recorded = 0;
        let mut fields = Fields::new(Self::NAME, message.bytes());
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => recorded = value.number()?,
                2 => {
                    dynamic_shape = Joined::default();
                    shape.add(value.bytes()?);
                }
                3 => {
                    shape = Joined::default();
                    dynamic_shape.add(value.bytes()?);
                }
                4 => shard_shapes.push(value.bytes()?),
                5 => dynamic_shard_shapes.push(value.bytes()?),
                _ => {}
            }
        }
        FORMATS.check_recorded(recorded)?;
        let of_static = (shape.given(), shard_shapes);
        let of_dynamic = (dynamic_shape.given(), dynamic_shard_shapes);
        ShardShapes::read(Self::NAME, message, of_static, of_dynamic, options).map(Self::new)
    }
}
