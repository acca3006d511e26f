use std::fmt;

use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, FromProto, Registered, ToProto,
        Validation,
    },
    ifrt::{
        DeserializeShardingOptions, DeviceList, IfrtError, IndexDomain, MemoryKind, Shape,
        ShardingParam, nested,
    },
    proto::xla::ifrt::ShardingParamShardingProto,
    version::SerDesVersion,
};

const FORMATS: Formats = Formats::of("ShardingParamSharding");

/// A [`ShardingParam`] on devices.
///
/// Builds from 0.12 on have dropped it: they refuse its type name. Here it is read and written at every version.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ShardingParamSharding {
    param: ShardingParam,
    devices: DeviceList,
    memory_kind: MemoryKind,
}

impl ShardingParamSharding {
    /// `param` on `devices`.
    ///
    /// # Errors
    /// [`IfrtError`] if `param` does not [verify](ShardingParam::verify), or is for another number of devices.
    pub fn new(
        param: ShardingParam,
        devices: DeviceList,
        memory_kind: MemoryKind,
    ) -> Result<Self, IfrtError> {
        param.verify(Validation::Strict)?;
        Self::new_lenient(param, devices, memory_kind)
    }

    /// As [`new`](Self::new), but `param` is not verified, as upstream reads it.
    ///
    /// # Errors
    /// [`IfrtError::CountMismatch`] if `param` is for another number of devices.
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

    /// How the array lies on the mesh.
    pub const fn param(&self) -> &ShardingParam {
        &self.param
    }

    /// The devices, by their logical numbers.
    pub const fn devices(&self) -> &DeviceList {
        &self.devices
    }

    /// The kind of memory.
    pub const fn memory_kind(&self) -> &MemoryKind {
        &self.memory_kind
    }

    /// Whether every device holds the whole array.
    pub fn is_fully_replicated(&self) -> bool {
        self.param.is_fully_replicated()
    }

    /// The shape of a shard.
    ///
    /// # Errors
    /// As [`ShardingParam::shard_shape`].
    pub fn shard_shape(&self, shape: &Shape) -> Result<Shape, IfrtError> {
        self.param.shard_shape(shape)
    }

    /// Which part of the array each device holds.
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

    pub(super) fn replace_devices(&mut self, devices: DeviceList) -> Result<(), IfrtError> {
        super::replace_devices(&mut self.devices, devices)
    }

    pub(super) fn set_memory_kind(&mut self, memory_kind: MemoryKind) {
        self.memory_kind = memory_kind;
    }
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

/// Writes format 0 at every version; the param inside has formats of its own.
impl ToProto for ShardingParamSharding {
    type Proto = ShardingParamShardingProto;

    fn to_proto(&self, version: SerDesVersion) -> Result<Self::Proto, EncodeError> {
        Ok(ShardingParamShardingProto {
            sharding_param: Some(self.param.to_proto(version)?),
            devices: Some(self.devices.to_proto(version)?),
            memory_kind: self.memory_kind.to_message(),
            version_number: FORMATS.for_request(version)?,
        })
    }

    fn can_serialize_at(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        self.param.can_serialize_at(version)?;
        self.devices.can_serialize_at(version)?;
        FORMATS.for_request(version).map(drop)
    }
}

/// Accepts format 0. The param must be for as many devices as there are; it is verified in strict mode only.
impl FromProto for ShardingParamSharding {
    type Proto = ShardingParamShardingProto;
    const NAME: &'static str = "ShardingParamSharding";

    fn from_proto(proto: &Self::Proto, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        Self::check_options(options)?;
        FORMATS.check_recorded(proto.version_number)?;
        let devices = nested(proto.devices.as_ref(), options)?;
        let memory_kind = MemoryKind::from_message(proto.memory_kind.as_deref());
        let param = nested(proto.sharding_param.as_ref(), options)?;
        Self::new_lenient(param, devices, memory_kind).map_err(|error| error.decoding(Self::NAME))
    }

    fn check_options(options: &DeserializeOptions) -> Result<(), DecodeError> {
        options.require::<DeserializeShardingOptions>(Self::NAME).map(drop)
    }
}
