//! Shardings that map dimensions to the axes of a mesh, over a list of devices.

use std::fmt;

use super::on_devices::on_devices;
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, Registered, Validation,
        fields::{Fields, Joined},
        wire_format::{Encoded, WireFormat, described_by_bytes},
    },
    ifrt::{
        DeserializeShardingOptions, DeviceList, IfrtError, IndexDomain, MemoryKind, Shape,
        ShardingParam,
    },
    proto::xla::ifrt::ShardingParamShardingProto,
    version::SerDesVersion,
    wire::BackwardWriter,
};

const FORMATS: Formats = Formats::of("ShardingParamSharding");

/// A [`ShardingParam`] on devices.
///
/// Builds since 0.12 no longer have it: they refuse its type name. Here it is read and written at
/// every version.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ShardingParamSharding {
    param: ShardingParam,
    devices: DeviceList,
    memory_kind: MemoryKind,
}

impl ShardingParamSharding {
    /// Creates the sharding `param` on `devices`.
    ///
    /// # Errors
    /// [`IfrtError`] if `param` does not [verify](ShardingParam::verify), or has another number of
    /// devices.
    pub fn new(
        param: ShardingParam,
        devices: DeviceList,
        memory_kind: MemoryKind,
    ) -> Result<Self, IfrtError> {
        param.verify(Validation::Strict)?;
        Self::new_lenient(param, devices, memory_kind)
    }

    /// Like [`new`](Self::new), but does not verify `param`, like upstream's reader.
    ///
    /// # Errors
    /// [`IfrtError::CountMismatch`] if `param` has another number of devices.
    pub fn new_lenient(
        param: ShardingParam,
        devices: DeviceList,
        memory_kind: MemoryKind,
    ) -> Result<Self, IfrtError> {
        let expected = param.device_count()?;
        if usize::try_from(expected) != Ok(devices.len()) {
            return Err(IfrtError::Invalid(format!(
                "found {} devices; expected {expected}, the product of the axis sizes of {param}",
                devices.len()
            )));
        }
        Ok(Self { param, devices, memory_kind })
    }

    /// Returns the parameters of the sharding: the mapping of the array to the mesh.
    pub const fn param(&self) -> &ShardingParam {
        &self.param
    }

    /// Returns true if every device holds the whole array.
    pub fn is_fully_replicated(&self) -> bool {
        self.param.is_fully_replicated()
    }

    /// Returns the shape of a shard.
    ///
    /// # Errors
    /// As [`ShardingParam::shard_shape`].
    pub fn shard_shape(&self, shape: &Shape) -> Result<Shape, IfrtError> {
        self.param.shard_shape(shape)
    }

    /// Returns the part of the array that each device holds.
    ///
    /// # Errors
    /// As [`ShardingParam::index_domains`].
    pub fn index_domains(&self, shape: &Shape) -> Result<Vec<IndexDomain>, IfrtError> {
        self.param.index_domains(shape)
    }

    pub(super) fn index_domains_within(
        &self,
        shape: &Shape,
        limit: u64,
    ) -> Result<Vec<IndexDomain>, IfrtError> {
        self.param.index_domains_within(shape, limit)
    }

    pub(super) fn shard_shapes_of(&self, shape: &Shape, _: u64) -> Result<Vec<Shape>, IfrtError> {
        Ok(vec![self.shard_shape(shape)?; self.devices.len()])
    }

    on_devices!();
}

impl fmt::Display for ShardingParamSharding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { param, devices, memory_kind } = self;
        write!(f, "ShardingParamSharding({param}, devices: {devices}, memory_kind: {memory_kind})")
    }
}

impl Registered for ShardingParamSharding {
    const TYPE_NAME: &'static str = "xla::ifrt::ShardingParamSharding";
}

described_by_bytes! {
    /// Writes format 0 at every version; the param inside has formats of its own.
    ToProto,
    /// Accepts format 0. The param must have as many devices as the list; it is verified in strict
    /// mode only.
    FromProto for ShardingParamSharding as ShardingParamShardingProto
}

impl WireFormat for ShardingParamSharding {
    const NAME: &'static str = "ShardingParamSharding";

    fn capacity(&self) -> usize {
        self.devices.capacity()
    }

    fn can_write(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        self.param.can_write(version)?;
        self.devices.can_write(version)?;
        FORMATS.for_request(version).map(drop)
    }

    fn write(&self, version: SerDesVersion, out: &mut BackwardWriter) -> Result<(), EncodeError> {
        out.number(4, FORMATS.for_request(version)?);
        self.memory_kind.write(3, out);
        out.message(2, |out| self.devices.write(version, out))?;
        out.message(1, |out| self.param.write(version, out))
    }

    fn read(message: Encoded<'_>, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        let (mut param, mut devices) = <(Joined, Joined)>::default();
        let (mut memory_kind, mut recorded) = (None, 0);
        let mut fields = Fields::new(Self::NAME, message.bytes());
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => param.add(value.bytes()?),
                2 => devices.add(value.bytes()?),
                3 => memory_kind = Some(value.text()?),
                4 => recorded = value.number()?,
                _ => {}
            }
        }
        FORMATS.check_recorded(recorded)?;
        let devices = DeviceList::read(message.part(devices.bytes()), options)?;
        let memory_kind = MemoryKind::from_message(memory_kind);
        let param = ShardingParam::read(message.part(param.bytes()), options)?;
        Self::new_lenient(param, devices, memory_kind).map_err(|error| error.decoding(Self::NAME))
    }

    fn check_options(options: &DeserializeOptions) -> Result<(), DecodeError> {
        options.require::<DeserializeShardingOptions>(Self::NAME).map(drop)
    }
}
