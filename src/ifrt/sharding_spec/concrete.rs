use std::fmt;

use super::{
    ConcreteEvenSharding, ConcreteSharding, DeviceList, IfrtError, MemoryKind, Shape, Sharding,
    count, simple::require_count,
};
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, FromProto, Registered, ToProto,
    },
    ifrt::{
        DynamicShape, IndexDomain, nested,
        sharding::{
            ShardShapes, all_from_proto, all_to_proto, check_even, refuse_index_domains,
            require_shape,
        },
    },
    proto::serdes::ifrt::{
        self as wire, concrete_sharding_spec_proto::ShapeOrDynamicShape as WireShape,
    },
    version::SerDesVersion,
};

const CONCRETE_FORMATS: Formats = Formats::of("ConcreteShardingSpec");
const EVEN_FORMATS: Formats = Formats::of("ConcreteEvenShardingSpec");

/// Lists the shape of each shard, for one shape of the array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ConcreteShardingSpec {
    shapes: ShardShapes,
    index_domains: Option<Vec<IndexDomain>>,
}

impl ConcreteShardingSpec {
    /// Shards of these shapes.
    pub const fn new(shapes: ShardShapes) -> Self {
        Self { shapes, index_domains: None }
    }

    /// The same spec with the part of the array that each shard is.
    ///
    /// No version carries them: such a spec cannot be serialized.
    ///
    /// # Errors
    /// [`IfrtError::CountMismatch`] if there is not one for each shard.
    pub fn with_index_domains(mut self, domains: Vec<IndexDomain>) -> Result<Self, IfrtError> {
        if domains.len() != self.shapes.shard_count() {
            return Err(IfrtError::CountMismatch {
                what: "index domains",
                found: domains.len() as u64,
                other: "shards",
                expected: self.shapes.shard_count() as u64,
            });
        }
        self.index_domains = Some(domains);
        Ok(self)
    }

    /// The same spec without index domains, which can be serialized.
    #[must_use]
    pub fn without_index_domains(mut self) -> Self {
        self.index_domains = None;
        self
    }

    /// The shapes of the array and of the shards.
    pub const fn shapes(&self) -> &ShardShapes {
        &self.shapes
    }

    /// The number of shards.
    ///
    /// # Errors
    /// [`IfrtError::Overflow`] if it does not fit 31 bits.
    pub fn shard_count(&self) -> Result<i32, IfrtError> {
        count(self.shapes.shard_count())
    }

    /// The shape of a shard.
    ///
    /// # Errors
    /// [`IfrtError::NotKnown`], always: each shard has a shape of its own.
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

/// Writes format 0 from version 5 on. Index domains are refused: no version carries them.
impl ToProto for ConcreteShardingSpec {
    type Proto = wire::ConcreteShardingSpecProto;

    fn to_proto(&self, version: SerDesVersion) -> Result<Self::Proto, EncodeError> {
        refuse_index_domains("ConcreteShardingSpec", self.index_domains.as_ref())?;
        let mut message = wire::ConcreteShardingSpecProto {
            version_number: CONCRETE_FORMATS.for_request(version)?,
            ..Default::default()
        };
        match &self.shapes {
            ShardShapes::Static { shape, shard_shapes } => {
                message.shape_or_dynamic_shape = Some(WireShape::Shape(shape.to_proto(version)?));
                message.shard_shapes = all_to_proto(shard_shapes, version)?;
            }
            ShardShapes::Dynamic { shape, shard_shapes } => {
                let shape = shape.to_proto(version)?;
                message.shape_or_dynamic_shape = Some(WireShape::DynamicShape(shape));
                message.shard_dynamic_shapes = all_to_proto(shard_shapes, version)?;
            }
        }
        Ok(message)
    }

