//! Shardings that place the whole array on one device.

use std::fmt;

use super::on_devices::on_devices;
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, Registered,
        fields::Fields,
        wire_format::{Encoded, WireFormat, described_by_bytes},
    },
    ifrt::{
        DeserializeShardingOptions, DeviceId, DeviceList, IfrtError, IndexDomain, MemoryKind, Shape,
    },
    proto::xla::ifrt::SingleDeviceShardingProto,
    version::SerDesVersion,
    wire::BackwardWriter,
};

const FORMATS: Formats = Formats::of("SingleDeviceSharding");

/// A sharding that places the whole array on one device.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SingleDeviceSharding {
    // A list with one device, so that all kinds of shardings return their devices in the same way.
    devices: DeviceList,
    memory_kind: MemoryKind,
}

impl SingleDeviceSharding {
    /// Creates the sharding on `device`, in its default memory.
    pub fn new(device: DeviceId) -> Self {
        Self { devices: device.into(), memory_kind: MemoryKind::unset() }
    }

    /// Sets the kind of memory.
    #[must_use]
    pub fn with_memory_kind(mut self, memory_kind: impl Into<MemoryKind>) -> Self {
        self.memory_kind = memory_kind.into();
        self
    }

    /// Returns the device.
    pub fn device(&self) -> DeviceId {
        self.devices.ids().first().copied().unwrap_or_default()
    }

    /// Returns true: the only device holds the whole array.
    pub const fn is_fully_replicated(&self) -> bool {
        true
    }

    /// Returns `shape`: the only shard is the array.
    ///
    /// # Errors
    /// None.
    pub fn shard_shape(&self, shape: &Shape) -> Result<Shape, IfrtError> {
        Ok(shape.clone())
    }

    /// Returns one box, which is the whole array.
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

    on_devices!();
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

described_by_bytes! {
    /// Writes format 0 at every version.
    ToProto,
    /// Accepts format 0.
    FromProto for SingleDeviceSharding as SingleDeviceShardingProto
}

impl WireFormat for SingleDeviceSharding {
    const NAME: &'static str = "SingleDeviceSharding";

    fn can_write(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        FORMATS.for_request(version).map(drop)
    }

    fn write(&self, version: SerDesVersion, out: &mut BackwardWriter) -> Result<(), EncodeError> {
        out.number(3, FORMATS.for_request(version)?);
        self.memory_kind.write(2, out);
        out.number(1, self.device().0);
        Ok(())
    }

    fn read(message: Encoded<'_>, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        let (mut device, mut memory_kind, mut recorded) = (0, None, 0);
        let mut fields = Fields::new(Self::NAME, message.bytes());
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => device = value.number()?,
                2 => memory_kind = Some(value.text()?),
                3 => recorded = value.number()?,
                _ => {}
            }
        }
        let sharding: &DeserializeShardingOptions = options.require(Self::NAME)?;
        FORMATS.check_recorded(recorded)?;
        let devices = sharding.devices().device_list(vec![DeviceId(device)])?;
        Ok(Self { devices, memory_kind: MemoryKind::from_message(memory_kind) })
    }

    fn check_options(options: &DeserializeOptions) -> Result<(), DecodeError> {
        options.require::<DeserializeShardingOptions>(Self::NAME).map(drop)
    }
}
