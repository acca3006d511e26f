//! Specs of arrays: everything but the data.

use std::fmt;

use super::{DType, IfrtError, PjRtLayout, Shape, Sharding};
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats,
        fields::{Fields, Joined},
        wire_format::{Encoded, WireFormat, described_by_bytes},
    },
    proto::xla::ifrt::ArraySpecProto,
    version::SerDesVersion,
    wire::BackwardWriter,
};

const FORMATS: Formats = Formats::of("ArraySpec");

/// The spec of an array without its data: element type, shape, sharding, and a layout if it is not
/// the default.
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
    /// Creates an array in the default layout.
    pub fn new(dtype: DType, shape: Shape, sharding: impl Into<Sharding>) -> Self {
        Self { dtype, shape, sharding: sharding.into(), layout: None }
    }

    /// Sets the layout. Its memory space becomes the default one: an array spec does not carry it.
    #[must_use]
    pub fn with_layout(mut self, layout: impl Into<PjRtLayout>) -> Self {
        self.layout = Some(in_default_space(layout.into()));
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

    /// Returns the sharding of the array over devices.
    pub const fn sharding(&self) -> &Sharding {
        &self.sharding
    }

    /// Returns the layout; `None` for the default.
    pub const fn layout(&self) -> Option<&PjRtLayout> {
        self.layout.as_ref()
    }

    /// Returns the size of the whole array in bytes, with each element in whole bytes as in
    /// messages; `None` for element types without a fixed size.
    ///
    /// # Errors
    /// [`IfrtError::Overflow`] if it does not fit 63 bits.
    pub fn byte_size(&self) -> Result<Option<i64>, IfrtError> {
        let Some(bytes) = self.dtype.unpacked_byte_size() else { return Ok(None) };
        let size = self.shape.element_count()?.checked_mul(bytes.into());
        size.map(Some).ok_or(IfrtError::Overflow { what: "the size of the array", bits: 63 })
    }
}

/// Resets the memory space of `layout`. The text form in an array spec has no place for it, and
/// readers reset it too.
pub(super) fn in_default_space(layout: PjRtLayout) -> PjRtLayout {
    match layout.xla_layout().memory_space() {
        0 => layout,
        _ => layout.xla_layout().clone().with_memory_space(0).into(),
    }
}

/// Formats as `F32[512,512] SingleDeviceSharding(device: 0, memory_kind: (default))`.
impl fmt::Display for ArraySpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.dtype, self.shape)?;
        if let Some(layout) = &self.layout {
            write!(f, "{layout}")?;
        }
        write!(f, " {}", self.sharding)
    }
}

described_by_bytes! {
    /// Writes format 0 at every version.
    ToProto,
    /// Accepts format 0. Needs [`DeserializeShardingOptions`](super::DeserializeShardingOptions).
    FromProto for ArraySpec as ArraySpecProto
}

/// The approximate size in bytes of an encoded array spec without its sharding.
const BESIDES_SHARDING: usize = 192;

impl WireFormat for ArraySpec {
    const NAME: &'static str = "ArraySpec";

    fn capacity(&self) -> usize {
        BESIDES_SHARDING + self.sharding.capacity()
    }

    fn can_write(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        self.dtype.can_write(version)?;
        self.shape.can_write(version)?;
        self.sharding.can_write(version)?;
        FORMATS.for_request(version).map(drop)
    }

    fn write(&self, version: SerDesVersion, out: &mut BackwardWriter) -> Result<(), EncodeError> {
        out.number(5, FORMATS.for_request(version)?);
        if let Some(layout) = &self.layout {
            out.bytes(4, layout.to_text().as_bytes());
        }
        out.message(3, |out| self.sharding.write(version, out))?;
        out.message(2, |out| self.shape.write(version, out))?;
        out.message(1, |out| self.dtype.write(version, out))
    }

    fn read(message: Encoded<'_>, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        let (mut dtype, mut shape, mut sharding) = <(Joined, Joined, Joined)>::default();
        let (mut layout, mut recorded) = (None, 0);
        let mut fields = Fields::new(Self::NAME, message.bytes());
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => dtype.add(value.bytes()?),
                2 => shape.add(value.bytes()?),
                3 => sharding.add(value.bytes()?),
                4 => layout = Some(value.bytes()?),
                5 => recorded = value.number()?,
                _ => {}
            }
        }
        FORMATS.check_recorded(recorded)?;
        Ok(Self {
            dtype: DType::read(message.part(dtype.bytes()), options)?,
            shape: Shape::read(message.part(shape.bytes()), options)?,
            sharding: Sharding::read(message.part(sharding.bytes()), options)?,
            layout: layout.map(PjRtLayout::from_text).transpose()?,
        })
    }
}

#[cfg(test)]
mod tests;

#[cfg(test)]
mod wire_tests;
