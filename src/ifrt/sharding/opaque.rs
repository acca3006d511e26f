use std::fmt;

use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, FromProto, Registered, ToProto,
    },
    ifrt::{
        DeserializeShardingOptions, DeviceList, IfrtError, IndexDomain, MemoryKind, Shape, nested,
    },
    proto::xla::ifrt::OpaqueShardingProto,
    version::SerDesVersion,
};

const FORMATS: Formats = Formats::of("OpaqueSharding");
const REMEDY: &str = "use a sharding that describes its shards, such as a ConcreteEvenSharding";

/// A sharding of which only the devices are known.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct OpaqueSharding {
    devices: DeviceList,
    memory_kind: MemoryKind,
}

impl OpaqueSharding {
    /// Shards on these devices.
    pub const fn new(devices: DeviceList, memory_kind: MemoryKind) -> Self {
        Self { devices, memory_kind }
    }

    /// The devices.
    pub const fn devices(&self) -> &DeviceList {
        &self.devices
    }

    /// The kind of memory.
    pub const fn memory_kind(&self) -> &MemoryKind {
        &self.memory_kind
    }

    /// False: it is not known.
    pub const fn is_fully_replicated(&self) -> bool {
        false
    }

    /// Not known.
    ///
    /// # Errors
    /// [`IfrtError::NotKnown`], always.
    pub fn shard_shape(&self, _: &Shape) -> Result<Shape, IfrtError> {
        let what = "shard shape";
        Err(IfrtError::NotKnown { sharding: "OpaqueSharding", what, remedy: REMEDY })
    }

    /// Not known.
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

    pub(super) fn replace_devices(&mut self, devices: DeviceList) -> Result<(), IfrtError> {
        super::replace_devices(&mut self.devices, devices)
    }

    pub(super) fn set_memory_kind(&mut self, memory_kind: MemoryKind) {
        self.memory_kind = memory_kind;
    }
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

/// Writes format 0 at every version.
impl ToProto for OpaqueSharding {
    type Proto = OpaqueShardingProto;

    fn to_proto(&self, version: SerDesVersion) -> Result<Self::Proto, EncodeError> {
        Ok(OpaqueShardingProto {
            devices: Some(self.devices.to_proto(version)?),
            memory_kind: self.memory_kind.to_message(),
            version_number: FORMATS.for_request(version)?,
        })
    }

    fn can_serialize_at(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        self.devices.can_serialize_at(version)?;
        FORMATS.for_request(version).map(drop)
    }
}

/// Accepts format 0.
impl FromProto for OpaqueSharding {
    type Proto = OpaqueShardingProto;
    const NAME: &'static str = "OpaqueSharding";

    fn from_proto(proto: &Self::Proto, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        Self::check_options(options)?;
        FORMATS.check_recorded(proto.version_number)?;
        Ok(Self {
            devices: nested(proto.devices.as_ref(), options)?,
            memory_kind: MemoryKind::from_message(proto.memory_kind.as_deref()),
        })
    }

    fn check_options(options: &DeserializeOptions) -> Result<(), DecodeError> {
        options.require::<DeserializeShardingOptions>(Self::NAME).map(drop)
    }
}
