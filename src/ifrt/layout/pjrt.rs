//! Layouts as XLA describes them.

use std::{fmt, str::FromStr};

use bytes::Bytes;
use prost::Message as _;

use crate::{
    codec::{
        self, DecodeError, DeserializeOptions, EncodeError, Formats, Registered,
        fields::{Fields, Joined},
        wire_format::{Encoded, WireFormat, described_by_bytes},
    },
    ifrt::xla,
    proto::xla::ifrt,
    version::SerDesVersion,
    wire::BackwardWriter,
};

/// A layout as XLA describes it (`xla::ifrt::PjRtLayout`).
///
/// Array specs and the proxy carry it as text: [`to_text`](Self::to_text).
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "String", into = "String"))]
pub struct PjRtLayout {
    xla_layout: xla::Layout,
}

const FORMATS: Formats = Formats::of("PjRtLayout");

impl PjRtLayout {
    /// Wraps a layout of XLA as a layout of IFRT.
    pub const fn new(xla_layout: xla::Layout) -> Self {
        Self { xla_layout }
    }

    /// Returns the layout of XLA.
    pub const fn xla_layout(&self) -> &xla::Layout {
        &self.xla_layout
    }

    /// Returns the layout in the notation of HLO, the form in which array specs carry it.
    pub fn to_text(&self) -> String {
        self.xla_layout.to_string()
    }

    /// Parses a layout in the notation of HLO. As in upstream, the memory space becomes the default
    /// one.
    ///
    /// # Errors
    /// [`DecodeError::InvalidValue`] that gives the position of the first invalid byte.
    pub fn from_text(text: &[u8]) -> Result<Self, DecodeError> {
        let text = std::str::from_utf8(text).map_err(|error| {
            DecodeError::invalid_value(Self::NAME, format!("the text is not UTF-8: {error}"))
        })?;
        let layout: xla::Layout = text.parse().map_err(|error: xla::LayoutTextError| {
            DecodeError::invalid_value(Self::NAME, error.to_string())
        })?;
        Ok(Self { xla_layout: layout.with_memory_space(0) })
    }
}

impl Registered for PjRtLayout {
    const TYPE_NAME: &'static str = "xla::ifrt::PjRtLayout";
}

described_by_bytes! {
    /// Writes format 0 at every version.
    ToProto,
    /// Accepts format 0.
    FromProto for PjRtLayout as ifrt::PjRtLayoutProto
}

impl WireFormat for PjRtLayout {
    const NAME: &'static str = "PjRtLayout";

    fn can_write(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        FORMATS.for_request(version).map(drop)
    }

    fn write(&self, version: SerDesVersion, out: &mut BackwardWriter) -> Result<(), EncodeError> {
        out.number(2, FORMATS.for_request(version)?);
        out.bytes(1, &self.xla_layout.to_proto().encode_to_vec());
        Ok(())
    }

    fn read(message: Encoded<'_>, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        let (mut layout, mut recorded) = (Joined::default(), 0);
        let mut fields = Fields::new(Self::NAME, message.bytes());
        while let Some((number, value)) = fields.next()? {
            match number {
                1 => layout.add(value.bytes()?),
                2 => recorded = value.number()?,
                _ => {}
            }
        }
        FORMATS.check_recorded(recorded)?;
        let layout = codec::parse(Self::NAME, Bytes::copy_from_slice(layout.bytes()))?;
        Ok(Self { xla_layout: xla::Layout::from_proto(&layout, options)? })
    }
}

impl From<xla::Layout> for PjRtLayout {
    fn from(xla_layout: xla::Layout) -> Self {
        Self { xla_layout }
    }
}

impl FromStr for PjRtLayout {
    type Err = xla::LayoutTextError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        text.parse().map(Self::new)
    }
}

impl TryFrom<String> for PjRtLayout {
    type Error = xla::LayoutTextError;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        text.parse()
    }
}

impl From<PjRtLayout> for String {
    fn from(layout: PjRtLayout) -> Self {
        layout.to_text()
    }
}

impl fmt::Display for PjRtLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.xla_layout)
    }
}
