//! Programs and options that only a plug-in understands.

use std::fmt;

use bytes::Bytes;

use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, FromProto, Registered, ToProto,
    },
    version::SerDesVersion,
};

const PROGRAM_FORMATS: Formats = Formats::of("PluginProgram");
const OPTIONS_FORMATS: Formats = Formats::of("PluginCompileOptions");

/// The first bytes of a plug-in program.
const PREFIX: &[u8; 28] = b"__serialized_plugin_program ";

/// A program that a PJRT plug-in understands, as bytes (`xla::ifrt::PluginProgram`).
///
/// It has no message and no version: its bytes are a prefix followed by the program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PluginProgram {
    data: Bytes,
}

impl PluginProgram {
    /// Creates the program with this data.
    pub fn new(data: impl Into<Bytes>) -> Self {
        Self { data: data.into() }
    }

    /// Returns the data, without the prefix.
    pub const fn data(&self) -> &Bytes {
        &self.data
    }
}

impl fmt::Display for PluginProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PluginProgram({} bytes)", self.data.len())
    }
}

impl Registered for PluginProgram {
    const TYPE_NAME: &'static str = "xla::ifrt::PluginProgram";
}

/// The "message" is the bytes themselves, the same at every version.
impl ToProto for PluginProgram {
    type Proto = Bytes;

    fn to_proto(&self, version: SerDesVersion) -> Result<Bytes, EncodeError> {
        self.can_serialize_at(version)?;
        Ok([PREFIX, &self.data[..]].concat().into())
    }

    fn can_serialize_at(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        PROGRAM_FORMATS.for_request(version).map(drop)
    }

    fn to_bytes(&self, version: SerDesVersion) -> Result<Bytes, EncodeError> {
        self.to_proto(version)
    }
}

impl FromProto for PluginProgram {
    type Proto = Bytes;
    const NAME: &'static str = "PluginProgram";

    fn from_proto(bytes: &Bytes, _: &DeserializeOptions) -> Result<Self, DecodeError> {
        if bytes.starts_with(PREFIX) {
            return Ok(Self { data: bytes.slice(PREFIX.len()..) });
        }
        Err(DecodeError::invalid_value(
            Self::NAME,
            "the bytes do not begin with the prefix `__serialized_plugin_program `",
        ))
    }

    fn from_bytes(bytes: Bytes, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        Self::from_proto(&bytes, options)
    }
}

/// The options of a plug-in program, which are always empty (`xla::ifrt::PluginCompileOptions`).
///
/// Written as empty bytes. Any content is ignored when read, as in upstream; strict mode refuses
/// it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct PluginCompileOptions {}

impl PluginCompileOptions {
    /// Creates the options.
    pub const fn new() -> Self {
        Self {}
    }
}

impl fmt::Display for PluginCompileOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PluginCompileOptions()")
    }
}

impl Registered for PluginCompileOptions {
    const TYPE_NAME: &'static str = "xla::ifrt::PluginCompileOptions";
}

/// The "message" is empty bytes at every version.
impl ToProto for PluginCompileOptions {
    type Proto = Bytes;

    fn to_proto(&self, version: SerDesVersion) -> Result<Bytes, EncodeError> {
        self.can_serialize_at(version)?;
        Ok(Bytes::new())
    }

    fn can_serialize_at(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        OPTIONS_FORMATS.for_request(version).map(drop)
    }

    fn to_bytes(&self, version: SerDesVersion) -> Result<Bytes, EncodeError> {
        self.to_proto(version)
    }
}

impl FromProto for PluginCompileOptions {
    type Proto = Bytes;
    const NAME: &'static str = "PluginCompileOptions";

    fn from_proto(bytes: &Bytes, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        if options.is_strict() && !bytes.is_empty() {
            let message = format!("found {} bytes; expected none", bytes.len());
            return Err(DecodeError::invalid_value(Self::NAME, message));
        }
        Ok(Self {})
    }

    fn from_bytes(bytes: Bytes, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        Self::from_proto(&bytes, options)
    }
}
