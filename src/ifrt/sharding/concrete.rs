//! Shardings that list the shape of every shard.

use std::fmt;

use bytes::Bytes;
use prost::Message;

use super::on_devices::on_devices;
use crate::{
    codec::{
        self, DecodeError, DeserializeOptions, EncodeError, Formats, Registered,
        fields::{Fields, Joined},
        wire_format::{Encoded, WireFormat, described_by_bytes, read_all, write_all},
    },
    ifrt::{
        DeserializeShardingOptions, DeviceList, DynamicShape, IfrtError, IndexDomain, MemoryKind,
        Shape, list_notation::write_list,
    },
    proto::xla::ifrt::{ConcreteShardingProto, DynamicShapeProto, ShapeProto},
    version::SerDesVersion,
    wire::BackwardWriter,
};

const FORMATS: Formats = Formats::of("ConcreteSharding");

/// The shape of an array and of each of its shards: all static, or all dynamic.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum ShardShapes {
    /// Shapes of fixed size.
    Static {
        /// The shape of the array.
        shape: Shape,
        /// One shape per shard.
        shard_shapes: Vec<Shape>,
    },
    /// Shapes of varying size.
    Dynamic {
        /// The shape of the array.
        shape: DynamicShape,
        /// One shape per shard.
        shard_shapes: Vec<DynamicShape>,
    },
}

impl ShardShapes {
    /// Returns the number of shards.
    pub fn shard_count(&self) -> usize {
        match self {
            Self::Static { shard_shapes, .. } => shard_shapes.len(),
            Self::Dynamic { shard_shapes, .. } => shard_shapes.len(),
        }
    }

    /// Fails unless there is an index domain for each shard.
    pub(in crate::ifrt) fn require_one_each(
        &self,
        domains: &[IndexDomain],
    ) -> Result<(), IfrtError> {
        if domains.len() == self.shard_count() {
            return Ok(());
        }
        Err(IfrtError::CountMismatch {
            what: "index domains",
            found: domains.len() as u64,
            other: "shards",
            expected: self.shard_count() as u64,
        })
    }

    /// Returns the shapes of the shards, if the array has this static shape.
    pub(in crate::ifrt) fn of(&self, shape: &Shape) -> Result<&[Shape], IfrtError> {
        match self {
            Self::Static { shape: own, shard_shapes } if own == shape => Ok(shard_shapes),
            Self::Static { shape: own, .. } => Err(IfrtError::shape_mismatch(shape, own)),
            Self::Dynamic { shape: own, .. } => Err(IfrtError::shape_mismatch(shape, own)),
        }
    }

    /// Returns the shapes in a message of the type `name`, which has the shape of the array and the
    /// shapes of the shards, both static or both dynamic. If a message has both, the static ones
    /// count.
    pub(in crate::ifrt) fn read(
        name: &'static str,
        message: Encoded<'_>,
        (shape, shard_shapes): (Option<&[u8]>, Vec<&[u8]>),
        (dynamic_shape, dynamic_shard_shapes): (Option<&[u8]>, Vec<&[u8]>),
        options: &DeserializeOptions,
    ) -> Result<Self, DecodeError> {
        match (shape, dynamic_shape) {
            (Some(shape), _) => {
                let unused = dynamic_shape.into_iter().chain(dynamic_shard_shapes);
                check_syntax::<DynamicShapeProto>(name, unused)?;
                Ok(Self::Static {
                    shape: Shape::read(message.part(shape), options)?,
                    shard_shapes: read_all(message, shard_shapes, options)?,
                })
            }
            (None, Some(shape)) => {
                check_syntax::<ShapeProto>(name, shard_shapes)?;
                Ok(Self::Dynamic {
                    shape: DynamicShape::read(message.part(shape), options)?,
                    shard_shapes: read_all(message, dynamic_shard_shapes, options)?,
                })
            }
            (None, None) => Err(DecodeError::invalid_value(
                name,
                "found neither a shape nor a dynamic_shape; expected one of them",
            )),
        }
    }

    pub(in crate::ifrt) fn can_write(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        match self {
            Self::Static { shape, shard_shapes } => {
                shape.can_write(version)?;
                shard_shapes.iter().try_for_each(|shape| shape.can_write(version))
            }
            Self::Dynamic { shape, shard_shapes } => {
                shape.can_write(version)?;
                shard_shapes.iter().try_for_each(|shape| shape.can_write(version))
            }
        }
    }
}

