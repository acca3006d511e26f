//! Options for compiling a program with XLA. The module does not depend on the compiler's own
//! options, which it keeps unchanged.

use std::fmt;

use bytes::{BufMut, Bytes, BytesMut};
use prost::encoding;

use super::XlaHostCallback;
use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, FromProto, Registered, ToProto,
        serde_forms::serde_as_message,
    },
    proto::{OpaqueMessage, xla::ifrt as wire},
    version::SerDesVersion,
    wire::{Dialect, FieldValue, Malformed, WireReader, check_fields},
};

const FORMATS: Formats = Formats::of("XlaCompileOptions");

/// The format that has slice sizes.
const WITH_SLICE_SIZES: i32 = FORMATS.number(4);

/// Options for compiling a program with XLA (`xla::ifrt::XlaCompileOptions`).
///
/// The options themselves belong to the compiler: they are kept as the bytes of an
/// `xla.CompileOptionsProto`. Fields of the enclosing message that this build does not know are
/// kept too. The version number and the slice sizes exist since version 4.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct XlaCompileOptions {
    compile_options: Bytes,
    outputs_bundle_slice_sizes: Vec<i32>,
    loaded_host_callbacks: Vec<XlaHostCallback>,
    unknown_fields: Bytes,
}

impl XlaCompileOptions {
    /// Creates the options with the bytes of an `xla.CompileOptionsProto`.
    ///
    /// # Errors
    /// [`DecodeError::Malformed`] with DATA_LOSS if the bytes are not a sequence of fields.
    pub fn new(compile_options: impl Into<Bytes>) -> Result<Self, DecodeError> {
        let compile_options = compile_options.into();
        check_fields(&compile_options).map_err(malformed).map_err(data_loss)?;
        Ok(Self { compile_options, ..Self::default() })
    }

    /// Groups the outputs into bundles: sets the number of outputs in each. Needs version 4.
    #[must_use]
    pub fn with_outputs_bundle_slice_sizes(mut self, sizes: impl Into<Vec<i32>>) -> Self {
        self.outputs_bundle_slice_sizes = sizes.into();
        self
    }

    /// Sets callbacks that are loaded in this process. Options with callbacks cannot be serialized.
    #[must_use]
    pub fn with_loaded_host_callbacks(
        mut self,
        callbacks: impl Into<Vec<XlaHostCallback>>,
    ) -> Self {
        self.loaded_host_callbacks = callbacks.into();
        self
    }

    /// Returns the bytes of the `xla.CompileOptionsProto`.
    pub const fn compile_options(&self) -> &Bytes {
        &self.compile_options
    }

    /// Returns the number of outputs in each bundle.
    pub fn outputs_bundle_slice_sizes(&self) -> &[i32] {
        &self.outputs_bundle_slice_sizes
    }

    /// Returns the callbacks that are loaded in this process.
    pub fn loaded_host_callbacks(&self) -> &[XlaHostCallback] {
        &self.loaded_host_callbacks
    }
}

fn malformed(error: Malformed) -> DecodeError {
    DecodeError::malformed(XlaCompileOptions::NAME, error.to_string())
}

/// Converts any error in the bytes to DATA_LOSS, which upstream returns.
fn data_loss(error: DecodeError) -> DecodeError {
    match error {
        DecodeError::Malformed { type_name, detail, .. } => {
            DecodeError::data_loss(type_name, detail)
        }
        other => other,
    }
}

serde_as_message!(
    XlaCompileOptions,
    |value| value.to_bytes(crate::codec::at::requested()),
    |bytes| { Self::from_bytes(bytes, &DeserializeOptions::new()) }
);

impl fmt::Display for XlaCompileOptions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "XlaCompileOptions({} bytes, outputs_bundle_slice_sizes: {:?})",
            self.compile_options.len(),
            self.outputs_bundle_slice_sizes
        )
    }
}

impl Registered for XlaCompileOptions {
    const TYPE_NAME: &'static str = "xla::ifrt::XlaCompileOptions";
}

/// Writes no number below version 4, and format 4 from version 4. Unknown fields are written by
/// `to_bytes`; `to_proto` refuses them, because the message has no place for them.
impl ToProto for XlaCompileOptions {
    type Proto = wire::XlaCompileOptionsProto;

