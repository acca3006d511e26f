//! Programs in a language that only a named runtime interprets, and their options.

use std::fmt;

use bytes::Bytes;

use super::DeserializeProgramOptions;
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, FromProto, Registered, ToProto,
        decode_message,
    },
    ifrt::{ArraySpec, DeviceList},
    proto::xla::ifrt as wire,
    version::SerDesVersion,
};

const PROGRAM_FORMATS: Formats = Formats::of("CustomCallProgram");
const OPTIONS_FORMATS: Formats = Formats::of("CustomCallCompileOptions");

/// The format that has slice sizes.
const WITH_SLICE_SIZES: i32 = OPTIONS_FORMATS.number(4);

/// A program in a custom language, which a runtime interprets (`xla::ifrt::CustomCallProgram`).
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CustomCallProgram {
    kind: String,
    name: String,
    text: Bytes,
    devices: DeviceList,
    input_specs: Vec<ArraySpec>,
    output_specs: Vec<ArraySpec>,
}

impl CustomCallProgram {
    /// Creates a program in the language `kind`. The text may contain any bytes.
    pub fn new(
        kind: impl Into<String>,
        name: impl Into<String>,
        text: impl Into<Bytes>,
        devices: DeviceList,
    ) -> Self {
        Self {
            kind: kind.into(),
            name: name.into(),
            text: text.into(),
            devices,
            input_specs: Vec::new(),
            output_specs: Vec::new(),
        }
    }

    /// Sets the specs of the input arrays.
    #[must_use]
    pub fn with_inputs(mut self, specs: impl Into<Vec<ArraySpec>>) -> Self {
        self.input_specs = specs.into();
        self
    }

    /// Sets the specs of the output arrays.
    #[must_use]
    pub fn with_outputs(mut self, specs: impl Into<Vec<ArraySpec>>) -> Self {
        self.output_specs = specs.into();
        self
    }

    /// Returns the language, which determines the runtime that interprets the text.
    pub fn kind(&self) -> &str {
        &self.kind
    }

    /// Returns the name, for people.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the program itself.
    pub const fn text(&self) -> &Bytes {
        &self.text
    }

    /// Returns the devices that the program runs on.
    pub const fn devices(&self) -> &DeviceList {
        &self.devices
    }

    /// Returns the specs of the input arrays.
    pub fn input_specs(&self) -> &[ArraySpec] {
        &self.input_specs
    }

    /// Returns the specs of the output arrays.
    pub fn output_specs(&self) -> &[ArraySpec] {
        &self.output_specs
    }
}

/// Formats as
/// `CustomCallProgram(kind: mpmd, name: step, 120 bytes, devices: [0,1], 2 inputs, 1 outputs)`.
impl fmt::Display for CustomCallProgram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "CustomCallProgram(kind: {}, name: {}, {} bytes, devices: {}, {} inputs, {} outputs)",
            self.kind,
            self.name,
            self.text.len(),
            self.devices,
            self.input_specs.len(),
            self.output_specs.len(),
        )
    }
}

impl Registered for CustomCallProgram {
    const TYPE_NAME: &'static str = "xla::ifrt::CustomCallProgram";
}

/// Writes format 0 at every version.
impl ToProto for CustomCallProgram {
    type Proto = wire::CustomCallProgramProto;

    fn to_proto(&self, version: SerDesVersion) -> Result<Self::Proto, EncodeError> {
        let specs = |specs: &[ArraySpec]| -> Result<Vec<_>, EncodeError> {
            specs.iter().map(|spec| spec.to_proto(version)).collect()
        };
        Ok(wire::CustomCallProgramProto {
            r#type: self.kind.clone(),
            name: self.name.clone(),
            serialized_program_text: self.text.clone(),
            devices: Some(self.devices.to_proto(version)?),
            input_specs: specs(&self.input_specs)?,
            output_specs: specs(&self.output_specs)?,
            version_number: PROGRAM_FORMATS.for_request(version)?,
        })
    }

    fn can_serialize_at(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        self.devices.can_serialize_at(version)?;
        for spec in self.input_specs.iter().chain(&self.output_specs) {
            spec.can_serialize_at(version)?;
        }
        PROGRAM_FORMATS.for_request(version).map(drop)
    }
}

/// Accepts format 0. Needs [`DeserializeProgramOptions`].
impl FromProto for CustomCallProgram {
    type Proto = wire::CustomCallProgramProto;
    const NAME: &'static str = "CustomCallProgram";

