//! Metadata of an XLA executable: its inputs and outputs, and the serialized executable that
//! contains them.

use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};
use prost::encoding;

use super::XlaExecutableVersion;
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, FromProto, ToProto, decode_message,
        nested, serde_forms::serde_as_message,
    },
    ifrt::{DType, Layout, Shape, xla::OpSharding},
    proto::xla::ifrt::{
        SerializedXlaExecutableMetadata, serialized_xla_executable_metadata as wire,
    },
    version::{Ifrt, Line as _, SerDesVersion},
};

/// The type has one format, which records the requested number.
const FORMATS: Formats = Formats::of("XlaExecutableMetadata");

/// One output of an executable.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct OutputSpec {
    /// The element type.
    pub dtype: DType,
    /// The shape of a shard.
    pub shard_shape: Shape,
    /// The shape of the whole array, if the writer knew it.
    pub shape: Option<Shape>,
    /// The layout; `None` for the default.
    pub layout: Option<Layout>,
    /// The kind of memory; empty for the default.
    pub memory_kind: String,
    /// Sharding of the array over the devices of the executable.
    pub op_sharding: Option<OpSharding>,
}

/// One parameter of an executable.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct ParameterSpec {
    /// The element type, if the writer knew it.
    pub dtype: Option<DType>,
    /// The shape, if the writer knew it.
    pub shape: Option<Shape>,
    /// The layout, which real writers always set.
    pub layout: Option<Layout>,
    /// The kind of memory; empty for the default.
    pub memory_kind: String,
    /// Sharding of the array over the devices of the executable.
    pub op_sharding: Option<OpSharding>,
    /// True if an execution takes over the array's memory.
    pub donated_input: bool,
}

/// Header of a serialized XLA executable (`SerializedXlaExecutableMetadata`).
///
/// The requested version is recorded, and passed on to all nested values. (Upstream always writes
/// its four-weeks-old version; a caller who wants that requests it.)
#[derive(Clone, Debug, Default, PartialEq)]
pub struct XlaExecutableMetadata {
    runtime_name: String,
    computation_name: String,
    portable: bool,
    outputs: Vec<OutputSpec>,
    parameters: Vec<ParameterSpec>,
    executable_version: Option<XlaExecutableVersion>,
    outputs_bundle_slice_sizes: Vec<i32>,
}

impl XlaExecutableMetadata {
    /// The runtime that real executables name.
    pub const PJRT_IFRT: &'static str = "pjrt_ifrt";

    /// Creates the metadata of the named computation, for the runtime `pjrt_ifrt`.
    pub fn new(computation_name: impl Into<String>) -> Self {
        Self {
            runtime_name: Self::PJRT_IFRT.to_owned(),
            computation_name: computation_name.into(),
            ..Self::default()
        }
    }

    /// Sets the name of the runtime.
    #[must_use]
    pub fn with_runtime_name(mut self, name: impl Into<String>) -> Self {
        self.runtime_name = name.into();
        self
    }

    /// Sets the outputs.
    ///
    /// # Errors
    /// [`EncodeError::InvalidValue`] if some of the outputs have a sharding and others none.
    pub fn with_outputs(
        mut self,
        outputs: impl Into<Vec<OutputSpec>>,
    ) -> Result<Self, EncodeError> {
        self.outputs = outputs.into();
        match self.mixed_shardings() {
            None => Ok(self),
            Some(message) => Err(EncodeError::invalid_value(Self::NAME, message)),
        }
    }

    /// Sets the parameters.
    #[must_use]
    pub fn with_parameters(mut self, parameters: impl Into<Vec<ParameterSpec>>) -> Self {
        self.parameters = parameters.into();
        self
    }

    /// With `true`, declares that the executable runs on any device.
    #[must_use]
    pub fn with_portable(mut self, portable: bool) -> Self {
        self.portable = portable;
        self
    }

    /// Sets the platform and the runtime interface that the executable needs.
    #[must_use]
    pub fn with_executable_version(mut self, version: XlaExecutableVersion) -> Self {
        self.executable_version = Some(version);
        self
    }

    /// Sets the bundles of outputs: the number of outputs in each.
    #[must_use]
    pub fn with_outputs_bundle_slice_sizes(mut self, sizes: impl Into<Vec<i32>>) -> Self {
        self.outputs_bundle_slice_sizes = sizes.into();
        self
    }

