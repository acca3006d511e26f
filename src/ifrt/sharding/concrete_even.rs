//! Shardings into equal shards, for one shape of the array.

use std::fmt;

use super::on_devices::on_devices;
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, Registered,
        fields::{Fields, Joined},
        wire_format::{Encoded, WireFormat, described_by_bytes},
    },
    ifrt::{DeserializeShardingOptions, DeviceList, IfrtError, IndexDomain, MemoryKind, Shape},
    proto::xla::ifrt::ConcreteEvenShardingProto,
    version::SerDesVersion,
    wire::BackwardWriter,
};

const FORMATS: Formats = Formats::of("ConcreteEvenSharding");

/// A sharding into shards of equal shape, for one shape of the array.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ConcreteEvenSharding {
    devices: DeviceList,
    memory_kind: MemoryKind,
    shape: Shape,
    shard_shape: Shape,
    is_fully_replicated: bool,
}

impl ConcreteEvenSharding {
    /// Creates a sharding of an array of `shape` into shards of `shard_shape`.
    ///
    /// # Errors
    /// [`IfrtError`] if the shapes differ in rank, or if every device holds the whole array and
    /// `shard_shape` differs from `shape`.
    pub fn new(
        devices: DeviceList,
        memory_kind: MemoryKind,
        shape: Shape,
        shard_shape: Shape,
        is_fully_replicated: bool,
    ) -> Result<Self, IfrtError> {
        let sharding = Self { devices, memory_kind, shape, shard_shape, is_fully_replicated };
        check_even(&sharding.shape, &sharding.shard_shape, is_fully_replicated)?;
        Ok(sharding)
    }

    /// Like [`new`](Self::new) without its checks, which upstream does not make.
    pub const fn new_lenient(
        devices: DeviceList,
        memory_kind: MemoryKind,
        shape: Shape,
        shard_shape: Shape,
        is_fully_replicated: bool,
    ) -> Self {
        Self { devices, memory_kind, shape, shard_shape, is_fully_replicated }
    }

    /// Returns the shape of the array that the sharding describes.
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns true if every device holds the whole array.
    pub const fn is_fully_replicated(&self) -> bool {
        self.is_fully_replicated
    }

    /// Returns the shape of a shard.
    ///
    /// # Errors
    /// [`IfrtError::ShapeMismatch`] if `shape` is not the one that the sharding describes.
    pub fn shard_shape(&self, shape: &Shape) -> Result<Shape, IfrtError> {
        if *shape != self.shape {
            return Err(IfrtError::shape_mismatch(shape, &self.shape));
        }
        Ok(self.shard_shape.clone())
    }

    /// Returns an error: the shapes do not determine which device holds which part.
    ///
    /// # Errors
    /// [`IfrtError::NotKnown`], always.
    pub fn index_domains(&self, _: &Shape) -> Result<Vec<IndexDomain>, IfrtError> {
        Err(IfrtError::NotKnown {
            sharding: "ConcreteEvenSharding",
            what: "index domains",
            remedy: "use a sharding that knows them, such as an HloSharding",
        })
    }

    pub(super) fn index_domains_within(
        &self,
        shape: &Shape,
        _: u64,
    ) -> Result<Vec<IndexDomain>, IfrtError> {
        self.index_domains(shape)
    }

    pub(super) fn shard_shapes_of(&self, shape: &Shape, _: u64) -> Result<Vec<Shape>, IfrtError> {
        Ok(vec![self.shard_shape(shape)?; self.devices.len()])
    }

    on_devices!();
}

/// Checks the rules of equal shards, which upstream does not have.
pub(in crate::ifrt) fn check_even(
    shape: &Shape,
    shard_shape: &Shape,
    is_fully_replicated: bool,
) -> Result<(), IfrtError> {
    if shape.rank() != shard_shape.rank() {
        return Err(IfrtError::RankMismatch {
            what: "the shard shape",
            found: shard_shape.rank(),
            other: "the shape",
            expected: shape.rank(),
        });
    }
    if is_fully_replicated && shape != shard_shape {
        return Err(IfrtError::shape_mismatch(shard_shape, shape));
    }
    Ok(())
}

impl fmt::Display for ConcreteEvenSharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { devices, memory_kind, shape, shard_shape, is_fully_replicated } = self;
        write!(
            f,
            "ConcreteEvenSharding(devices: {devices}, memory_kind: {memory_kind}, shape: {shape}, \
             shard_shape: {shard_shape}, is_fully_replicated: {is_fully_replicated})"
        )
    }
}

impl Registered for ConcreteEvenSharding {
    const TYPE_NAME: &'static str = "xla::ifrt::ConcreteEvenSharding";
}

described_by_bytes! {
    /// Writes format 0 at every version.
    ToProto,
    /// Accepts format 0. The agreement of the shapes is checked in strict mode only.
    FromProto for ConcreteEvenSharding as ConcreteEvenShardingProto
}

impl WireFormat for ConcreteEvenSharding {
    const NAME: &'static str = "ConcreteEvenSharding";

    fn capacity(&self) -> usize {
        self.devices.capacity()
    }

    fn can_write(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        self.devices.can_write(version)?;
        self.shape.can_write(version)?;
        self.shard_shape.can_write(version)?;
        FORMATS.for_request(version).map(drop)
    }

    fn write(&self, version: SerDesVersion, out: &mut BackwardWriter) -> Result<(), EncodeError> {
        out.number(6, FORMATS.for_request(version)?);
        out.number(5, i32::from(self.is_fully_replicated));
        self.memory_kind.write(4, out);
        out.message(3, |out| self.shard_shape.write(version, out))?;
        out.message(2, |out| self.shape.write(version, out))?;
        out.message(1, |out| self.devices.write(version, out))
    }

    fn read(message: Encoded<'_>, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        let (mut devices, mut shape, mut shard_shape) = <(Joined, Joined, Joined)>::default();
        let (mut memory_kind, mut is_fully_replicated, mut recorded) = (None, false, 0);
        let mut fields = Fields::new(Self::NAME, message.bytes());
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => devices.add(value.bytes()?),
                2 => shape.add(value.bytes()?),
                3 => shard_shape.add(value.bytes()?),
                4 => memory_kind = Some(value.text()?),
                5 => is_fully_replicated = value.truth()?,
                6 => recorded = value.number()?,
                _ => {}
            }
        }
        FORMATS.check_recorded(recorded)?;
        let sharding = Self {
            devices: DeviceList::read(message.part(devices.bytes()), options)?,
            memory_kind: MemoryKind::from_message(memory_kind),
            shape: Shape::read(message.part(shape.bytes()), options)?,
            shard_shape: Shape::read(message.part(shard_shape.bytes()), options)?,
            is_fully_replicated,
        };
        if options.is_strict() {
            check_even(&sharding.shape, &sharding.shard_shape, is_fully_replicated)
                .map_err(|error| error.decoding(Self::NAME))?;
        }
        Ok(sharding)
    }

    fn check_options(options: &DeserializeOptions) -> Result<(), DecodeError> {
        options.require::<DeserializeShardingOptions>(Self::NAME).map(drop)
    }
}