    fn can_serialize_at(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        refuse_index_domains("ConcreteShardingSpec", self.index_domains.as_ref())?;
        self.shapes.can_serialize_at(version)?;
        CONCRETE_FORMATS.for_request(version).map(drop)
    }
}

/// Accepts format 0.
impl FromProto for ConcreteShardingSpec {
    type Proto = wire::ConcreteShardingSpecProto;
    const NAME: &'static str = "ConcreteShardingSpec";

    fn from_proto(proto: &Self::Proto, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        CONCRETE_FORMATS.check_recorded(proto.version_number)?;
        match &proto.shape_or_dynamic_shape {
            Some(WireShape::Shape(shape)) => Ok(Self::new(ShardShapes::Static {
                shape: Shape::from_proto(shape, options)?,
                shard_shapes: all_from_proto(&proto.shard_shapes, options)?,
            })),
            Some(WireShape::DynamicShape(shape)) => Ok(Self::new(ShardShapes::Dynamic {
                shape: DynamicShape::from_proto(shape, options)?,
                shard_shapes: all_from_proto(&proto.shard_dynamic_shapes, options)?,
            })),
            None => Err(DecodeError::invalid_value(
                Self::NAME,
                "found neither a shape nor a dynamic_shape; expected one of them",
            )),
        }
    }
}

/// Shards of equal shape, known for one shape of the array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ConcreteEvenShardingSpec {
    shards: i32,
    shape: Shape,
    shard_shape: Shape,
    is_fully_replicated: bool,
}

impl ConcreteEvenShardingSpec {
    /// An array of `shape` in `shards` shards of `shard_shape`.
    ///
    /// # Errors
    /// [`IfrtError`] if the number is negative, if the shapes have not the same rank, or if every shard is the whole array
    /// and `shard_shape` is another than `shape`.
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

    pub(super) const fn new_lenient(
        shards: i32,
        shape: Shape,
        shard_shape: Shape,
        is_fully_replicated: bool,
    ) -> Self {
        Self { shards, shape, shard_shape, is_fully_replicated }
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
    /// [`IfrtError::ShapeMismatch`] if `shape` is not the one for which the shards are known.
    pub fn shard_shape(&self, shape: &Shape) -> Result<Shape, IfrtError> {
        if *shape != self.shape {
            return Err(require_shape(shape, &self.shape));
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

/// Writes format 0 from version 5 on.
impl ToProto for ConcreteEvenShardingSpec {
    type Proto = wire::ConcreteEvenShardingSpecProto;

    fn to_proto(&self, version: SerDesVersion) -> Result<Self::Proto, EncodeError> {
        Ok(wire::ConcreteEvenShardingSpecProto {
            version_number: EVEN_FORMATS.for_request(version)?,
            num_shards: self.shards,
            shape: Some(self.shape.to_proto(version)?),
            shard_shape: Some(self.shard_shape.to_proto(version)?),
            is_fully_replicated: self.is_fully_replicated,
        })
    }

    fn can_serialize_at(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        self.shape.can_serialize_at(version)?;
        self.shard_shape.can_serialize_at(version)?;
        EVEN_FORMATS.for_request(version).map(drop)
    }
}

/// Accepts format 0. That the shapes agree is checked in strict mode only.
impl FromProto for ConcreteEvenShardingSpec {
    type Proto = wire::ConcreteEvenShardingSpecProto;
    const NAME: &'static str = "ConcreteEvenShardingSpec";

    fn from_proto(proto: &Self::Proto, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        EVEN_FORMATS.check_recorded(proto.version_number)?;
        require_count(proto.num_shards).map_err(|error| error.decoding(Self::NAME))?;
        let shape = nested(proto.shape.as_ref(), options)?;
        let shard_shape = nested(proto.shard_shape.as_ref(), options)?;
        if options.is_strict() {
            check_even(&shape, &shard_shape, proto.is_fully_replicated)
                .map_err(|error| error.decoding(Self::NAME))?;
        }
        Ok(Self {
            shards: proto.num_shards,
            shape,
            shard_shape,
            is_fully_replicated: proto.is_fully_replicated,
        })
    }
}