    /// Returns the runtime that the executable is for.
    pub fn runtime_name(&self) -> &str {
        &self.runtime_name
    }

    /// Returns the name of the computation.
    pub fn computation_name(&self) -> &str {
        &self.computation_name
    }

    /// Returns true if the executable runs on any device.
    pub const fn portable(&self) -> bool {
        self.portable
    }

    /// Returns the outputs.
    pub fn outputs(&self) -> &[OutputSpec] {
        &self.outputs
    }

    /// Returns the parameters.
    pub fn parameters(&self) -> &[ParameterSpec] {
        &self.parameters
    }

    /// Returns the platform and the runtime interface that the executable needs.
    pub const fn executable_version(&self) -> Option<&XlaExecutableVersion> {
        self.executable_version.as_ref()
    }

    /// Returns the number of outputs in each bundle.
    pub fn outputs_bundle_slice_sizes(&self) -> &[i32] {
        &self.outputs_bundle_slice_sizes
    }

    fn mixed_shardings(&self) -> Option<String> {
        let sharded = self.outputs.iter().filter(|output| output.op_sharding.is_some()).count();
        (sharded != 0 && sharded != self.outputs.len()).then(|| {
            format!(
                "{sharded} of {} outputs have a sharding of XLA; expected all of them or none",
                self.outputs.len()
            )
        })
    }
}

serde_as_message!(
    XlaExecutableMetadata,
    |value| value.to_bytes(crate::codec::at::requested()),
    |bytes| Self::from_bytes(bytes, &DeserializeOptions::new())
);

/// Formats as `XlaExecutableMetadata(jit_f, 2 parameters, 2 outputs)`.
impl fmt::Display for XlaExecutableMetadata {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (parameters, outputs) = (self.parameters.len(), self.outputs.len());
        let name = &self.computation_name;
        write!(f, "XlaExecutableMetadata({name}, {parameters} parameters, {outputs} outputs)")
    }
}

fn write<T: ToProto>(
    value: Option<&T>,
    version: SerDesVersion,
) -> Result<Option<T::Proto>, EncodeError> {
    value.map(|value| value.to_proto(version)).transpose()
}

fn read<T: FromProto>(
    message: Option<&T::Proto>,
    options: &DeserializeOptions,
) -> Result<Option<T>, DecodeError> {
    message.map(|message| T::from_proto(message, options)).transpose()
}

fn read_sharding(
    message: Option<&crate::proto::xla::OpSharding>,
) -> Result<Option<OpSharding>, DecodeError> {
    let read = |message: &crate::proto::xla::OpSharding| {
        OpSharding::from_proto(XlaExecutableMetadata::NAME, message.clone())
    };
    message.map(read).transpose()
}

/// Records the requested version.
impl ToProto for XlaExecutableMetadata {
    type Proto = SerializedXlaExecutableMetadata;

    fn to_proto(&self, version: SerDesVersion) -> Result<Self::Proto, EncodeError> {
        FORMATS.for_request(version)?;
        let outputs = self.outputs.iter().map(|output| {
            Ok(wire::OutputSpec {
                shard_shape: Some(output.shard_shape.to_proto(version)?),
                dtype: Some(output.dtype.to_proto(version)?),
                layout: write(output.layout.as_ref(), version)?,
                memory_kind: output.memory_kind.clone(),
                op_sharding: output.op_sharding.as_ref().map(|sharding| sharding.proto().clone()),
                shape: write(output.shape.as_ref(), version)?,
            })
        });
        let parameters = self.parameters.iter().map(|parameter| {
            Ok(wire::ParameterSpec {
                layout: write(parameter.layout.as_ref(), version)?,
                op_sharding: parameter
                    .op_sharding
                    .as_ref()
                    .map(|sharding| sharding.proto().clone()),
                donated_input: parameter.donated_input,
                shape: write(parameter.shape.as_ref(), version)?,
                dtype: write(parameter.dtype.as_ref(), version)?,
                memory_kind: parameter.memory_kind.clone(),
            })
        });
        Ok(SerializedXlaExecutableMetadata {
            ifrt_version_number: version.number(),
            runtime_name: self.runtime_name.clone(),
            output_specs: outputs.collect::<Result<_, EncodeError>>()?,
            parameter_specs: parameters.collect::<Result<_, EncodeError>>()?,
            computation_name: self.computation_name.clone(),
            portable: self.portable,
            executable_version: write(self.executable_version.as_ref(), version)?,
            outputs_bundle_slice_sizes: self.outputs_bundle_slice_sizes.clone(),
        })
    }
}

