use std::fmt;

use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, FromProto, Registered, ToProto,
    },
    ifrt::{
        DeserializeShardingOptions, DeviceId, DeviceList, IfrtError, IndexDomain, MemoryKind, Shape,
    },
    proto::xla::ifrt::SingleDeviceShardingProto,
    version::SerDesVersion,
};

const FORMATS: Formats = Formats::of("SingleDeviceSharding");

/// The whole array on one device.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SingleDeviceSharding {
    // A list of one, so that all kinds of shardings hand out their devices alike.
    devices: DeviceList,
    memory_kind: MemoryKind,
}

impl SingleDeviceSharding {
    /// The array on `device`, in its default memory.
    pub fn new(device: DeviceId) -> Self {
        Self { devices: device.into(), memory_kind: MemoryKind::unset() }
    }

    /// The same device with this kind of memory.
    #[must_use]
    pub fn with_memory_kind(mut self, memory_kind: impl Into<MemoryKind>) -> Self {
        self.memory_kind = memory_kind.into();
        self
    }

    /// The device.
    pub fn device(&self) -> DeviceId {
        self.devices.ids().first().copied().unwrap_or_default()
    }

    /// The device, as a list of one.
    pub const fn devices(&self) -> &DeviceList {
        &self.devices
    }

    /// The kind of memory.
    pub const fn memory_kind(&self) -> &MemoryKind {
        &self.memory_kind
    }

    /// True: the only device holds the whole array.
    pub const fn is_fully_replicated(&self) -> bool {
        true
    }

    /// The only shard is the array.
    ///
    /// # Errors
    /// None.
    pub fn shard_shape(&self, shape: &Shape) -> Result<Shape, IfrtError> {
        Ok(shape.clone())
    }

    /// The only shard is the array.
    ///
    /// # Errors
    /// None.
    pub fn index_domains(&self, shape: &Shape) -> Result<Vec<IndexDomain>, IfrtError> {
        Ok(vec![IndexDomain::whole(shape.clone())])
    }

    pub(super) fn index_domains_within(
        &self,
        shape: &Shape,
        _: u64,
    ) -> Result<Vec<IndexDomain>, IfrtError> {
        self.index_domains(shape)
    }

    pub(super) fn shard_shapes_of(&self, shape: &Shape, _: u64) -> Result<Vec<Shape>, IfrtError> {
        Ok(vec![shape.clone()])
    }

    pub(super) fn replace_devices(&mut self, devices: DeviceList) -> Result<(), IfrtError> {
        super::replace_devices(&mut self.devices, devices)
    }

    pub(super) fn set_memory_kind(&mut self, memory_kind: MemoryKind) {
        self.memory_kind = memory_kind;
    }
}

impl fmt::Display for SingleDeviceSharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (device, memory_kind) = (self.device(), &self.memory_kind);
        write!(f, "SingleDeviceSharding(device: {device}, memory_kind: {memory_kind})")
    }
}

impl Registered for SingleDeviceSharding {
    const TYPE_NAME: &'static str = "xla::ifrt::SingleDeviceSharding";
}

/// Writes format 0 at every version.
impl ToProto for SingleDeviceSharding {
    type Proto = SingleDeviceShardingProto;

    fn to_proto(&self, version: SerDesVersion) -> Result<Self::Proto, EncodeError> {
        Ok(SingleDeviceShardingProto {
            device_id: self.device().0,
            memory_kind: self.memory_kind.to_message(),
            version_number: FORMATS.for_request(version)?,
        })
    }

    fn can_serialize_at(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        FORMATS.for_request(version).map(drop)
    }
}

/// Accepts format 0.
impl FromProto for SingleDeviceSharding {
    type Proto = SingleDeviceShardingProto;
    const NAME: &'static str = "SingleDeviceSharding";

    fn from_proto(proto: &Self::Proto, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        let sharding: &DeserializeShardingOptions = options.require(Self::NAME)?;
        FORMATS.check_recorded(proto.version_number)?;
        let devices = sharding.devices().device_list(vec![DeviceId(proto.device_id)])?;
        let memory_kind = MemoryKind::from_message(proto.memory_kind.as_deref());
        Ok(Self { devices, memory_kind })
    }

    fn check_options(options: &DeserializeOptions) -> Result<(), DecodeError> {
        options.require::<DeserializeShardingOptions>(Self::NAME).map(drop)
    }
}