    fn from_proto(proto: &Self::Proto, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        Self::from_owned_proto(proto.clone(), options)
    }

    fn from_owned_proto(
        proto: Self::Proto,
        options: &DeserializeOptions,
    ) -> Result<Self, DecodeError> {
        let options = &DeserializeProgramOptions::for_nested(options, Self::NAME)?;
        PROGRAM_FORMATS.check_recorded(proto.version_number)?;
        let specs = |specs: Vec<wire::ArraySpecProto>| {
            let specs = specs.into_iter();
            specs
                .map(|spec| ArraySpec::from_owned_proto(spec, options))
                .collect::<Result<Vec<_>, _>>()
        };
        Ok(Self {
            kind: proto.r#type,
            name: proto.name,
            text: proto.serialized_program_text,
            devices: DeviceList::from_owned_proto(proto.devices.unwrap_or_default(), options)?,
            input_specs: specs(proto.input_specs)?,
            output_specs: specs(proto.output_specs)?,
        })
    }

    fn check_options(options: &DeserializeOptions) -> Result<(), DecodeError> {
        options.require::<DeserializeProgramOptions>(Self::NAME).map(drop)
    }
}

/// Options for compiling a custom call (`xla::ifrt::CustomCallCompileOptions`).
///
/// Below version 4 the options have no content: their bytes are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct CustomCallCompileOptions {
    outputs_bundle_slice_sizes: Vec<i32>,
}

impl CustomCallCompileOptions {
    /// Creates options without bundles.
    pub fn new() -> Self {
        Self::default()
    }

    /// Groups the outputs into bundles: sets the number of outputs in each. Needs version 4.
    #[must_use]
    pub fn with_outputs_bundle_slice_sizes(mut self, sizes: impl Into<Vec<i32>>) -> Self {
        self.outputs_bundle_slice_sizes = sizes.into();
        self
    }

    /// Returns the number of outputs in each bundle.
    pub fn outputs_bundle_slice_sizes(&self) -> &[i32] {
        &self.outputs_bundle_slice_sizes
    }
}

impl fmt::Display for CustomCallCompileOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "CustomCallCompileOptions(outputs_bundle_slice_sizes: {:?})",
            self.outputs_bundle_slice_sizes
        )
    }
}

impl Registered for CustomCallCompileOptions {
    const TYPE_NAME: &'static str = "xla::ifrt::CustomCallCompileOptions";
}

/// Writes empty bytes below version 4, and format 4 from version 4.
impl ToProto for CustomCallCompileOptions {
    type Proto = wire::CustomCallCompileOptionsProto;

    fn to_proto(&self, version: SerDesVersion) -> Result<Self::Proto, EncodeError> {
        self.can_serialize_at(version)?;
        Ok(wire::CustomCallCompileOptionsProto {
            version_number: OPTIONS_FORMATS.for_request(version)?,
            outputs_bundle_slice_sizes: self.outputs_bundle_slice_sizes.clone(),
        })
    }

    fn can_serialize_at(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        match OPTIONS_FORMATS.for_request(version)? {
            0 if !self.outputs_bundle_slice_sizes.is_empty() => {
                Err(EncodeError::unsupported_at_version(
                    Self::NAME,
                    "the field outputs_bundle_slice_sizes",
                    version,
                    WITH_SLICE_SIZES,
                ))
            }
            _ => Ok(()),
        }
    }
}

/// Accepts empty bytes and format 4.
impl FromProto for CustomCallCompileOptions {
    type Proto = wire::CustomCallCompileOptionsProto;
    const NAME: &'static str = "CustomCallCompileOptions";

    fn from_proto(proto: &Self::Proto, _: &DeserializeOptions) -> Result<Self, DecodeError> {
        let format = OPTIONS_FORMATS.check_recorded(proto.version_number)?;
        if format == 0 && !proto.outputs_bundle_slice_sizes.is_empty() {
            return Err(not_empty());
        }
        Ok(Self { outputs_bundle_slice_sizes: proto.outputs_bundle_slice_sizes.clone() })
    }

    fn from_bytes(bytes: Bytes, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        let length = bytes.len();
        let proto: Self::Proto = decode_message(Self::NAME, bytes, options)?;
        if proto.version_number == 0 && length > 0 {
            return Err(not_empty());
        }
        Self::from_proto(&proto, options)
    }
}

fn not_empty() -> DecodeError {
    DecodeError::invalid_value(
        CustomCallCompileOptions::NAME,
        "format 0 has content; expected empty bytes, or a message that records version 4",
    )
}