/// Ignores the recorded number, as upstream does; strict mode refuses a number newer than this
/// build. Each nested message records its own version.
impl FromProto for XlaExecutableMetadata {
    type Proto = SerializedXlaExecutableMetadata;
    const NAME: &'static str = "XlaExecutableMetadata";

    fn from_proto(proto: &Self::Proto, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        let known = Ifrt::ENTRIES.iter().any(|entry| entry.number == proto.ifrt_version_number);
        if options.is_strict() && !known {
            FORMATS.check_recorded(proto.ifrt_version_number)?;
        }
        let outputs = proto.output_specs.iter().map(|output| {
            Ok(OutputSpec {
                dtype: nested(output.dtype.as_ref(), options)?,
                shard_shape: nested(output.shard_shape.as_ref(), options)?,
                shape: read(output.shape.as_ref(), options)?,
                layout: read(output.layout.as_ref(), options)?,
                memory_kind: output.memory_kind.clone(),
                op_sharding: read_sharding(output.op_sharding.as_ref())?,
            })
        });
        let parameters = proto.parameter_specs.iter().map(|parameter| {
            Ok(ParameterSpec {
                dtype: read(parameter.dtype.as_ref(), options)?,
                shape: read(parameter.shape.as_ref(), options)?,
                layout: read(parameter.layout.as_ref(), options)?,
                memory_kind: parameter.memory_kind.clone(),
                op_sharding: read_sharding(parameter.op_sharding.as_ref())?,
                donated_input: parameter.donated_input,
            })
        });
        let metadata = Self {
            runtime_name: proto.runtime_name.clone(),
            computation_name: proto.computation_name.clone(),
            portable: proto.portable,
            outputs: outputs.collect::<Result<_, DecodeError>>()?,
            parameters: parameters.collect::<Result<_, DecodeError>>()?,
            executable_version: read(proto.executable_version.as_ref(), options)?,
            outputs_bundle_slice_sizes: proto.outputs_bundle_slice_sizes.clone(),
        };
        match metadata.mixed_shardings() {
            None => Ok(metadata),
            Some(message) => Err(DecodeError::invalid_value(Self::NAME, message)),
        }
    }
}

/// A serialized executable: the length of the metadata as a varint, the metadata, and the bytes of
/// the backend.
#[derive(Clone, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct SerializedXlaExecutable {
    /// Inputs, outputs and version.
    pub metadata: XlaExecutableMetadata,
    /// The executable itself, as its backend encodes it.
    pub executable: Bytes,
}

impl SerializedXlaExecutable {
    /// Returns the bytes at the requested version.
    ///
    /// # Errors
    /// [`EncodeError::Inconsistent`], which is INTERNAL, if the metadata cannot be written.
    pub fn to_bytes(&self, version: SerDesVersion) -> Result<Bytes, EncodeError> {
        let metadata = self.metadata.to_bytes(version).map_err(|error| {
            EncodeError::inconsistent(XlaExecutableMetadata::NAME, error.to_string())
        })?;
        let mut bytes = BytesMut::with_capacity(metadata.len() + self.executable.len() + 10);
        encoding::encode_varint(metadata.len() as u64, &mut bytes);
        bytes.put_slice(&metadata);
        bytes.put_slice(&self.executable);
        Ok(bytes.freeze())
    }

    /// Returns the executable in the bytes; the part of the backend shares their memory.
    ///
    /// # Errors
    /// As [`FromProto::from_bytes`] of the metadata; also if the bytes end inside the metadata.
    pub fn from_bytes(bytes: Bytes, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        const NAME: &str = XlaExecutableMetadata::NAME;
        let mut rest = bytes;
        let length = encoding::decode_varint(&mut rest).map_err(|error| {
            DecodeError::malformed(NAME, format!("the length of the metadata: {error}"))
        })?;
        let available = rest.len();
        let length = usize::try_from(length).ok().filter(|length| *length <= available);
        let Some(length) = length else {
            let detail = format!("the metadata is longer than the {available} bytes that follow");
            return Err(DecodeError::malformed(NAME, detail));
        };
        let message = rest.split_to(length);
        let message: SerializedXlaExecutableMetadata = decode_message(NAME, message, options)?;
        let metadata = XlaExecutableMetadata::from_proto(&message, options)?;
        Ok(Self { metadata, executable: rest })
    }
}