/// Fails unless the unused messages parse.
fn check_syntax<'a, M: Message + Default>(
    name: &'static str,
    messages: impl IntoIterator<Item = &'a [u8]>,
) -> Result<(), DecodeError> {
    messages
        .into_iter()
        .try_for_each(|message| codec::parse::<M>(name, Bytes::copy_from_slice(message)).map(drop))
}

impl fmt::Display for ShardShapes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Static { shape, shard_shapes } => {
                write!(f, "shape: {shape}, shard_shapes: ")?;
                write_list(f, shard_shapes)
            }
            Self::Dynamic { shape, shard_shapes } => {
                write!(f, "dynamic_shape: {shape}, shard_dynamic_shapes: ")?;
                write_list(f, shard_shapes)
            }
        }
    }
}

/// A sharding that lists the shape of each shard, for one shape of the array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ConcreteSharding {
    devices: DeviceList,
    memory_kind: MemoryKind,
    shapes: ShardShapes,
    index_domains: Option<Vec<IndexDomain>>,
}

impl ConcreteSharding {
    /// Creates a sharding into shards of these shapes, one per addressable device.
    ///
    /// # Errors
    /// [`IfrtError::CountMismatch`] if the number of shards is neither the number of devices nor
    /// that of addressable devices.
    pub fn new(
        devices: DeviceList,
        memory_kind: MemoryKind,
        shapes: ShardShapes,
    ) -> Result<Self, IfrtError> {
        let sharding = Self::new_lenient(devices, memory_kind, shapes);
        sharding.check()?;
        Ok(sharding)
    }

    /// Like [`new`](Self::new) without its check: upstream fails only when it disassembles an
    /// array.
    pub const fn new_lenient(
        devices: DeviceList,
        memory_kind: MemoryKind,
        shapes: ShardShapes,
    ) -> Self {
        Self { devices, memory_kind, shapes, index_domains: None }
    }

    fn check(&self) -> Result<(), IfrtError> {
        let found = self.shapes.shard_count();
        if found == self.devices.len() || found == self.devices.addressable().len() {
            return Ok(());
        }
        Err(self.count_mismatch("shard shapes", found))
    }

    fn count_mismatch(&self, what: &'static str, found: usize) -> IfrtError {
        IfrtError::CountMismatch {
            what,
            found: found as u64,
            other: "addressable devices",
            expected: self.devices.addressable().len() as u64,
        }
    }

    /// Sets the part of the array that each shard holds.
    ///
    /// No version carries index domains: a sharding with them cannot be serialized.
    ///
    /// # Errors
    /// [`IfrtError::CountMismatch`] if there is not one for each shard.
    pub fn with_index_domains(mut self, domains: Vec<IndexDomain>) -> Result<Self, IfrtError> {
        self.shapes.require_one_each(&domains)?;
        self.index_domains = Some(domains);
        Ok(self)
    }

    /// Removes the index domains, so that the sharding can be serialized.
    #[must_use]
    pub fn without_index_domains(mut self) -> Self {
        self.index_domains = None;
        self
    }

    /// Returns the shapes of the array and of the shards.
    pub const fn shapes(&self) -> &ShardShapes {
        &self.shapes
    }

    /// Returns false: shards are listed because they differ.
    pub const fn is_fully_replicated(&self) -> bool {
        false
    }

    /// Returns an error: each shard has a shape of its own, see [`shapes`](Self::shapes).
    ///
    /// # Errors
    /// [`IfrtError::NotKnown`], always.
    pub fn shard_shape(&self, _: &Shape) -> Result<Shape, IfrtError> {
        Err(IfrtError::NotKnown {
            sharding: "ConcreteSharding",
            what: "shard shape common to all shards",
            remedy: "ask for the shapes of the single shards",
        })
    }

    /// Returns the part of the array that each shard holds.
    ///
    /// # Errors
    /// [`IfrtError::NotKnown`] if the parts were not set; [`IfrtError::ShapeMismatch`] if `shape`
    /// is not the one for which the shards are known; [`IfrtError::CountMismatch`] if there is not
    /// one for each addressable device.
    pub fn index_domains(&self, shape: &Shape) -> Result<Vec<IndexDomain>, IfrtError> {
        let Some(domains) = &self.index_domains else {
            return Err(IfrtError::NotKnown {
                sharding: "ConcreteSharding without them",
                what: "index domains",
                remedy: "add them with with_index_domains",
            });
        };
        self.shapes.of(shape)?;
        if domains.len() != self.devices.addressable().len() && domains.len() != self.devices.len()
        {
            return Err(self.count_mismatch("index domains", domains.len()));
        }
        Ok(domains.clone())
    }

