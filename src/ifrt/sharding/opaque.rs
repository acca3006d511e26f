//! Shardings that know only their devices.

use std::fmt;

use super::on_devices::on_devices;
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, Registered,
        fields::{Fields, Joined},
        wire_format::{Encoded, WireFormat, described_by_bytes},
    },
    ifrt::{DeserializeShardingOptions, DeviceList, IfrtError, IndexDomain, MemoryKind, Shape},
    proto::xla::ifrt::OpaqueShardingProto,
    version::SerDesVersion,
    wire::BackwardWriter,
};

const FORMATS: Formats = Formats::of("OpaqueSharding");
const REMEDY: &str = "use a sharding that describes its shards, such as a ConcreteEvenSharding";

/// A sharding that knows only its devices.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct OpaqueSharding {
    devices: DeviceList,
    memory_kind: MemoryKind,
}

impl OpaqueSharding {
    /// Creates a sharding over these devices.
    pub const fn new(devices: DeviceList, memory_kind: MemoryKind) -> Self {
        Self { devices, memory_kind }
    }

    /// Returns false, since replication is not known.
    pub const fn is_fully_replicated(&self) -> bool {
        false
    }

    /// Returns an error, since the shape is not known.
    ///
    /// # Errors
    /// [`IfrtError::NotKnown`], always.
    pub fn shard_shape(&self, _: &Shape) -> Result<Shape, IfrtError> {
        let what = "shard shape";
        Err(IfrtError::NotKnown { sharding: "OpaqueSharding", what, remedy: REMEDY })
    }

    /// Returns an error, since the parts are not known.
    ///
    /// # Errors
    /// [`IfrtError::NotKnown`], always.
    pub fn index_domains(&self, _: &Shape) -> Result<Vec<IndexDomain>, IfrtError> {
        let what = "index domains";
        Err(IfrtError::NotKnown { sharding: "OpaqueSharding", what, remedy: REMEDY })
    }

    pub(super) fn index_domains_within(
        &self,
        shape: &Shape,
        _: u64,
    ) -> Result<Vec<IndexDomain>, IfrtError> {
        self.index_domains(shape)
    }

    pub(super) fn shard_shapes_of(&self, shape: &Shape, _: u64) -> Result<Vec<Shape>, IfrtError> {
        self.shard_shape(shape).map(|shape| vec![shape])
    }

    on_devices!();
}

impl fmt::Display for OpaqueSharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { devices, memory_kind } = self;
        write!(f, "OpaqueSharding(devices: {devices}, memory_kind: {memory_kind})")
    }
}

impl Registered for OpaqueSharding {
    const TYPE_NAME: &'static str = "xla::ifrt::OpaqueSharding";
}

described_by_bytes! {
    /// Writes format 0 at every version.
    ToProto,
    /// Accepts format 0.
    FromProto for OpaqueSharding as OpaqueShardingProto
}

impl WireFormat for OpaqueSharding {
    const NAME: &'static str = "OpaqueSharding";

    fn capacity(&self) -> usize {
        self.devices.capacity()
    }

    fn can_write(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        self.devices.can_write(version)?;
        FORMATS.for_request(version).map(drop)
    }

    fn write(&self, version: SerDesVersion, out: &mut BackwardWriter) -> Result<(), EncodeError> {
        out.number(3, FORMATS.for_request(version)?);
        self.memory_kind.write(2, out);
        out.message(1, |out| self.devices.write(version, out))
    }

    fn read(message: Encoded<'_>, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        let (mut devices, mut memory_kind, mut recorded) = (Joined::default(), None, 0);
        let mut fields = Fields::new(Self::NAME, message.bytes());
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => devices.add(value.bytes()?),
                2 => memory_kind = Some(value.text()?),
                3 => recorded = value.number()?,
                _ => {}
            }
        }
        FORMATS.check_recorded(recorded)?;
        Ok(Self {
            devices: DeviceList::read(message.part(devices.bytes()), options)?,
            memory_kind: MemoryKind::from_message(memory_kind),
        })
    }

    fn check_options(options: &DeserializeOptions) -> Result<(), DecodeError> {
        options.require::<DeserializeShardingOptions>(Self::NAME).map(drop)
    }
}
