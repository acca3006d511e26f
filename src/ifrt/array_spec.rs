use std::fmt;

use bytes::Bytes;

use super::{DType, IfrtError, PjRtLayout, Shape, Sharding, direct, nested};
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, FromProto, ToProto, decode_message,
    },
    proto::xla::ifrt::ArraySpecProto,
    version::SerDesVersion,
    wire::BackwardWriter,
};

const FORMATS: Formats = Formats::of("ArraySpec");

/// What an array is, apart from its data: element type, shape, sharding, and a layout if it is not the default.
///
/// ```
/// use serdes::codec::{FromProto, ToProto};
/// use serdes::ifrt::{ArraySpec, DType, DeviceId, DeviceList, Shape, SingleDeviceSharding, with_devices};
/// use serdes::version::SerDesWeek4OldVersionAccessor;
///
/// let spec = ArraySpec::new(
///     DType::F32,
///     Shape::new([512, 512])?,
///     SingleDeviceSharding::new(DeviceId(0)),
/// );
/// let message = spec.to_proto(SerDesWeek4OldVersionAccessor::get())?;
/// let devices = with_devices(DeviceList::from([0, 1]));
/// assert_eq!(ArraySpec::from_proto(&message, &devices)?, spec);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ArraySpec {
    dtype: DType,
    shape: Shape,
    sharding: Sharding,
    #[cfg_attr(feature = "serde", serde(default, deserialize_with = "layout_in_default_space"))]
    layout: Option<PjRtLayout>,
}

#[cfg(feature = "serde")]
pub(super) fn layout_in_default_space<'de, D>(
    deserializer: D,
) -> Result<Option<PjRtLayout>, D::Error>
where
    D: serde::Deserializer<'de>,
{
    let layout: Option<PjRtLayout> = serde::Deserialize::deserialize(deserializer)?;
    Ok(layout.map(in_default_space))
}

impl ArraySpec {
    /// An array in the default layout.
    pub fn new(dtype: DType, shape: Shape, sharding: impl Into<Sharding>) -> Self {
        Self { dtype, shape, sharding: sharding.into(), layout: None }
    }

    /// The same array in this layout. Its memory space becomes the default one: an array spec does not carry it.
    #[must_use]
    pub fn with_layout(mut self, layout: impl Into<PjRtLayout>) -> Self {
        self.layout = Some(in_default_space(layout.into()));
        self
    }

    /// The element type.
    pub const fn dtype(&self) -> DType {
        self.dtype
    }

    /// The shape of the whole array.
    pub const fn shape(&self) -> &Shape {
        &self.shape
    }

    /// How the array is spread over devices.
    pub const fn sharding(&self) -> &Sharding {
        &self.sharding
    }

    /// The layout; `None` for the default.
    pub const fn layout(&self) -> Option<&PjRtLayout> {
        self.layout.as_ref()
    }

    /// The size of the whole array in bytes, each element in whole bytes as on the wire; `None` for element types
    /// without a fixed size.
    ///
    /// # Errors
    /// [`IfrtError::Overflow`] if it does not fit 63 bits.
    pub fn byte_size(&self) -> Result<Option<i64>, IfrtError> {
        let Some(bytes) = self.dtype.unpacked_byte_size() else { return Ok(None) };
        let size = self.shape.element_count()?.checked_mul(bytes.into());
        size.map(Some).ok_or(IfrtError::Overflow { what: "the size of the array", bits: 63 })
    }
}

/// The text form of a layout has no place for the memory space in an array spec: readers reset it.
pub(super) fn in_default_space(layout: PjRtLayout) -> PjRtLayout {
    match layout.xla_layout().memory_space() {
        0 => layout,
        _ => layout.xla_layout().clone().with_memory_space(0).into(),
    }
}

/// `F32[512,512] SingleDeviceSharding(device: 0, memory_kind: (default))`
impl fmt::Display for ArraySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.dtype, self.shape)?;
        if let Some(layout) = &self.layout {
            write!(f, "{layout}")?;
        }
        write!(f, " {}", self.sharding)
    }
}

/// Writes format 0 at every version.
impl ToProto for ArraySpec {
    type Proto = ArraySpecProto;

    fn to_proto(&self, version: SerDesVersion) -> Result<ArraySpecProto, EncodeError> {
        Ok(ArraySpecProto {
            dtype: Some(self.dtype.to_proto(version)?),
            shape: Some(self.shape.to_proto(version)?),
            sharding: Some(self.sharding.to_proto(version)?),
            layout: self.layout.as_ref().map(|layout| layout.to_text().into()),
            version_number: FORMATS.for_request(version)?,
        })
    }

    fn can_serialize_at(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        self.dtype.can_serialize_at(version)?;
        self.shape.can_serialize_at(version)?;
        self.sharding.can_serialize_at(version)?;
        FORMATS.for_request(version).map(drop)
    }

    fn to_bytes(&self, version: SerDesVersion) -> Result<Bytes, EncodeError> {
        let mut out = BackwardWriter::with_capacity(direct::capacity_of(self));
        direct::write_array_spec(self, version, &mut out)?;
        Ok(out.finish())
    }
}

/// Accepts format 0. Needs [`DeserializeShardingOptions`](super::DeserializeShardingOptions).
impl FromProto for ArraySpec {
    type Proto = ArraySpecProto;
    const NAME: &'static str = "ArraySpec";

    fn from_proto(
        proto: &ArraySpecProto,
        options: &DeserializeOptions,
    ) -> Result<Self, DecodeError> {
        FORMATS.check_recorded(proto.version_number)?;
        Ok(Self {
            dtype: nested(proto.dtype.as_ref(), options)?,
            shape: nested(proto.shape.as_ref(), options)?,
            sharding: nested(proto.sharding.as_ref(), options)?,
            layout: proto.layout.as_ref().map(|text| PjRtLayout::from_text(text)).transpose()?,
        })
    }

    fn from_bytes(bytes: Bytes, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        if bytes.len() as u64 <= options.maximum_bytes()
            && let Some(spec) = direct::read_array_spec(&bytes, options)
        {
            return Ok(spec);
        }
        // Not plain, or wrong: the message says which.
        Self::check_options(options)?;
        Self::from_owned_proto(decode_message(Self::NAME, bytes, options)?, options)
    }
}

#[cfg(test)]
#[path = "array_spec_tests.rs"]
mod tests;