    pub(super) fn index_domains_within(
        &self,
        shape: &Shape,
        _: u64,
    ) -> Result<Vec<IndexDomain>, IfrtError> {
        self.index_domains(shape)
    }

    pub(super) fn shard_shapes_of(&self, shape: &Shape, _: u64) -> Result<Vec<Shape>, IfrtError> {
        let shapes = self.shapes.of(shape)?;
        self.check()?;
        Ok(shapes.to_vec())
    }

    on_devices!();
}

impl fmt::Display for ConcreteSharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { devices, memory_kind, shapes, index_domains } = self;
        write!(f, "ConcreteSharding(devices: {devices}, memory_kind: {memory_kind}, {shapes}")?;
        if let Some(domains) = index_domains {
            f.write_str(", index_domains: ")?;
            write_list(f, domains)?;
        }
        f.write_str(")")
    }
}

impl Registered for ConcreteSharding {
    const TYPE_NAME: &'static str = "xla::ifrt::ConcreteSharding";
}

described_by_bytes! {
    /// Writes format 0 at every version. Index domains are refused: no version carries them.
    ToProto,
    /// Accepts format 0. Strict mode also checks the number of shards against the number of
    /// devices.
    FromProto for ConcreteSharding as ConcreteShardingProto
}

impl WireFormat for ConcreteSharding {
    const NAME: &'static str = "ConcreteSharding";

    fn capacity(&self) -> usize {
        self.devices.capacity()
    }

    fn can_write(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        refuse_index_domains(Self::NAME, self.index_domains.as_ref())?;
        self.devices.can_write(version)?;
        self.shapes.can_write(version)?;
        FORMATS.for_request(version).map(drop)
    }

    fn write(&self, version: SerDesVersion, out: &mut BackwardWriter) -> Result<(), EncodeError> {
        refuse_index_domains(Self::NAME, self.index_domains.as_ref())?;
        out.number(7, FORMATS.for_request(version)?);
        if let ShardShapes::Dynamic { shape, shard_shapes } = &self.shapes {
            write_all(6, shard_shapes, version, out)?;
            out.message(5, |out| shape.write(version, out))?;
        }
        self.memory_kind.write(4, out);
        if let ShardShapes::Static { shape, shard_shapes } = &self.shapes {
            write_all(3, shard_shapes, version, out)?;
            out.message(2, |out| shape.write(version, out))?;
        }
        out.message(1, |out| self.devices.write(version, out))
    }

    fn read(message: Encoded<'_>, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        let (mut devices, mut shape, mut dynamic_shape) = <(Joined, Joined, Joined)>::default();
        let (mut shard_shapes, mut dynamic_shard_shapes) = (Vec::new(), Vec::new());
        let (mut memory_kind, mut recorded) = (None, 0);
        let mut fields = Fields::new(Self::NAME, message.bytes());
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => devices.add(value.bytes()?),
                2 => shape.add(value.bytes()?),
                3 => shard_shapes.push(value.bytes()?),
                4 => memory_kind = Some(value.text()?),
                5 => dynamic_shape.add(value.bytes()?),
                6 => dynamic_shard_shapes.push(value.bytes()?),
                7 => recorded = value.number()?,
                _ => {}
            }
        }
        FORMATS.check_recorded(recorded)?;
        let devices = DeviceList::read(message.part(devices.bytes()), options)?;
        let of_static = (shape.given(), shard_shapes);
        let of_dynamic = (dynamic_shape.given(), dynamic_shard_shapes);
        let shapes = ShardShapes::read(Self::NAME, message, of_static, of_dynamic, options)?;
        let memory_kind = MemoryKind::from_message(memory_kind);
        let sharding = Self::new_lenient(devices, memory_kind, shapes);
        if options.is_strict() {
            sharding.check().map_err(|error| error.decoding(Self::NAME))?;
        }
        Ok(sharding)
    }

    fn check_options(options: &DeserializeOptions) -> Result<(), DecodeError> {
        options.require::<DeserializeShardingOptions>(Self::NAME).map(drop)
    }
}

/// Fails if there are index domains, which no version carries.
pub(in crate::ifrt) fn refuse_index_domains(
    type_name: &'static str,
    domains: Option<&Vec<IndexDomain>>,
) -> Result<(), EncodeError> {
    match domains {
        Some(_) => Err(EncodeError::not_serializable(
            type_name,
            "index domains",
            "drop them with without_index_domains",
        )),
        None => Ok(()),
    }
}