    fn to_proto(&self, version: SerDesVersion) -> Result<Self::Proto, EncodeError> {
        self.can_serialize_at(version)?;
        if !self.unknown_fields.is_empty() {
            return Err(EncodeError::not_serializable(
                Self::NAME,
                "fields that this build does not know, as a message",
                "write the value to bytes, which carry them",
            ));
        }
        Ok(wire::XlaCompileOptionsProto {
            compile_options: Some(
                OpaqueMessage::from_fields(&self.compile_options)
                    .map_err(|error| EncodeError::invalid_value(Self::NAME, error.to_string()))?,
            ),
            outputs_bundle_slice_sizes: self.outputs_bundle_slice_sizes.clone(),
            version_number: FORMATS.for_request(version)?,
        })
    }

    fn can_serialize_at(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        if !self.loaded_host_callbacks.is_empty() {
            return Err(EncodeError::not_serializable(
                Self::NAME,
                "the field loaded_host_callbacks",
                "pass the callbacks beside the options, as compile requests do",
            ));
        }
        match FORMATS.for_request(version)? {
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

    fn to_bytes(&self, version: SerDesVersion) -> Result<Bytes, EncodeError> {
        self.can_serialize_at(version)?;
        let number = FORMATS.for_request(version)?;
        let capacity = self.compile_options.len() + self.unknown_fields.len() + 32;
        let mut bytes = BytesMut::with_capacity(capacity);
        encoding::bytes::encode(1, &self.compile_options, &mut bytes);
        encoding::int32::encode_packed(2, &self.outputs_bundle_slice_sizes, &mut bytes);
        if number != 0 {
            encoding::int32::encode(3, &number, &mut bytes);
        }
        bytes.put_slice(&self.unknown_fields);
        Ok(bytes.freeze())
    }
}

/// Accepts options without a number and format 4. Any parse error is DATA_LOSS.
impl FromProto for XlaCompileOptions {
    type Proto = wire::XlaCompileOptionsProto;
    const NAME: &'static str = "XlaCompileOptions";

    fn from_proto(proto: &Self::Proto, _: &DeserializeOptions) -> Result<Self, DecodeError> {
        FORMATS.check_recorded(proto.version_number)?;
        let options = proto.compile_options.as_ref().map(OpaqueMessage::fields);
        Ok(Self {
            compile_options: Bytes::copy_from_slice(options.unwrap_or_default()),
            outputs_bundle_slice_sizes: proto.outputs_bundle_slice_sizes.clone(),
            ..Self::default()
        })
    }

    fn from_bytes(bytes: Bytes, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        let found = bytes.len() as u64;
        if found > options.maximum_bytes() {
            let limit = options.maximum_bytes();
            return Err(DecodeError::limit_exceeded(Self::NAME, "the size in bytes", found, limit));
        }
        read(&bytes).map_err(data_loss)
    }
}

/// Reads the message field by field, so that unknown fields are kept unchanged.
fn read(bytes: &Bytes) -> Result<XlaCompileOptions, DecodeError> {
    const NAME: &str = XlaCompileOptions::NAME;
    let mut value = XlaCompileOptions::default();
    let mut unknown = BytesMut::new();
    let mut number = 0;
    let mut reader = WireReader::new(Dialect::Prost, bytes);
    while let Some(field) = reader.next_field().map_err(malformed)? {
        match (field.number, field.value) {
            (1, FieldValue::Bytes(options)) => {
                check_fields(options).map_err(malformed)?;
                // A message that comes in pieces is merged by concatenating them.
                value.compile_options = if value.compile_options.is_empty() {
                    bytes.slice_ref(options)
                } else {
                    [&value.compile_options, options].concat().into()
                };
            }
            (2, sizes @ (FieldValue::Bytes(_) | FieldValue::Varint(_))) => {
                let push = |size| value.outputs_bundle_slice_sizes.push(size as i32);
                sizes.each_varint(Dialect::Prost, push).map_err(malformed)?;
            }
            (3, FieldValue::Varint(found)) => number = found as i32,
            (1..=3, _) => {
                return Err(DecodeError::malformed(NAME, "a field has the wrong wire type"));
            }
            _ => unknown.put_slice(field.raw),
        }
    }
    FORMATS.check_recorded(number)?;
    value.unknown_fields = unknown.freeze();
    Ok(value)
}
