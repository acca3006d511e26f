//! Specs of arrays without devices.

use std::fmt;

use super::{ArraySpec, DType, DeviceList, IfrtError, MemoryKind, PjRtLayout, Shape, ShardingSpec};
use crate::{
    codec::{DecodeError, DeserializeOptions, EncodeError, Formats, FromProto, ToProto, nested},
    proto::xla::ifrt::AbstractArraySpecProto,
    version::SerDesVersion,
};

const FORMATS: Formats = Formats::of("AbstractArraySpec");

/// The spec of an array whose devices are not chosen yet.
///
/// Known to builds since version 5. Its message cannot distinguish an unset memory kind from an
/// empty name: both are the default kind here.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct AbstractArraySpec {
    dtype: DType,
    shape: Shape,
    sharding_spec: ShardingSpec,
    #[cfg_attr(feature = "serde", serde(default, deserialize_with = "kind_with_a_name"))]
    memory_kind: MemoryKind,
    #[cfg_attr(
        feature = "serde",
        serde(default, deserialize_with = "super::array_spec::layout_in_default_space")
    )]
    layout: Option<PjRtLayout>,
}

/// Replaces an empty name by the default kind.
fn named(memory_kind: MemoryKind) -> MemoryKind {
    let is_empty = memory_kind.name() == Some("");
    if is_empty { MemoryKind::unset() } else { memory_kind }
}

#[cfg(feature = "serde")]
fn kind_with_a_name<'de, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<MemoryKind, D::Error> {
    serde::Deserialize::deserialize(deserializer).map(named)
}

impl AbstractArraySpec {
    /// Creates an array in the default layout, in the default memory of its devices.
    pub fn new(dtype: DType, shape: Shape, sharding_spec: impl Into<ShardingSpec>) -> Self {
        let sharding_spec = sharding_spec.into();
        Self { dtype, shape, sharding_spec, memory_kind: MemoryKind::unset(), layout: None }
    }

    /// Sets the kind of memory; an empty name is the default kind.
    #[must_use]
    pub fn with_memory_kind(mut self, memory_kind: impl Into<MemoryKind>) -> Self {
        self.memory_kind = named(memory_kind.into());
        self
    }

    /// Sets the layout. Its memory space becomes the default one: a spec does not carry it.
    #[must_use]
    pub fn with_layout(mut self, layout: impl Into<PjRtLayout>) -> Self {
        self.layout = Some(super::array_spec::in_default_space(layout.into()));
        self
    }

    /// Returns the element type.
    pub const fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the shape of the whole array.
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// Returns the sharding of the array, without devices.
    pub const fn sharding_spec(&self) -> &ShardingSpec {
        &self.sharding_spec
    }

    /// Returns the kind of memory.
    pub const fn memory_kind(&self) -> &MemoryKind {
        &self.memory_kind
    }

    /// Returns the layout; `None` for the default.
    pub const fn layout(&self) -> Option<&PjRtLayout> {
        self.layout.as_ref()
    }

    /// Returns the array on `devices`, one per shard.
    ///
    /// # Errors
    /// [`IfrtError`] if there are not as many devices as shards.
    pub fn on(&self, devices: DeviceList) -> Result<ArraySpec, IfrtError> {
        let sharding = self.sharding_spec.on(devices, self.memory_kind.clone())?;
        let spec = ArraySpec::new(self.dtype, self.shape.clone(), sharding);
        Ok(match &self.layout {
            Some(layout) => spec.with_layout(layout.clone()),
            None => spec,
        })
    }
}

/// Removes the devices from an array spec.
impl TryFrom<&ArraySpec> for AbstractArraySpec {
    type Error = IfrtError;

    fn try_from(spec: &ArraySpec) -> Result<Self, Self::Error> {
        let sharding = spec.sharding();
        let sharding_spec = ShardingSpec::try_from(sharding)?;
        let mut result = Self::new(spec.dtype(), spec.shape().clone(), sharding_spec)
            .with_memory_kind(sharding.memory_kind().clone());
        result.layout = spec.layout().cloned();
        Ok(result)
    }
}

impl fmt::Display for AbstractArraySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.dtype, self.shape)?;
        if let Some(layout) = &self.layout {
            write!(f, "{layout}")?;
        }
        write!(f, " {}, memory_kind: {}", self.sharding_spec, self.memory_kind)
    }
}

/// Writes format 0 at version 5 and above.
impl ToProto for AbstractArraySpec {
    type Proto = AbstractArraySpecProto;

    fn to_proto(&self, version: SerDesVersion) -> Result<Self::Proto, EncodeError> {
        Ok(AbstractArraySpecProto {
            version_number: FORMATS.for_request(version)?,
            dtype: Some(self.dtype.to_proto(version)?),
            shape: Some(self.shape.to_proto(version)?),
            sharding_spec: Some(self.sharding_spec.to_proto(version)?),
            memory_kind: self.memory_kind.to_message().unwrap_or_default(),
            layout: self.layout.as_ref().map(|layout| layout.to_text().into()),
        })
    }

    fn can_serialize_at(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        FORMATS.for_request(version)?;
        self.dtype.can_serialize_at(version)?;
        self.shape.can_serialize_at(version)?;
        self.sharding_spec.can_serialize_at(version)
    }
}

/// Accepts format 0. No options are needed.
impl FromProto for AbstractArraySpec {
    type Proto = AbstractArraySpecProto;
    const NAME: &'static str = "AbstractArraySpec";

    fn from_proto(proto: &Self::Proto, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        FORMATS.check_recorded(proto.version_number)?;
        let dtype = nested(proto.dtype.as_ref(), options)?;
        let shape = nested(proto.shape.as_ref(), options)?;
        let sharding_spec: ShardingSpec = nested(proto.sharding_spec.as_ref(), options)?;
        let mut spec =
            Self::new(dtype, shape, sharding_spec).with_memory_kind(proto.memory_kind.as_str());
        spec.layout = proto.layout.as_ref().map(|text| PjRtLayout::from_text(text)).transpose()?;
        Ok(spec)
    }
}
