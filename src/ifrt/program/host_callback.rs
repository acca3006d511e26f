//! Host callbacks: functions of the host that an XLA program calls while it runs.

use std::fmt;

use crate::{
    codec::{
        DecodeError, DeserializeOptions, EncodeError, Formats, FromProto, ToProto,
        serde_forms::serde_as_message,
    },
    ifrt::xla::Shape,
    proto::{google::protobuf::Any, xla::ifrt as wire},
    version::SerDesVersion,
};

/// The formats of the type. The message has no field for the number.
const FORMATS: Formats = Formats::of("XlaHostCallback");

/// An operand or a result of a host callback: its shape, and the channel that transfers it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct HostCallbackArgument {
    /// The number of the send or receive channel in the XLA program.
    pub channel_id: u32,
    /// The shape and element type of the array.
    pub shape: Shape,
}

/// A function of the host that a program of XLA calls
/// (`xla::ifrt::PjRtHostSendAndRecvLoadedHostCallback`, message `XlaHostCallbackProto`).
///
/// The message records no version number, and the function in it is not parsed. Compile requests of
/// the proxy carry its bytes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct XlaHostCallback {
    operands: Vec<HostCallbackArgument>,
    results: Vec<HostCallbackArgument>,
    callback: Option<Any>,
    use_major_to_minor_data_layout: bool,
}

impl XlaHostCallback {
    /// Creates a callback that takes `operands` and returns `results`.
    pub fn new(
        operands: impl Into<Vec<HostCallbackArgument>>,
        results: impl Into<Vec<HostCallbackArgument>>,
    ) -> Self {
        Self { operands: operands.into(), results: results.into(), ..Self::default() }
    }

    /// Sets the function, in the form that its runtime understands.
    #[must_use]
    pub fn with_callback(mut self, callback: Any) -> Self {
        self.callback = Some(callback);
        self
    }

    /// Sets the layout in which data is passed: row-major order (`true`), or the layout of the
    /// device.
    #[must_use]
    pub fn with_major_to_minor_data_layout(mut self, row_major: bool) -> Self {
        self.use_major_to_minor_data_layout = row_major;
        self
    }

    /// Returns the operands of the callback.
    pub fn operands(&self) -> &[HostCallbackArgument] {
        &self.operands
    }

    /// Returns the results of the callback.
    pub fn results(&self) -> &[HostCallbackArgument] {
        &self.results
    }

    /// Returns the function, in the form that its runtime understands.
    pub const fn callback(&self) -> Option<&Any> {
        self.callback.as_ref()
    }

    /// Returns true if the data is passed in row-major order, independently of the layout on the
    /// device.
    pub const fn use_major_to_minor_data_layout(&self) -> bool {
        self.use_major_to_minor_data_layout
    }
}

serde_as_message!(
    XlaHostCallback,
    |value| value.to_bytes(crate::codec::at::requested()),
    |bytes| { Self::from_bytes(bytes, &DeserializeOptions::new()) }
);

/// Formats as `XlaHostCallback((f32[4]) -> (f32[4]))`.
impl fmt::Display for XlaHostCallback {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let write_list = |f: &mut fmt::Formatter<'_>, list: &[HostCallbackArgument]| {
            f.write_str("(")?;
            for (index, argument) in list.iter().enumerate() {
                let comma = if index == 0 { "" } else { ", " };
                write!(f, "{comma}{}", argument.shape)?;
            }
            f.write_str(")")
        };
        f.write_str("XlaHostCallback(")?;
        write_list(f, &self.operands)?;
        f.write_str(" -> ")?;
        write_list(f, &self.results)?;
        f.write_str(")")
    }
}

/// Writes the same bytes at every version.
impl ToProto for XlaHostCallback {
    type Proto = wire::XlaHostCallbackProto;

    fn to_proto(&self, version: SerDesVersion) -> Result<Self::Proto, EncodeError> {
        self.can_serialize_at(version)?;
        let arguments = |list: &[HostCallbackArgument]| {
            let infos = list.iter().map(|argument| wire::xla_host_callback_proto::ArgInfo {
                channel_id: argument.channel_id,
                shape: Some(argument.shape.to_proto()),
            });
            infos.collect()
        };
        Ok(wire::XlaHostCallbackProto {
            operands: arguments(&self.operands),
            results: arguments(&self.results),
            serialized_callback: self.callback.clone(),
            use_major_to_minor_data_layout_for_callbacks: self.use_major_to_minor_data_layout,
        })
    }

    fn can_serialize_at(&self, version: SerDesVersion) -> Result<(), EncodeError> {
        FORMATS.for_request(version).map(drop)
    }
}

impl FromProto for XlaHostCallback {
    type Proto = wire::XlaHostCallbackProto;
    const NAME: &'static str = "XlaHostCallback";

    fn from_proto(proto: &Self::Proto, options: &DeserializeOptions) -> Result<Self, DecodeError> {
        let arguments = |list: &[wire::xla_host_callback_proto::ArgInfo]| {
            let arguments = list.iter().map(|info| {
                let absent = Default::default();
                let shape = info.shape.as_ref().unwrap_or(&absent);
                let shape = Shape::from_proto(shape, options)?;
                Ok(HostCallbackArgument { channel_id: info.channel_id, shape })
            });
            arguments.collect::<Result<Vec<_>, DecodeError>>()
        };
        Ok(Self {
            operands: arguments(&proto.operands)?,
            results: arguments(&proto.results)?,
            callback: proto.serialized_callback.clone(),
            use_major_to_minor_data_layout: proto.use_major_to_minor_data_layout_for_callbacks,
        })
    }
}
